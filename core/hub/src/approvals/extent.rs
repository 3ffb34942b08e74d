//! How much an approval covers, and for how long.

use serde::{Deserialize, Serialize};

/// How much an approval covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// This call only.
    Once,
    /// More than this call.
    Wider(Width, Span),
}

/// The calls that an approval covers, beyond a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// This tool, resource or prompt, with any arguments.
    Item,
    /// This item with exactly these arguments.
    Arguments,
    /// Every item of this server whose effect is a read.
    ServerReads,
    /// Every item of this server.
    Server,
}

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Span {
    /// Until the session ends.
    Session,
    /// Permanently: it becomes a rule of the configuration.
    Saved,
}

// === impl Width ===

impl Width {
    /// All widths, narrowest first.
    pub const ALL: [Self; 4] = [Self::Arguments, Self::Item, Self::ServerReads, Self::Server];

    /// The word in forms, on the control socket and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Item => "tool",
            Self::Arguments => "arguments",
            Self::ServerReads => "server_reads",
            Self::Server => "server",
        }
    }

    /// Parses the word of a width.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|width| width.as_str() == word)
    }
}

// === impl Span ===

impl Span {
    /// The word on the control socket and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Saved => "saved",
        }
    }

    /// Parses the word of a span.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Session, Self::Saved].into_iter().find(|span| span.as_str() == word)
    }
}
