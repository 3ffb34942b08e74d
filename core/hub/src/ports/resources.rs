//! The port for the resources that a client sees.

use std::sync::Arc;

use super::{BoxFuture, Listing};
use crate::catalog::UriMap;

/// The resources of all servers as one client sees them. The pipeline finds a resource by its URI in
/// them.
pub trait ResourceLists: Send + Sync {
    /// Returns the URIs of resources or templates; `None` if there is no such list.
    fn uris(&self, listing: Listing) -> BoxFuture<'_, Option<Arc<UriMap>>>;
}
