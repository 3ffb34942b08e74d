//! Pins: the approved definitions of tools.

use std::sync::Arc;

use capstan_config::{Config, Server};
use capstan_hub::approvals::digest_of;
use capstan_hub::ports::{Changes, Clock, PinStore};
use capstan_hub::{NewTools, PinRules, Pins};

/// The pins of the configured servers.
pub(super) fn of(
    store: Arc<dyn PinStore>,
    config: &Config,
    clock: &Arc<dyn Clock>,
    changes: &Arc<Changes>,
) -> Pins {
    let whole = config.servers.values();
    let whole = whole.filter_map(|entry| Some((&entry.name, entry.status.as_ref().ok()?)));
    let servers = whole.map(|(name, server)| (name.clone(), rules(server))).collect();
    Pins::new(store, Arc::clone(clock), Arc::clone(changes), servers)
}

fn rules(server: &Server) -> PinRules {
    PinRules {
        // Uses the masked target, so that a changed token does not make it another server.
        identity: digest_of([server.kind.as_str(), &server.target]),
        trust: server.trust,
        new_tools: if server.tool_list.locked { NewTools::Refuse } else { NewTools::Ask },
        expected: server.tool_list.expected.clone(),
    }
}
