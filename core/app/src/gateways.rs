//! Port for running gateways of this user.

use std::sync::Arc;

use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;

use crate::api::Interact;
use crate::{AppError, Selection};

/// Sends requests to the gateways of this user that run on this machine.
pub trait Gateways: Send + Sync {
    /// Sends a request, forwards events and questions to the front, and returns the result.
    ///
    /// `request` builds the request; its argument is the digest that the gateway's configuration
    /// must have.
    fn send<'a>(
        &'a self,
        which: Which<'a>,
        request: &'a (dyn Fn(Option<String>) -> Json + Send + Sync),
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, NotRun>>;
}

/// Selects a gateway.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The gateway with this process id.
    Process(u32),
    /// The only gateway, or the only one with the configuration that is selected here.
    Only(&'a Selection),
    /// The only gateway with exactly the configuration that is selected here.
    Like(&'a Selection),
}

/// The reason why an operation did not complete in a gateway.
#[derive(Debug)]
pub enum NotRun {
    /// No gateway accepted it; nothing was done.
    Here,
    /// It failed.
    Failed(Box<AppError>),
}

impl From<AppError> for NotRun {
    fn from(error: AppError) -> Self {
        Self::Failed(Box::new(error))
    }
}
