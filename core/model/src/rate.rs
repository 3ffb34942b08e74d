//! How the calls of a rate are grouped.

use serde::Serialize;

/// The calls that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateBy {
    /// Calls of one caller.
    Caller,
    /// Calls to one server.
    Server,
    /// Calls to one tool, resource or prompt.
    Tool,
    /// All calls.
    All,
}

// === impl RateBy ===

impl RateBy {
    /// The word in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Server => "server",
            Self::Tool => "tool",
            Self::All => "all",
        }
    }
}
