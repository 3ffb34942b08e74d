//! Per-client limits on shared resources.
//!
//! [`fair_share`] counts slots per client, [`client_names`] tells unauthenticated clients apart by
//! name and IP address, and [`byte_budget`] bounds memory per session and in total.

pub(crate) mod fair_share;
pub(crate) mod client_names;
pub(crate) mod byte_budget;
