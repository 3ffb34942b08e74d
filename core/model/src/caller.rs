//! Who asks.

use serde::Serialize;

/// The party on whose behalf a call is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Stable identity written to the audit log: `operator`, or the subject of a token.
    pub subject: String,
    /// Roles the access rules look at.
    pub roles: Vec<String>,
    /// What the client calls itself; informational only, never a ground for a decision.
    pub caller_id: Option<String>,
    /// The door the call came through.
    pub front: Front,
}

/// The doors of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Front {
    /// A one-shot command.
    Cli,
    /// The interactive terminal.
    Terminal,
    /// The gateway, over standard input and output or HTTP.
    Gateway,
}

// === impl Caller ===

impl Caller {
    /// The person whose configuration this is, at the given front.
    pub fn operator(front: Front) -> Self {
        Self { subject: "operator".to_owned(), roles: Vec::new(), caller_id: None, front }
    }

    /// Somebody at the gateway who did not say who they are.
    pub fn anonymous() -> Self {
        Self { subject: "anonymous".to_owned(), ..Self::operator(Front::Gateway) }
    }
}

// === impl Front ===

impl Front {
    /// The front's word in configuration, logs and the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Terminal => "terminal",
            Self::Gateway => "gateway",
        }
    }
}
