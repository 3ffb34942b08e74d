//! The keys of `[gateway.limits]`.

use std::time::Duration;

use super::define::keys;
use super::form::{Size, Time};

keys! {
    /// The bounds of the gateway.
    pub merged GatewayLimits
    keys {
        /// The largest request.
        max_body: u64 as Size = 4 << 20, nearest;
        /// How many connections may be open.
        max_connections: u32 = 4096, nearest;
        /// How many sessions of clients with a handshake may be open.
        max_sessions: u32 = 10_000, nearest;
        /// How long such a session may be idle.
        session_idle: Duration as Time = Duration::from_mins(30), nearest;
    }
}
