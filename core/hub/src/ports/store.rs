//! What must outlive a process: approvals that were given and not used yet.

use std::error::Error;

use capstan_model::Kind;
use jiff::Timestamp;

use super::BoxFuture;

/// Keeps approvals. Shared by every process of one operator, so each operation is one atomic step.
pub trait Store: Send + Sync {
    /// Keeps an approval. Once this has answered, no crash loses it.
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Uses up one approval of exactly this call that is still good; whether there was one.
    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The approvals that are still good, oldest first, at most so many.
    fn list(&self, now: Timestamp, most: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>>;

    /// Forgets what is no longer good; how many there were.
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// What an approval is good for, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Who may use it.
    pub subject: String,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// Which one.
    pub item: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The version of the policy under which it was asked for.
    pub policy: String,
}

/// An approval for one call that has still to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The question that it answers.
    pub id: String,
    /// What it is good for.
    pub binding: Binding,
    /// From when on it is no longer good.
    pub expires_at: Timestamp,
}

/// The store cannot do what it is asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    /// What did not work.
    pub what: String,
    /// Why.
    #[source]
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}
