//! The port for the tools that a client can search.

use std::sync::Arc;

use capstan_model::{CallError, CallTools};

use super::BoxFuture;
use crate::search::ToolPool;

/// The tools that one client could be permitted to call. Its own tools find, describe and call
/// these, and no others.
pub trait ToolLists: Send + Sync {
    /// Reads the tools, prepared for search.
    ///
    /// # Errors
    /// When the lists cannot be read.
    fn load(&self) -> BoxFuture<'_, Result<Arc<ToolPool>, CallError>>;
}

/// Capstan's own tools, as one client has them.
#[derive(Clone, Copy)]
pub struct OwnTools<'a> {
    /// The tools that call others.
    pub calls: CallTools,
    /// The tools that can be found.
    pub lists: &'a dyn ToolLists,
}
