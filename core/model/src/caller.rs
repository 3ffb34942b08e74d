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
    /// Whether access rules bind it.
    pub binding: Binding,
}

/// Whether access rules bind a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Binding {
    /// They do not: whoever sits at the machine is the operator, and so is who starts the gateway
    /// as a child on its standard streams.
    #[default]
    Free,
    /// They do: it came over the network.
    Access,
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
        Self {
            subject: "operator".to_owned(),
            roles: Vec::new(),
            caller_id: None,
            front,
            binding: Binding::Free,
        }
    }

    /// Somebody who reached the gateway over the network: access rules bind them.
    pub fn remote(subject: impl Into<String>, roles: Vec<String>) -> Self {
        let subject = subject.into();
        Self { subject, roles, binding: Binding::Access, ..Self::operator(Front::Gateway) }
    }

    /// Somebody at the gateway who did not say who they are, and whom no access rules bind.
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
