//! What a new hub takes over from the one before.

use capstan_config::{Config, ServerEntry};
use capstan_hub::{Hub, HubBuilder};

/// A hub with the configuration it was made of.
pub(crate) struct Before<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) config: &'a Config,
}

// === impl Before ===

impl Before<'_> {
    /// Takes over the connection of an entry, if nothing that it depends on has changed.
    pub(crate) fn keep(&self, config: &Config, entry: &ServerEntry, next: &mut HubBuilder) -> bool {
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
