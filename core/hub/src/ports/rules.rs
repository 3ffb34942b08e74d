//! The port that saves permanent approvals as rules in the operator's configuration.

use capstan_model::{Effect, ServerName};

use super::BoxFuture;

/// Writes rules into the configuration.
pub trait RuleBook: Send + Sync {
    /// Adds an allow rule. Returns a text for the operator that says where the rule was written.
    fn allow<'a>(&'a self, rule: &'a NewRule) -> BoxFuture<'a, Result<String, NotSaved>>;
}

/// An allow rule made from an approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// The server that the rule applies to. Its origin determines the file.
    pub server: ServerName,
    /// The pattern.
    pub pattern: String,
    /// Limits the rule to items with this effect; `None` for all.
    pub effect: Option<Effect>,
}

/// The reason that a rule was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotSaved {
    /// A text for the operator.
    pub reason: String,
}
