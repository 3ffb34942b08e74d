//! The gateway from outside: the real binary, real servers, real clients.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

#[path = "../leftovers/mod.rs"]
mod leftovers;
mod stage;
mod stdio;
mod streams;
mod peer;
mod progress;
mod spills;
mod questions;
mod pins;
mod http;
mod access;
mod auth;
mod auth_server;
mod handles;
mod own_accounts;
mod public_url;
mod ending;
mod servers;
mod hidden;
mod ambiguous;
mod killed;
mod life;
mod overrides;
mod telemetry;
mod tasks;
mod trail;
mod verdicts;
mod flows;
mod retries;
mod rug_pulls;
mod approvals;
mod approval_forms;
mod confirm;
