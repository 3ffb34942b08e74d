//! The verdict of a rule on a call.

use serde::{Deserialize, Serialize};

/// A decision. The order is severity: of several verdicts the greatest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Run it.
    Allow,
    /// Run it once an operator says yes.
    Ask,
    /// Do not run it.
    Deny,
}

/// A verdict together with the rule that gave it, so that every refusal can be explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ruling {
    /// The decision.
    pub verdict: Verdict,
    /// The rule as the operator wrote it, for example `servers.linear.permissions.deny: delete_*`.
    pub rule: String,
    /// The origin of the verdict: an explicit rule or the default.
    pub by: By,
}

/// The origin of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A rule that matches the call. Remembered approvals do not answer a rule that asks.
    Rule,
    /// The pins: the definition of the tool is not approved. Remembered approvals do not count.
    Pins,
    /// The default, because no rule matches.
    Default,
}

// === impl Verdict ===

impl Verdict {
    /// The verdict's word in configuration and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}
