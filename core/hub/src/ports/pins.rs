//! The port for approved tool definitions.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::ServerName;

use super::{BoxFuture, Item, StoreError};
use crate::pins::fingerprint;

/// A store of approved definitions. All processes of one operator share it, so each operation is
/// one atomic step.
pub trait PinStore: Send + Sync {
    /// Prepares the store ahead of the first lookup.
    fn get_ready(&self) -> BoxFuture<'_, ()>;

    /// Returns the servers seen so far, with the digests of lists that are approved as a whole. A
    /// list is known to be so by [`Self::begin`] or [`Self::note`], with no approval since. The
    /// result may omit some servers that were seen.
    fn approved_digests(
        &self,
    ) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>>;

    /// Returns the approved definitions of a server; `None` if the server was never seen.
    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>>;

    /// Approves the lists of servers that were never seen, in one step. A server that another
    /// process recorded first is left unchanged. While the record of seen servers is lost, nothing
    /// is approved.
    fn begin<'a>(&'a self, new: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Records that the list with this digest is approved as a whole. `changes` is the server's
    /// number of approvals at the time of the comparison; if something was approved since, nothing
    /// happens.
    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Approves definitions, replacing earlier ones of the same tools.
    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Ends the state in which the record of seen servers is lost. Of the servers not seen since,
    /// those in `lost` count as servers with lost approvals and all others as never seen. Returns
    /// true if the state was active.
    fn end_loss<'a>(&'a self, lost: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The server that definitions belong to. A server of the same name that is started or reached in
/// another way is a different owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PinOwner {
    /// The server.
    pub server: ServerName,
    /// The digest of how the server is started or reached.
    pub identity: String,
}

/// A server that appears to be new, with its list.
#[derive(Clone, Debug)]
pub struct Newcomer {
    /// The owner of the list.
    pub owner: PinOwner,
    /// The digest of the list.
    pub sum: String,
    /// The list.
    pub items: Arc<[Item]>,
}

/// The approved definitions of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approved {
    /// The definitions.
    pub pins: Vec<Pin>,
    /// The number of approvals since the server was first seen.
    pub changes: i64,
    /// True if earlier approvals were lost.
    pub is_lost: bool,
}

/// One approved definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The tool.
    pub tool: String,
    /// The digest of the parts that a model and the rules read.
    pub fingerprint: String,
    /// The text of the parts that the digest covers.
    pub text: String,
}

// === impl Newcomer ===

impl Newcomer {
    /// Returns the definitions of the list one at a time. Together they are several times as large
    /// as the list.
    pub fn pins(&self) -> impl Iterator<Item = Pin> + Send {
        fingerprint::pins(&*self.items)
    }
}

// === impl Pin ===

impl Pin {
    /// True if `now` is the approved definition.
    pub(crate) fn is(&self, now: &Self) -> bool {
        self.fingerprint == now.fingerprint
    }
}
