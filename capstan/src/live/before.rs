//! What a new hub takes over from the one before.

use std::sync::Arc;

use capstan_config::{Config, ServerEntry};
use capstan_hub::Hub;
use capstan_hub::ports::Backend;

/// A hub with the configuration it was made of.
pub(crate) struct Before<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) config: &'a Config,
}

// === impl Before ===

impl Before<'_> {
    /// The connection of an entry, where nothing that it depends on has changed.
    pub(crate) fn backend(&self, config: &Config, entry: &ServerEntry) -> Option<Arc<dyn Backend>> {
        let known = self.config.servers.get(&entry.name)?;
        let allowed =
            |config: &Config, entry: &ServerEntry| config.allowed_commands(&entry.origin.file);
        let same = known.connects_like(entry)
            && allowed(self.config, known) == allowed(config, entry)
            && self.config.mcp.elicitation_enabled == config.mcp.elicitation_enabled
            && self.config.screen == config.screen;
        same.then(|| self.hub.backends.get(&entry.name).cloned()).flatten()
    }
}
