//! The hub of a running gateway, which a reload replaces.
//!
//! Connections that no new call uses are closed when their last call has ended.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_app::hub_settings::{Before, ClientTransport};
use capstan_app::reload::ServedHub;
use capstan_app::{AppError, Selection, Setup};
use capstan_config::SourceFile;
use capstan_gateway::Gateway;
use capstan_hub::ports::BoxFuture;
use capstan_hub::{Hub, Retired as Connections};
use futures::future::{join, join_all};
use tokio::time::Instant;

use super::supervise::Supervised;
use crate::adapters::Adapters;

/// Time limit for a call on a connection that is to be closed.
const LAST_CALL: Duration = Duration::from_mins(10);

/// Interval at which it is checked whether the last call has ended.
const LOOK: Duration = Duration::from_millis(50);

/// A running gateway and its supervised servers.
pub(crate) struct Served {
    adapters: Arc<Adapters>,
    gateway: Arc<Gateway>,
    supervised: Arc<Supervised>,
    transport: ClientTransport,
    retired: Arc<Retired>,
}

/// Connections that are to be closed.
#[derive(Default)]
struct Retired(Mutex<Vec<Arc<Connections>>>);

// === impl Served ===

impl Served {
    pub(crate) fn new(
        adapters: &Arc<Adapters>,
        gateway: &Arc<Gateway>,
        supervised: &Arc<Supervised>,
        transport: ClientTransport,
    ) -> Self {
        Self {
            adapters: Arc::clone(adapters),
            gateway: Arc::clone(gateway),
            supervised: Arc::clone(supervised),
            transport,
            retired: Arc::default(),
        }
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        let hub = self.gateway.hub();
        join(hub.close(), self.retired.close()).await;
    }
}

impl ServedHub for Served {
    fn build(&self, setup: &Setup, before: &Before<'_>) -> Result<Hub, AppError> {
        let mut hub = self.adapters.gateway_hub(setup, self.transport, Some(before))?;
        self.supervised.supervise(&mut hub, &setup.loaded.config);
        Ok(hub.build())
    }

    fn replace(&self, hub: Arc<Hub>) {
        let old = self.gateway.renew(&hub);
        self.retired.take(old, &hub);
    }

    fn read(&self, selection: &Selection) -> BoxFuture<'_, Result<Vec<SourceFile>, AppError>> {
        let (configs, selection) = (Arc::clone(&self.adapters.configs), selection.clone());
        Box::pin(async move {
            // The files may be on a slow disk.
            let read = tokio::task::spawn_blocking(move || configs.sources(&selection)).await;
            read.map_err(|error| AppError::internal(error.to_string()))?
        })
    }
}

// === impl Retired ===

impl Retired {
    /// Closes the connections of a hub that its successor does not use, once no call uses that hub.
    fn take(self: &Arc<Self>, before: Arc<Hub>, now: &Hub) {
        let gone = Arc::new(before.retired(now));
        if gone.is_empty() {
            return;
        }
        self.all().push(Arc::clone(&gone));
        let (retired, used) = (Arc::clone(self), Arc::downgrade(&before));
        drop(before);
        tokio::spawn(async move {
            let last = Instant::now() + LAST_CALL;
            while used.strong_count() > 0 && Instant::now() < last {
                tokio::time::sleep(LOOK).await;
            }
            gone.close().await;
            retired.all().retain(|one| !Arc::ptr_eq(one, &gone));
        });
    }

    /// Closes all remaining connections at once.
    async fn close(&self) {
        let left = std::mem::take(&mut *self.all());
        join_all(left.iter().map(|connections| connections.close())).await;
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Connections>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
