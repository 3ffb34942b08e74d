//! Where an answer goes that is to hold for ever: the operator's own configuration.

use capstan_model::{Effect, ServerName};

use super::BoxFuture;

/// Writes rules into the configuration.
pub trait RuleBook: Send + Sync {
    /// Adds a rule that allows; where it was written, in words for the operator.
    fn allow<'a>(&'a self, rule: &'a NewRule) -> BoxFuture<'a, Result<String, NotSaved>>;
}

/// A rule that allows what somebody said yes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRule {
    /// The server that it speaks of; its origin says which file is the right one.
    pub server: ServerName,
    /// The pattern.
    pub pattern: String,
    /// Only items with this effect; `None` for all.
    pub effect: Option<Effect>,
}

/// Why a rule was not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct NotSaved {
    /// In words for the operator.
    pub reason: String,
}
