//! How long lists wait for servers that were never seen.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_model::ServerName;

/// The time until which lists wait for each server. It runs from the first list that needs the
/// server, and only once. There is one entry per server.
#[derive(Default)]
pub(crate) struct FirstWaits(Mutex<HashMap<ServerName, Duration>>);

// === impl FirstWaits ===

impl FirstWaits {
    /// The rest of a server's wait; begins it if this is the first list.
    pub(crate) fn left(&self, server: &ServerName, now: Duration, wait: Duration) -> Duration {
        let deadline = *self.lock().entry(server.clone()).or_insert(now.saturating_add(wait));
        deadline.saturating_sub(now)
    }

    /// Ends the wait for a server that has failed.
    pub(crate) fn end(&self, server: &ServerName) {
        self.lock().insert(server.clone(), Duration::ZERO);
    }

    /// Forgets servers that were replaced or removed.
    pub(crate) fn forget(&self, servers: &HashSet<ServerName>) {
        self.lock().retain(|server, _| !servers.contains(server));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerName, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_server_runs_once_until_it_is_another() {
        let (waits, second) = (FirstWaits::default(), Duration::from_secs);
        let [a, b] = ["a", "b"].map(|name| name.parse::<ServerName>().unwrap());
        assert_eq!(waits.left(&a, second(10), second(8)), second(8));
        assert_eq!(waits.left(&a, second(15), second(8)), second(3));
        assert_eq!(waits.left(&b, second(15), second(8)), second(8));
        for now in [18, 100] {
            assert_eq!(waits.left(&a, second(now), second(8)), Duration::ZERO);
        }
        waits.end(&b);
        assert_eq!(waits.left(&b, second(16), second(8)), Duration::ZERO);
        waits.forget(&HashSet::from([a.clone()]));
        assert_eq!(waits.left(&a, second(200), second(8)), second(8));
        assert_eq!(waits.left(&b, second(200), second(8)), Duration::ZERO);
    }
}
