//! Overrides of single tools and the screening of texts, for the catalog.

use std::sync::Arc;

use capstan_config::Config;
use capstan_hub::catalog::{Accepted, Catalog, Names, Overrides, Screens, Secrets};

/// An empty catalog with the configured names and overrides of tools.
pub(super) fn catalog(config: &Config, names: Names) -> Catalog {
    let screens = Arc::new(screens(config));
    let servers = config.servers.values();
    let servers = servers.filter_map(|entry| Some((entry, entry.status.as_ref().ok()?)));
    let servers = servers.map(|(entry, server)| (entry.name.clone(), server.tools.clone()));
    let overrides = Arc::new(Overrides::new(servers));
    let names = names.with(Arc::clone(&overrides));
    Catalog { names, overrides, screens, ..Catalog::default() }
}

/// The treatment of suspicious texts of each server.
fn screens(config: &Config) -> Screens {
    let servers = config.servers.values();
    let servers = servers.filter_map(|entry| Some((entry, entry.status.as_ref().ok()?)));
    let modes = servers.map(|(entry, server)| {
        let modes = config.screen.modes(&server.screen);
        (entry.name.clone(), modes)
    });
    let secrets = if config.screen.secrets { Secrets::Mask } else { Secrets::Keep };
    let accepted: Accepted = Arc::new(config.screen.accept.iter().cloned().collect());
    let max_description = usize::try_from(config.screen.max_description).unwrap_or(usize::MAX);
    Screens::new(modes, secrets, accepted).with_max_description(max_description)
}
