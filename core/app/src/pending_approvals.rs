//! What the command line needs to answer for running gateways.

use std::any::Any;

use capstan_hub::approvals::{Answer, Answered, OpenQuestion};
use capstan_hub::ports::BoxFuture;

use crate::AppError;

/// The gateways of this user that run on this machine, and the questions that lie open there.
pub trait PendingApprovals {
    /// What lies open now.
    fn questions(&self) -> BoxFuture<'_, Result<Seen, AppError>>;

    /// What lies open once that is something else than `seen`, or after a while.
    fn questions_after(&self, seen: Seen) -> BoxFuture<'_, Result<Seen, AppError>>;

    /// One question with all of its arguments.
    fn question<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<OpenQuestion, AppError>>;

    /// Answers a question, wherever it lies: what became of it, and where a rule was written.
    fn answer<'a>(
        &'a self,
        id: &'a str,
        answer: Answer,
    ) -> BoxFuture<'a, Result<(Answered, Option<String>), AppError>>;
}

/// What was seen.
pub struct Seen {
    /// How many gateways run.
    pub gateways: usize,
    /// The open questions of all of them.
    pub questions: Vec<OpenQuestion>,
    /// By which it is known whether something has changed since.
    pub mark: Box<dyn Any + Send>,
}
