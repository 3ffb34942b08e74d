//! The definitions of tools that were approved, as they are kept.

use capstan_model::ServerName;

use super::{BoxFuture, StoreError};

/// Keeps approved definitions. Shared by every process of one operator, so each operation is one
/// atomic step.
pub trait PinStore: Send + Sync {
    /// What was approved of a server; `None` when it was never seen.
    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Vec<Pin>>, StoreError>>;

    /// Approves what a server has that was never seen. Where somebody else was first, nothing
    /// happens.
    fn begin<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Approves definitions in the place of those that the tools had.
    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// Whose definitions they are. A server of the same name that is started or reached in another way
/// is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinOwner {
    /// The server.
    pub server: ServerName,
    /// How it is started or reached, as a digest.
    pub identity: String,
}

/// One approved definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The tool.
    pub tool: String,
    /// The digest of what a model and the rules read of it.
    pub fingerprint: String,
    /// That, as a person reads it.
    pub text: String,
}
