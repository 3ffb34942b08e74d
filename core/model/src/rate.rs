//! What the calls of a rate are counted by.

use serde::Serialize;

/// Which calls count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateBy {
    /// Those of one caller.
    Caller,
    /// Those to one server.
    Server,
    /// Those to one tool, resource or prompt.
    Tool,
    /// All of them.
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
