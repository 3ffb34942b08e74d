//! Rates: limits on the number of calls in a period. The hub counts the calls.

use std::fmt;
use std::time::Duration;

use capstan_model::{ItemId, Kind, Verdict};

use crate::pattern::{Arguments, Pattern};

/// A limit on the number of calls in a period.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The maximum number of calls.
    pub limit: u32,
    /// The period.
    pub every: Duration,
    /// The calls that are counted together.
    pub by: RateBy,
    /// The tools that it applies to; empty for everything that can be called.
    pub tools: Vec<Pattern>,
    /// A text for callers, in addition to the limit.
    pub reason: Option<String>,
}

/// The calls that are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

// === impl Rate ===

impl Rate {
    /// True if both limit the same calls in the same way; their reasons may differ.
    pub fn limits_like(&self, other: &Self) -> bool {
        let Self { limit, every, by, tools, reason: _ } = self;
        (limit, every, by, tools) == (&other.limit, &other.every, &other.by, &other.tools)
    }

    /// True if one of its patterns matches a call of a tool with these spellings and arguments.
    pub fn matches_tool(&self, names: &[String], arguments: Arguments<'_>) -> bool {
        // Matches like a deny rule: in doubt, the rate applies.
        self.tools.iter().any(|pattern| pattern.matches(names, arguments, Verdict::Deny))
    }

    /// The name of the group of calls that a call is counted in.
    pub fn group(&self, subject: &str, id: &ItemId, kind: Kind) -> String {
        match self.by {
            RateBy::Caller => subject.to_owned(),
            RateBy::Server => id.server.to_string(),
            // A caller can invent any number of URIs, so they count for their server.
            RateBy::Tool if kind == Kind::Resource => id.server.to_string(),
            RateBy::Tool => id.to_string(),
            RateBy::All => String::new(),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            RateBy::Caller => "for this caller",
            RateBy::Server => "for this server",
            RateBy::Tool => "for this tool",
            RateBy::All => "in all",
        };
        let calls = if self.limit == 1 { "call" } else { "calls" };
        write!(f, "{} {calls} in {:?} {by}", self.limit, self.every)
    }
}
