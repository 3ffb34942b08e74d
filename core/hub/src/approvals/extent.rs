//! How far a yes reaches, and for how long.

use serde::{Deserialize, Serialize};

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// This one call.
    Once,
    /// More than that.
    Wider(Width, Span),
}

/// What a yes speaks of, beyond one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// This tool, resource or prompt, whatever the arguments.
    Item,
    /// This one, with exactly these arguments.
    Arguments,
    /// Whatever of this server only reads.
    ServerReads,
    /// Whatever this server offers.
    Server,
}

/// For how long a yes holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// As long as this conversation.
    Session,
    /// For ever: it becomes a rule of the configuration.
    Saved,
}

// === impl Width ===

impl Width {
    /// All of them, narrow ones first.
    pub const ALL: [Self; 4] = [Self::Arguments, Self::Item, Self::ServerReads, Self::Server];

    /// The word for it in forms, on the control socket and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Item => "tool",
            Self::Arguments => "arguments",
            Self::ServerReads => "server_reads",
            Self::Server => "server",
        }
    }

    /// The width of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.as_str() == word)
    }
}

// === impl Span ===

impl Span {
    /// The word for it on the control socket and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Saved => "saved",
        }
    }

    /// The span of a word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Session, Self::Saved].into_iter().find(|span| span.as_str() == word)
    }
}
