//! The port for the files of answers that are too long to deliver at once.

use capstan_model::ServerName;
use capstan_wire::Json;
use jiff::Timestamp;

use super::{BoxFuture, StoreError};

/// The files of long answers. All processes of one operator share them; no other user can read
/// them.
pub trait AnswerFiles: Send + Sync {
    /// Saves an answer as it is, under an id that cannot be guessed.
    fn save<'a>(
        &'a self,
        about: &'a AnswerOwner,
        answer: &'a Json,
    ) -> BoxFuture<'a, Result<SavedAnswer, StoreError>>;

    /// Returns all saved answers, in any order.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ListedAnswer>, StoreError>>;

    /// Returns the answer; `None` if another process has removed it.
    fn load<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Json>, StoreError>>;

    /// Removes an answer, if it is still there.
    fn remove<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The owner of an answer, and what is needed to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOwner {
    /// A digest of the caller who may read it; hexadecimal.
    pub caller: String,
    /// The server that gave it.
    pub server: ServerName,
    /// The size of its pages, in bytes.
    pub page: usize,
    /// The [tags](capstan_policy::Tags) of its item, as a number.
    pub tags: u8,
}

/// An answer that has just been saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedAnswer {
    /// Its id: letters and digits.
    pub id: String,
    /// The path of its file.
    pub file: String,
}

/// A saved answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAnswer {
    /// Its id.
    pub id: String,
    /// Its owner.
    pub owner: AnswerOwner,
    /// Its size, in bytes.
    pub bytes: u64,
    /// The time at which it was saved.
    pub saved_at: Timestamp,
}
