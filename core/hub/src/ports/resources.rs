//! The port for the resources that a client sees.

use super::{BoxFuture, Listing};

/// The resources of all servers as one client sees them. The pipeline finds a resource by its URI
/// among them.
pub trait ResourceLists: Send + Sync {
    /// Reads the lists of resources or templates, so that the [map of
    /// URIs](crate::catalog::Uris) has them.
    fn load(&self, listing: Listing) -> BoxFuture<'_, ()>;
}
