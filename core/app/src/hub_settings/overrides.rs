//! Overrides of single tools, for the catalog.

use std::sync::Arc;

use capstan_config::{Config, ToolOverride};
use capstan_hub::catalog::{Catalog, Names, Override, Overrides};

/// An empty catalog with the configured names and overrides of tools.
pub(super) fn catalog(config: &Config, names: Names) -> Catalog {
    let servers = config.servers.values();
    let servers = servers.filter_map(|entry| Some((entry, entry.status.as_ref().ok()?)));
    let servers = servers.map(|(entry, server)| {
        let tools = server.tools.iter().map(|(tool, said)| (tool.clone(), of_tool(said)));
        (entry.name.clone(), tools.collect())
    });
    let overrides = Arc::new(Overrides::new(servers));
    let names = names.with(Arc::clone(&overrides));
    Catalog { names, overrides, ..Catalog::default() }
}

fn of_tool(said: &ToolOverride) -> Override {
    Override {
        name: said.name.clone(),
        title: said.title.clone(),
        description: said.description.clone(),
        default: said.default.clone(),
        pin: said.pin.clone(),
        hide_parameters: said.hide_parameters.clone(),
    }
}
