//! Port for call rates of servers, as counted by gateways.

use std::collections::HashMap;

use capstan_hub::ports::{BoxFuture, Pace};
use capstan_model::ServerName;

use crate::Setup;

/// Reports how often servers are called.
pub trait Usage: Send + Sync {
    /// The call rate of each server and the idle time after which a gateway stops it.
    ///
    /// Empty if nothing was counted.
    fn usage<'a>(&'a self, setup: &'a Setup) -> BoxFuture<'a, HashMap<ServerName, Pace>>;
}
