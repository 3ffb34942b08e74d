//! Call rates of servers, from the store.

use std::collections::HashMap;

use capstan_app::{self as app, Setup};
use capstan_config::Kind;
use capstan_hub::life::Usage;
use capstan_hub::ports::{BoxFuture, Pace, UsageLog};
use capstan_model::ServerName;

use crate::host::LocalHost;
use crate::tending::idle_rule;

impl app::Usage for LocalHost {
    fn usage<'a>(&'a self, setup: &'a Setup) -> BoxFuture<'a, HashMap<ServerName, Pace>> {
        Box::pin(async move {
            let store = self.world.database();
            // The list of servers is useful even without usage data.
            let rows = store.read(i64::MIN).await.unwrap_or_default();
            let mut used: HashMap<ServerName, Usage> = HashMap::new();
            for row in &rows {
                used.entry(row.server.clone()).or_default().recall(row);
            }
            let servers = setup.loaded.config.servers.values();
            let known =
                servers.filter_map(|entry| Some((&entry.name, entry.status.as_ref().ok()?)));
            let pace = |(name, server): (&ServerName, &capstan_config::Server)| {
                let calls_per_hour = used.get(name).map_or(0.0, Usage::calls_per_hour);
                let stops_in = match server.kind {
                    Kind::Stdio(_) | Kind::Http(_) | Kind::Sse(_) => {
                        idle_rule(server.idle).timeout(calls_per_hour)
                    }
                    // These kinds have no process to stop.
                    Kind::Cli(_) | Kind::OpenApi(_) => None,
                };
                (name.clone(), Pace { calls_per_hour, stops_in })
            };
            known.map(pace).collect()
        })
    }
}
