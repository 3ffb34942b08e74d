//! The settings of a hub, from a configuration: rules, pins, names, limits.
//!
//! The hub does not depend on the configuration, and the binary decides nothing; this module
//! translates the one into the other.

mod approvals;
mod offer;
mod overrides;
mod pins;
mod policy;
mod rates;
mod required;
mod supervision;
mod unmatched;

use std::sync::Arc;

use capstan_config::{AuditArguments, Config, Loaded, ServerEntry};
use capstan_hub::catalog::{Catalog, Names};
use capstan_hub::ports::PinStore;
use capstan_hub::{Check, Hub, HubBuilder, Keep, Limits};
use capstan_model::ServerName;
use capstan_policy::Policy;

pub use approvals::{ApprovalPorts, ClientTransport, command_approvals, gateway_approvals};
pub use offer::tool_offer;
pub use policy::{PolicyError, policy};
pub use required::start_required;
pub use supervision::{saved_lists, supervision};
pub use unmatched::warn_unmatched;

/// Minimum limit on open server questions in a gateway, where many clients answer them.
const MIN_QUESTIONS: usize = 256;

/// A hub with the configuration it was built from.
pub struct Before<'a> {
    /// The hub.
    pub hub: &'a Hub,
    /// Its configuration.
    pub config: &'a Config,
}

// === impl Before ===

impl Before<'_> {
    /// Keeps the connection of an entry if nothing that it depends on has changed; true if kept.
    pub fn keep(&self, config: &Config, entry: &ServerEntry, next: &mut HubBuilder) -> bool {
        let Some(known) = self.config.servers.get(&entry.name) else { return false };
        let allowed =
            |config: &Config, entry: &ServerEntry| config.allowed_commands(&entry.origin.file);
        let same = known.connects_like(entry)
            && allowed(self.config, known) == allowed(config, entry)
            && self.config.mcp.elicitation_enabled == config.mcp.elicitation_enabled
            && self.config.screen == config.screen;
        same && next.keep(self.hub, &entry.name)
    }
}

/// Applies a configuration to a hub; counters and names of the previous hub carry over.
pub fn apply(
    hub: &mut HubBuilder,
    loaded: &Loaded,
    policy: Arc<Policy>,
    pins: Arc<dyn PinStore>,
    before: Option<&Before<'_>>,
) {
    let config = &loaded.config;
    hub.policy = policy;
    hub.pins = Arc::new(pins::of(pins, config, &hub.clock, &hub.changes));
    hub.limits = limits(loaded);
    hub.per_caller = per_caller(config).cloned().collect();
    hub.rates = Arc::new(rates::of(config, before.map(|before| before.hub.rates())));
    let uris = before.map(|before| {
        let servers = config.servers.values().map(|entry| entry.name.clone());
        Arc::new(before.hub.catalog().uris.then(servers))
    });
    let catalog = overrides::catalog(config, names(config, before));
    hub.catalog = Arc::new(Catalog { uris: uris.unwrap_or_default(), ..catalog });
    hub.approvals = Arc::default();
}

/// The servers that callers use with accounts of their own.
fn per_caller(config: &Config) -> impl Iterator<Item = &ServerName> {
    let is_per_caller = |entry: &&ServerEntry| {
        entry.status.as_ref().is_ok_and(capstan_config::Server::is_per_caller)
    };
    config.servers.values().filter(is_per_caller).map(|entry| &entry.name)
}

/// Raises the limit on open questions to what a gateway needs.
pub fn widen(hub: &mut HubBuilder) {
    hub.limits.max_questions = hub.limits.max_questions.max(MIN_QUESTIONS);
}

/// The names of each server's items.
fn names(config: &Config, before: Option<&Before<'_>>) -> Names {
    let whole =
        config.servers.values().filter_map(|entry| Some((entry, entry.status.as_ref().ok()?)));
    let all = whole.map(|(entry, server)| (entry.name.clone(), server.naming));
    match before {
        Some(before) => before.hub.catalog().names.then(all),
        None => Names::new(all),
    }
}

fn limits(loaded: &Loaded) -> Limits {
    let config = &loaded.config;
    let tokens = [config.screen.max_tokens, loaded.environment.max_output_tokens];
    Limits {
        max_answer: usize::try_from(config.screen.max_answer).unwrap_or(usize::MAX),
        max_tokens: tokens.into_iter().flatten().min(),
        quota: config.tools.max_tool_calls_per_session,
        question_wait: config.mcp.elicitation_timeout,
        max_questions: usize::try_from(config.mcp.elicitation_queue).unwrap_or(usize::MAX),
        first_list_wait: config.gateway.first_list_wait,
        keep_arguments: match config.audit.arguments {
            AuditArguments::Off => Keep::No,
            AuditArguments::Redacted => Keep::Redacted,
        },
        check_arguments: if config.gateway.validate_arguments { Check::Yes } else { Check::No },
    }
}
