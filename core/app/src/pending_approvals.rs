//! Port for the questions that are open in running gateways.

use std::any::Any;

use capstan_hub::approvals::{Answer, Answered, OpenQuestion};
use capstan_hub::ports::BoxFuture;

use crate::AppError;

/// Open questions in the gateways of this user that run on this machine.
pub trait PendingApprovals {
    /// The questions that are open now.
    fn questions(&self) -> BoxFuture<'_, Result<Seen, AppError>>;

    /// Waits until the open questions differ from `seen`, or for a while, and returns them.
    fn questions_after(&self, seen: Seen) -> BoxFuture<'_, Result<Seen, AppError>>;

    /// One question with all of its arguments.
    fn question<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<OpenQuestion, AppError>>;

    /// Answers a question in any gateway; returns the outcome, and the place of a saved rule.
    fn answer<'a>(
        &'a self,
        id: &'a str,
        answer: Answer,
    ) -> BoxFuture<'a, Result<(Answered, Option<String>), AppError>>;
}

/// A snapshot of the open questions.
pub struct Seen {
    /// Number of running gateways.
    pub gateways: usize,
    /// The open questions of all gateways.
    pub questions: Vec<OpenQuestion>,
    /// The revisions that were seen, to detect later changes.
    pub mark: Box<dyn Any + Send>,
}
