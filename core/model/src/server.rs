//! A server's state, how far it is trusted, and the effects of its tools.

use serde::{Deserialize, Serialize};

/// The state of a server, with a reason if it is degraded or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Switched off in the configuration.
    Disabled,
    /// Its file is not approved yet.
    AwaitingApproval,
    /// Known from an earlier run, not connected.
    Cached,
    /// Being started.
    Connecting,
    /// Ready.
    Connected,
    /// Connected, but something does not work, such as listing its tools.
    Degraded(String),
    /// Waits for a person to log in.
    NeedsLogin,
    /// Stopped because it was not used; the next call starts it.
    Idle,
    /// Not usable. The text is the reason, and may end with the last lines of the server's stderr.
    Failed(String),
}

/// A [`ServerState`] without its reason, as configuration and output spell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// See [`ServerState::Disabled`].
    Disabled,
    /// See [`ServerState::AwaitingApproval`].
    AwaitingApproval,
    /// See [`ServerState::Cached`].
    Cached,
    /// See [`ServerState::Connecting`].
    Connecting,
    /// See [`ServerState::Connected`].
    Connected,
    /// See [`ServerState::Degraded`].
    Degraded,
    /// See [`ServerState::NeedsLogin`].
    NeedsLogin,
    /// See [`ServerState::Idle`].
    Idle,
    /// See [`ServerState::Failed`].
    Failed,
}

/// The one-character symbol of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    /// ● usable now.
    Full,
    /// ◐ on the way, or waiting for a person.
    Half,
    /// ○ not usable.
    Empty,
}

/// How far a server is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Its annotations count and its addresses are not checked.
    Trusted,
    /// The default: what it declares about itself is only a hint.
    #[default]
    Untrusted,
    /// Only the tools listed under `expose` are offered, and it may never ask the operator
    /// anything.
    Sandboxed,
}

/// The effect of running a tool on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Changes something.
    Write,
    /// Not known; treated as a write wherever it matters.
    Unknown,
}

// === impl ServerState ===

impl ServerState {
    /// The state without its reason.
    pub fn name(&self) -> StateName {
        match self {
            Self::Disabled => StateName::Disabled,
            Self::AwaitingApproval => StateName::AwaitingApproval,
            Self::Cached => StateName::Cached,
            Self::Connecting => StateName::Connecting,
            Self::Connected => StateName::Connected,
            Self::Degraded(_) => StateName::Degraded,
            Self::NeedsLogin => StateName::NeedsLogin,
            Self::Idle => StateName::Idle,
            Self::Failed(_) => StateName::Failed,
        }
    }

    /// Returns why the server is not fully usable, if there is a reason.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Degraded(reason) | Self::Failed(reason) => Some(reason),
            Self::AwaitingApproval => Some("its file is not trusted; run `capstan trust`"),
            Self::NeedsLogin => Some("it needs a login"),
            Self::Disabled | Self::Cached | Self::Connecting | Self::Connected | Self::Idle => None,
        }
    }
}

// === impl StateName ===

impl StateName {
    /// The state's word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Cached => "cached",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Degraded => "degraded",
            Self::NeedsLogin => "needs_login",
            Self::Idle => "idle",
            Self::Failed => "failed",
        }
    }

    /// The symbol shown before the server's name.
    pub fn glyph(self) -> Glyph {
        match self {
            Self::Connected | Self::Idle | Self::Cached => Glyph::Full,
            Self::Connecting | Self::Degraded | Self::AwaitingApproval | Self::NeedsLogin => {
                Glyph::Half
            }
            Self::Disabled | Self::Failed => Glyph::Empty,
        }
    }
}

// === impl Glyph ===

impl Glyph {
    /// The character.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "●",
            Self::Half => "◐",
            Self::Empty => "○",
        }
    }
}

// === impl Effect ===

impl Effect {
    /// The effect's word in configuration and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Unknown => "unknown",
        }
    }

    /// True if sending the call twice could change something twice.
    pub fn may_write(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write | Self::Unknown => true,
        }
    }
}
