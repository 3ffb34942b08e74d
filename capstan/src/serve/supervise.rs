//! Supervises the servers of a gateway: starts, stops and remembers them.

use std::sync::Arc;
use std::time::Duration;

use capstan_app::hub_settings::supervision;
use capstan_config::Config;
use capstan_hub::HubBuilder;
use capstan_hub::life::{Spawn, Supervisor, SupervisorPorts};
use capstan_hub::ports::{Changes, Clock};
use capstan_store::Database;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::adapters::Adapters;
use crate::manifests::ManifestFiles;

/// Time limit for storing usage counters at shutdown.
const GRACE: Duration = Duration::from_secs(2);

/// Supervises the servers of a gateway.
pub(crate) struct Supervised {
    adapters: Arc<Adapters>,
    supervisor: Arc<Supervisor>,
    task: JoinHandle<()>,
}

// === impl Supervised ===

impl Supervised {
    /// Starts the supervision. Must be called within a tokio runtime.
    pub(crate) fn start(
        adapters: &Arc<Adapters>,
        clock: &Arc<dyn Clock>,
        changes: &Arc<Changes>,
    ) -> Self {
        let spawn: Spawn = Arc::new(|task| drop(tokio::spawn(task)));
        let supervisor = Supervisor::new(SupervisorPorts {
            clock: Arc::clone(clock),
            manifests: ManifestFiles::shared(&adapters.environment),
            usage: Arc::<Database>::clone(&adapters.database),
            changes: Arc::clone(changes),
            spawn,
        });
        let task = tokio::spawn(Arc::clone(&supervisor).run());
        Self { adapters: Arc::clone(adapters), supervisor, task }
    }

    /// Supervises the new servers of a hub.
    pub(crate) fn supervise(&self, hub: &mut HubBuilder, config: &Config) {
        let Adapters { environment, machine, .. } = &*self.adapters;
        hub.supervise(&self.supervisor, |name, state| {
            supervision(environment, &**machine, config, name, state)
        });
    }

    /// Ends the supervision and stores the usage counters.
    pub(crate) async fn end(&self) {
        self.task.abort();
        if tokio::time::timeout(GRACE, self.supervisor.close()).await.is_err() {
            warn!("the usage of servers was not saved in time");
        }
    }
}
