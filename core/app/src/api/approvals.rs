//! Questions about calls that wait for the operator in a running gateway.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::approvals::{self, AnswerError, Answered, OpenQuestion};
use capstan_hub::ports::BoxFuture;
use futures::future::select;
use serde::{Deserialize, Serialize};

use super::{Interact, Local, Operation};
use crate::{AppError, ErrorKind, HubPurpose};

/// Maximum wait of one request for a change.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Lists the open questions.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListApprovals {
    /// Wait for another list than this one.
    pub after: Option<KnownApprovals>,
}

/// A list of open questions that is known already.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct KnownApprovals {
    /// The revision of the list.
    pub revision: u64,
    /// The longest wait for another revision. After it, the unchanged list is the result.
    pub wait: Duration,
}

/// The result of [`ListApprovals`].
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenApprovals {
    /// The revision of this list.
    pub revision: u64,
    /// The questions, with shortened arguments.
    pub questions: Vec<OpenQuestion>,
}

/// Shows one question with all of its arguments.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShowApproval {
    /// The id of the question.
    pub id: String,
}

/// Answers a question.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnswerApproval {
    /// The id of the question.
    pub id: String,
    /// The answer.
    pub answer: approvals::Answer,
}

/// The result of [`AnswerApproval`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The outcome of the call.
    pub outcome: Answered,
    /// The rule that was added, in words.
    pub saved: Option<String>,
}

impl Operation for ListApprovals {
    const NAME: &'static str = "approvals/list";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = OpenApprovals;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<OpenApprovals, AppError>> {
        Box::pin(async move {
            let approvals = local.hub.approvals();
            if let Some(KnownApprovals { revision, wait }) = self.after {
                let late = local.hub.clock().sleep(wait.min(MAX_WAIT));
                let changed = std::pin::pin!(approvals.changed(revision));
                drop(select(changed, late).await);
            }
            let (revision, questions) = approvals.questions().await;
            Ok(OpenApprovals { revision, questions })
        })
    }
}

impl Operation for ShowApproval {
    const NAME: &'static str = "approvals/show";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = OpenQuestion;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<OpenQuestion, AppError>> {
        Box::pin(async move { Ok(local.hub.approvals().question(&self.id).await?) })
    }
}

impl Operation for AnswerApproval {
    const NAME: &'static str = "approvals/answer";
    const PURPOSE: HubPurpose = HubPurpose::Calls;
    type Output = ApprovalAnswered;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        _: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<ApprovalAnswered, AppError>> {
        Box::pin(async move {
            let (outcome, saved) = local.hub.approvals().answer(&self.id, self.answer).await?;
            Ok(ApprovalAnswered { outcome, saved })
        })
    }
}

impl From<AnswerError> for AppError {
    fn from(error: AnswerError) -> Self {
        let is_unknown = matches!(error, AnswerError::Unknown { .. });
        let kind = if is_unknown { ErrorKind::NotFound } else { ErrorKind::Denied };
        Self::caused(kind, &error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_understood_is_no_yes() {
        for answer in [
            r#""yes""#,
            r#""Yes""#,
            r#""""#,
            r#"{"yes": "always"}"#,
            r#"{"yes": {"wider": ["item"]}}"#,
            r#"{"yes": {"wider": ["everything", "saved"]}}"#,
            r#"{"no": {"wider": ["item", "saved"]}}"#,
        ] {
            let text = format!(r#"{{"id": "a", "answer": {answer}}}"#);
            assert!(serde_json::from_str::<AnswerApproval>(&text).is_err(), "{answer}");
        }
    }
}
