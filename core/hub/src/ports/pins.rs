//! The definitions of tools that were approved, as they are kept.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::ServerName;

use super::{BoxFuture, Item, StoreError};
use crate::pins::fingerprint;

/// Keeps approved definitions. Shared by every process of one operator, so each operation is one
/// atomic step.
pub trait PinStore: Send + Sync {
    /// Does ahead of time what must be done before anything can be looked up.
    fn get_ready(&self) -> BoxFuture<'_, ()>;

    /// The servers that were seen, each with the sum of its list where that is known to be approved
    /// as a whole: by [`Self::begin`] or [`Self::note`], and with nothing approved since. Some that
    /// were seen may not be among them.
    fn sums(&self) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>>;

    /// What was approved of a server; `None` when it was never seen.
    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>>;

    /// Approves what servers have that were never seen, in one step. Nothing happens to those that
    /// somebody else has seen first, and nothing is approved where it is not known who was seen.
    fn begin<'a>(&'a self, new: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes note that the list with this sum was found to be approved as a whole when so much had
    /// been approved. Where something was approved since, nothing happens.
    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Approves definitions in the place of those that the tools had.
    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends that it is not known who was seen: among those that were not seen since, these count as
    /// lost, and others as never seen. Whether there was something to end.
    fn end_loss<'a>(&'a self, lost: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Whose definitions they are. A server of the same name that is started or reached in another way
/// is another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PinOwner {
    /// The server.
    pub server: ServerName,
    /// How it is started or reached, as a digest.
    pub identity: String,
}

/// A server that seems never to have been seen, with its list.
#[derive(Clone, Debug)]
pub struct Newcomer {
    /// Whose list it is.
    pub owner: PinOwner,
    /// The sum of the list.
    pub sum: String,
    /// The list.
    pub items: Arc<[Item]>,
}

/// What was approved of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approved {
    /// The definitions.
    pub pins: Vec<Pin>,
    /// How often something was approved since the server was first seen.
    pub changes: i64,
    /// Whether something had been approved before that is lost.
    pub is_lost: bool,
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

// === impl Newcomer ===

impl Newcomer {
    /// The definitions of the list, made one after the other: all of them at once are several times
    /// as large as the list.
    pub fn pins(&self) -> impl Iterator<Item = Pin> + Send {
        fingerprint::pins(&*self.items)
    }
}

// === impl Pin ===

impl Pin {
    /// Whether this is the definition that was approved.
    pub(crate) fn is(&self, now: &Self) -> bool {
        self.fingerprint == now.fingerprint
    }
}
