//! How a server is: its state, how far it is believed, and what its tools do.

use serde::{Deserialize, Serialize};

/// The state of a server, with what there is to say about it.
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
    /// Stopped because nobody used it; the next call starts it.
    Idle,
    /// Not usable; the text says why, and the last lines of its stderr may follow.
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

/// The one-character sign of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    /// ● usable now.
    Full,
    /// ◐ on the way, or waiting for somebody.
    Half,
    /// ○ not usable.
    Empty,
}

/// How far a server is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Its annotations count and its addresses are not checked.
    Trusted,
    /// The default: what it says about itself is a hint.
    #[default]
    Untrusted,
    /// Only the tools listed under `expose`, and it may never ask the operator anything.
    Sandboxed,
}

/// What running a tool does to the world.
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

    /// Why the server is not well, where there is something to say.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Degraded(reason) | Self::Failed(reason) => Some(reason),
            Self::AwaitingApproval => Some("its file is not approved; run `capstan trust`"),
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

    /// The sign shown before the server's name.
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

    /// Whether sending the call twice could change something twice.
    pub fn may_write(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write | Self::Unknown => true,
        }
    }
}
