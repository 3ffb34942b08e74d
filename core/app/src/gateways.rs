//! Running gateways of this user.

use std::sync::Arc;

use capstan_hub::ports::BoxFuture;
use capstan_wire::Json;

use crate::api::Interact;
use crate::{AppError, Selection};

/// Reaches the gateways of this user that run on this machine.
pub trait Gateways: Send + Sync {
    /// Sends a request, passes events and questions on to the front, and returns the result.
    ///
    /// `request` makes the request for a gateway that must have a configuration of this digest.
    fn send<'a>(
        &'a self,
        which: Which<'a>,
        request: &'a (dyn Fn(Option<String>) -> Json + Send + Sync),
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Json, NotRun>>;
}

/// Which gateway is meant.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// The one with this process id.
    Process(u32),
    /// The only one, or the only one with the configuration that is selected here.
    Only(&'a Selection),
    /// The only one with exactly the configuration that is selected here.
    Like(&'a Selection),
}

/// Why an operation was not run to its end in a gateway.
#[derive(Debug)]
pub enum NotRun {
    /// No gateway took it; nothing was done.
    Here,
    /// It failed.
    Failed(Box<AppError>),
}

impl From<AppError> for NotRun {
    fn from(error: AppError) -> Self {
        Self::Failed(Box::new(error))
    }
}
