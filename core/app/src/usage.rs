//! How often servers are called, as gateways have counted it.

use std::collections::HashMap;

use capstan_hub::ports::{BoxFuture, Pace};
use capstan_model::ServerName;

use crate::Setup;

/// Knows how often servers are called.
pub trait Usage: Send + Sync {
    /// How often each server is called and how long a gateway keeps it without use. Empty when
    /// that is not known.
    fn usage<'a>(&'a self, setup: &'a Setup) -> BoxFuture<'a, HashMap<ServerName, Pace>>;
}
