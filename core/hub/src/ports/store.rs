//! The port for state that must outlive a process: approvals that are not used yet, and questions
//! whose calls were refused.

use std::error::Error;

use capstan_model::Kind;
use jiff::Timestamp;

use super::BoxFuture;

/// A store of approvals. All processes of one operator share it, so each operation is one atomic
/// step.
pub trait Store: Send + Sync {
    /// Saves an approval. Once this returns, a crash cannot lose it.
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Uses up one valid approval of exactly this call. Returns false if there is none.
    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the valid approvals, oldest first, at most `most`.
    fn list(&self, now: Timestamp, most: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>>;

    /// Deletes expired approvals and questions, and returns the number of approvals.
    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Saves a question, so that it can be answered after its process has ended.
    fn keep<'a>(&'a self, question: &'a KeptQuestion) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Returns the questions that can still be answered, oldest first, at most `most`.
    fn kept(
        &self,
        now: Timestamp,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<KeptQuestion>, StoreError>>;

    /// Deletes a question. Returns false if there is none with this id.
    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The one call that an approval is valid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The caller who may use it.
    pub subject: String,
    /// Tool, resource or prompt.
    pub kind: Kind,
    /// The item.
    pub item: String,
    /// The digest of the arguments.
    pub arguments: String,
    /// The version of the policy at the time of the question.
    pub policy: String,
}

/// An approval for one call that is still to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The id of the question that it answers.
    pub id: String,
    /// The call that it is valid for.
    pub binding: Binding,
    /// The time at which it expires.
    pub expires_at: Timestamp,
}

/// A question whose call was refused, and which can still be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptQuestion {
    /// The approval that a yes gives; it expires when the question does.
    pub grant: Grant,
    /// The question as the operator sees it, without secrets, as JSON.
    pub shown: String,
}

/// A failed operation of the store.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    /// The operation that failed.
    pub what: String,
    /// The cause.
    #[source]
    pub cause: Option<Box<dyn Error + Send + Sync>>,
}
