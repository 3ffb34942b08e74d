//! The lists of rules as the configuration writes them.

use std::collections::HashMap;

use capstan_model::{ServerName, Verdict};

use super::rule::Rule;

/// The permission rules of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Rules for all servers.
    pub global: RuleList,
    /// Rules of one server, which match no other.
    pub servers: HashMap<ServerName, RuleList>,
    /// The verdict on a call that no rule matches; `None` leaves it to the front.
    pub default: Option<DefaultRule>,
    /// Defaults for the servers of files that set one for themselves only.
    pub server_defaults: HashMap<ServerName, DefaultRule>,
}

/// Three lists of rules.
#[derive(Clone, Debug, Default)]
pub struct RuleList {
    /// Rules that deny.
    pub deny: Vec<Rule>,
    /// Rules that ask.
    pub ask: Vec<Rule>,
    /// Rules that allow.
    pub allow: Vec<Rule>,
}

/// A rule in a list whose order decides.
#[derive(Clone, Debug)]
pub struct OrderedRule {
    /// Its verdict.
    pub verdict: Verdict,
    /// The calls that it matches.
    pub rule: Rule,
}

/// The verdict on a call that no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRule {
    /// One verdict for everything.
    Always(Verdict),
    /// Reads are allowed, all other calls ask.
    AskWrites,
}

// === impl RuleList ===

impl RuleList {
    /// The rules with this verdict, moved out.
    pub(super) fn take(&mut self, verdict: Verdict) -> Vec<Rule> {
        std::mem::take(match verdict {
            Verdict::Deny => &mut self.deny,
            Verdict::Ask => &mut self.ask,
            Verdict::Allow => &mut self.allow,
        })
    }
}

// === impl DefaultRule ===

impl DefaultRule {
    /// The value in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always(verdict) => verdict.as_str(),
            Self::AskWrites => "ask-writes",
        }
    }

    /// The stricter of two: the one that denies more or asks more.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |rule| match rule {
            Self::Always(Verdict::Allow) => 0,
            Self::AskWrites => 1,
            Self::Always(Verdict::Ask) => 2,
            Self::Always(Verdict::Deny) => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}
