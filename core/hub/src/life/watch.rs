//! Periodic check of one server: stops it if it is idle, and pings it if it is silent.

use std::time::Duration;

use futures::FutureExt;
use tracing::{info, warn};

use super::server::{Server, is_connected};
use super::supervisor::lock;
use crate::pipeline::System;

/// The silence after which a server without requests in flight is pinged.
const SILENCE: Duration = Duration::from_mins(1);

/// The silence after which a server with requests in flight is pinged.
const LONG_WAIT: Duration = Duration::from_secs(30);

impl Server {
    /// Stops the server if it exceeded its idle timeout, and pings it if it is silent.
    pub(super) fn look(&self) {
        let (Some(care), Some(supervisor)) = (&self.care, &self.supervisor) else { return };
        if !is_connected(&self.backend.state()) {
            *lock(&care.silent) = None;
            return;
        }
        let now = supervisor.now();
        let timeout = care.idle_timeout(supervisor.calls_per_hour(self.name()));
        let mut holds = lock(&self.holds);
        if let (Some(idle), Some(timeout)) = (holds.idle(now), timeout)
            && idle >= timeout
        {
            // The lock is held, so that no new use can begin meanwhile.
            self.backend.disconnect();
            info!(server = %self.name(), ?idle, "stopped, because it is idle");
            return;
        }
        let patience = if holds.in_flight() { LONG_WAIT } else { SILENCE };
        let quiet = holds.quiet(now);
        drop(holds);
        let mut checked = lock(&care.checked);
        if quiet >= patience && now.saturating_sub(*checked) >= patience {
            *checked = now;
            drop(checked);
            self.in_background(|server| async move { server.ask_after().await }.boxed());
        }
    }

    /// Pings the server. If it does not answer and nothing holds it, it is disconnected, so that
    /// the next use gets a new connection. If it is in use, it may be too busy to answer and is
    /// only marked as silent.
    async fn ask_after(&self) {
        let (Some(care), Some(supervisor)) = (&self.care, &self.supervisor) else { return };
        let answer = self.backend.inform(&System::ping()).await;
        let Err(error) = answer else {
            *lock(&care.silent) = None;
            return;
        };
        let mut holds = lock(&self.holds);
        let now = supervisor.now();
        // A request may have begun or ended meanwhile.
        if holds.quiet(now) < LONG_WAIT.min(SILENCE) || !is_connected(&self.backend.state()) {
            return;
        }
        warn!(server = %self.name(), reason = ?error.to_string(), "it does not answer");
        if holds.idle(now).is_some() {
            self.backend.disconnect();
        } else {
            drop(holds);
            *lock(&care.silent) = Some(format!("it does not answer: {error}"));
        }
    }
}
