//! The keys of `[gateway.limits]`.

use std::time::Duration;

use crate::settings::define::keys;
use crate::settings::form::{Size, Time};

keys! {
    /// Limits on requests, connections and sessions.
    pub merged GatewayLimits
    keys {
        /// The maximum size of a request.
        max_body: u64 as Size = 4 << 20, nearest;
        /// The maximum number of open connections.
        max_connections: u32 = 4096, nearest;
        /// The maximum number of open sessions of clients of the legacy era.
        max_sessions: u32 = 10_000, nearest;
        /// The idle time after which such a session ends.
        session_idle: Duration as Time = Duration::from_mins(30), nearest;
    }
}
