//! One rule: the calls it matches, and for how long.

use std::collections::BTreeSet;
use std::fmt;

use capstan_model::{By, Effect, Ruling, ServerName, Verdict};
use jiff::Timestamp;

use crate::pattern::{Arguments, Pattern};

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The items and arguments that it matches.
    pub pattern: Pattern,
    /// The operator's reason, shown to the caller.
    pub reason: Option<String>,
    /// The time when it expires.
    pub expires_at: Option<Timestamp>,
    /// The servers that it can match.
    pub reach: Reach,
    /// The effect that an item must have, if the rule names one.
    pub effect: Option<RuleEffect>,
    /// Its place in the configuration, for example `permissions.deny`.
    pub place: String,
}

/// The servers that a rule can match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All of them.
    #[default]
    All,
    /// Only these: a project file loosens nothing for servers it did not bring.
    Only(BTreeSet<ServerName>),
}

/// The effect that an item must have for a rule to match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    /// It certainly changes nothing.
    Read,
    /// It changes something, or may do so.
    Write,
}

/// A call as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Its server.
    pub server: &'a ServerName,
    /// Every spelling of the item, the bare name among them.
    pub names: &'a [String],
    /// Its arguments.
    pub arguments: Arguments<'a>,
    /// The effect of the item.
    pub effect: Effect,
    /// The time by which rules expire.
    pub now: Timestamp,
}

// === impl Rule ===

impl Rule {
    /// A rule without conditions.
    pub fn new(pattern: Pattern, place: impl Into<String>) -> Self {
        let place = place.into();
        let (reason, expires_at, effect) = (None, None, None);
        Self { pattern, reason, expires_at, reach: Reach::All, effect, place }
    }

    pub(crate) fn in_force(&self, server: &ServerName, now: Timestamp) -> bool {
        self.reach.includes(server) && self.expires_at.is_none_or(|end| now < end)
    }

    /// True if it depends only on the item.
    pub(crate) fn is_steady(&self) -> bool {
        self.expires_at.is_none() && !self.pattern.has_matchers()
    }

    pub(crate) fn matches(&self, question: &Question<'_>, verdict: Verdict) -> bool {
        self.in_force(question.server, question.now)
            && self.effect.is_none_or(|effect| effect.fits(question.effect))
            && self.pattern.matches(question.names, question.arguments, verdict)
    }

    pub(crate) fn ruling(&self, verdict: Verdict) -> Ruling {
        let rule = match &self.reason {
            Some(reason) => format!("{self} ({reason})"),
            None => self.to_string(),
        };
        Ruling { verdict, rule, by: By::Rule }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.pattern.as_str())
    }
}

// === impl Reach ===

impl Reach {
    pub(crate) fn includes(&self, server: &ServerName) -> bool {
        match self {
            Self::All => true,
            Self::Only(servers) => servers.contains(server),
        }
    }
}

// === impl RuleEffect ===

impl RuleEffect {
    /// True if an item with this effect matches. An unknown effect counts as a write.
    fn fits(self, effect: Effect) -> bool {
        match (self, effect) {
            (Self::Read, Effect::Read) | (Self::Write, Effect::Write | Effect::Unknown) => true,
            (Self::Read, Effect::Write | Effect::Unknown) | (Self::Write, Effect::Read) => false,
        }
    }
}
