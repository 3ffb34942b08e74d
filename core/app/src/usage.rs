//! Call rates of servers, as counted by gateways.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_config::{Idle, IdlePolicy, Kind, Server};
use capstan_hub::life::{self, IdleRule};
use capstan_hub::ports::{Pace, UsageLog};
use capstan_model::ServerName;

use crate::Setup;

/// Reports how often servers are called, from the counts that gateways store.
pub struct Usage {
    /// The stored counts.
    pub log: Arc<dyn UsageLog>,
}

// === impl Usage ===

impl Usage {
    /// The call rate of each server and the idle time after which a gateway stops it.
    pub async fn rates(&self, setup: &Setup) -> HashMap<ServerName, Pace> {
        // The list of servers is useful even without counts.
        let rows = self.log.read(i64::MIN).await.unwrap_or_default();
        let mut used: HashMap<ServerName, life::Usage> = HashMap::new();
        for row in &rows {
            used.entry(row.server.clone()).or_default().recall(row);
        }
        let servers = setup.loaded.config.servers.values();
        let known = servers.filter_map(|entry| Some((&entry.name, entry.status.as_ref().ok()?)));
        let pace = |(name, server): (&ServerName, &Server)| {
            let calls_per_hour = used.get(name).map_or(0.0, life::Usage::calls_per_hour);
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
    }
}

/// The idle rule of a server's entry.
pub(crate) fn idle_rule(idle: Idle) -> IdleRule {
    match idle.policy {
        IdlePolicy::Adaptive => IdleRule::Adaptive { min: idle.min, max: idle.max },
        IdlePolicy::Never => IdleRule::Never,
        IdlePolicy::After(time) => IdleRule::After(time),
    }
}
