//! Overrides of single tools, for the catalog.

use std::sync::Arc;

use capstan_config::Config;
use capstan_hub::catalog::{Catalog, Names, Overrides};

/// An empty catalog with the configured names and overrides of tools.
pub(super) fn catalog(config: &Config, names: Names) -> Catalog {
    let servers = config.servers.values();
    let servers = servers.filter_map(|entry| Some((entry, entry.status.as_ref().ok()?)));
    let servers = servers.map(|(entry, server)| (entry.name.clone(), server.tools.clone()));
    let overrides = Arc::new(Overrides::new(servers));
    let names = names.with(Arc::clone(&overrides));
    Catalog { names, overrides, ..Catalog::default() }
}
