//! What clients of the gateway are offered: all tools, or tools that find them.

use std::sync::Arc;

use capstan_config::Config;
use capstan_hub::own_tools::ToolOffer;
use capstan_hub::ports::ToolIndex;
use capstan_policy::Glob;

use crate::SelectionRules;

/// The choice of a configuration, with the index that searches use.
pub fn tool_offer(config: &Config, index: Arc<dyn ToolIndex>) -> ToolOffer {
    let rules = SelectionRules::of(config);
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let gateway = &config.gateway;
    let clients = gateway.clients.iter();
    #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
    let min_similarity = config.search.min_similarity as f32;
    ToolOffer {
        index,
        top_k: rules.top_k,
        min_similarity,
        expose: gateway.expose,
        clients: clients.map(|client| (Glob::stars(&client.client), client.expose)).collect(),
        budget: count(gateway.expose_tokens),
        always_include: rules.always_include,
        always_load: rules.always_load,
    }
}
