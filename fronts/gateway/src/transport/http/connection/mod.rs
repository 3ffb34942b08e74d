//! One TCP connection below the level of requests.
//!
//! [`head_scan`] refuses ambiguous request heads, [`timeouts`] closes connections that stall, and
//! [`connection_state`] is shared by a connection's reader, requests and answers.

pub(crate) mod head_scan;
pub(crate) mod timeouts;
pub(crate) mod connection_state;
