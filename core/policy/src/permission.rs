//! Allow, ask and deny lists, global and per server.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use capstan_model::{By, Effect, Ruling, ServerName, Verdict};
use jiff::Timestamp;

use crate::pattern::{Arguments, Pattern};

/// Every permission rule of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// Rules for all servers.
    pub global: RuleList,
    /// Rules of one server, which speak of no other.
    pub servers: HashMap<ServerName, RuleList>,
    /// What is said of a call that no rule speaks of; `None` leaves it to the front.
    pub default: Option<DefaultRule>,
    /// The same for the servers of files that say so only for themselves.
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

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it speaks of.
    pub pattern: Pattern,
    /// What to tell the caller about it, in the operator's words.
    pub reason: Option<String>,
    /// From when on it no longer counts.
    pub expires_at: Option<Timestamp>,
    /// Which servers it can speak of.
    pub reach: Reach,
    /// Only of items that do this, if it says so.
    pub effect: Option<RuleEffect>,
    /// Where it stands, for example `permissions.deny`.
    pub place: String,
}

/// Which servers a rule can speak of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All of them.
    #[default]
    All,
    /// Only these: a project file loosens nothing for servers it did not bring.
    Only(BTreeSet<ServerName>),
}

/// What an item must do for a rule to speak of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    /// Change nothing, for certain.
    Read,
    /// Change something, or perhaps so.
    Write,
}

/// A rule in a list whose order decides.
#[derive(Clone, Debug)]
pub struct OrderedRule {
    /// What it says.
    pub verdict: Verdict,
    /// Of what.
    pub rule: Rule,
}

/// What is said of a call that no rule speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRule {
    /// The same for everything.
    Always(Verdict),
    /// Reads pass, everything else asks.
    AskWrites,
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
    /// What the item does.
    pub effect: Effect,
    /// The time by which rules expire.
    pub now: Timestamp,
}

/// A list of rules on the way through all of them.
struct Stage<'a> {
    verdict: Verdict,
    rules: &'a [Rule],
}

/// A rule as whoever looks at all of them is told of it.
struct Seen<'a> {
    rule: &'a Rule,
    now: Timestamp,
}

// === impl Permissions ===

impl Permissions {
    /// Whether no rule looks at arguments or at the time.
    pub(crate) fn is_steady(&self) -> bool {
        self.global.is_steady() && self.servers.values().all(RuleList::is_steady)
    }

    /// Rules on a call. The first list with a match decides, in this order:
    ///
    /// global deny, server deny, server ask, server allow, global ask, global allow, default.
    ///
    /// `seen` is told of every rule looked at, with its verdict when it matched.
    pub fn rule_on(
        &self,
        question: &Question<'_>,
        fallback: DefaultRule,
        seen: &mut dyn FnMut(&dyn fmt::Display, Option<Verdict>),
    ) -> Ruling {
        let none = RuleList::default();
        let server = self.servers.get(question.server).unwrap_or(&none);
        let global = &self.global;
        let stages = [
            Stage { verdict: Verdict::Deny, rules: &global.deny },
            Stage { verdict: Verdict::Deny, rules: &server.deny },
            Stage { verdict: Verdict::Ask, rules: &server.ask },
            Stage { verdict: Verdict::Allow, rules: &server.allow },
            Stage { verdict: Verdict::Ask, rules: &global.ask },
            Stage { verdict: Verdict::Allow, rules: &global.allow },
        ];
        first_match(&stages, question, seen).unwrap_or_else(|| {
            let ruling = self.default_ruling(question, fallback);
            seen(&ruling.rule, Some(ruling.verdict));
            ruling
        })
    }

    /// What the `Elicit(…)` rules say of a server's questions; `None` when no rule speaks of it.
    ///
    /// The patterns may name the server by its slug or by `display`.
    pub fn rule_on_elicitation(
        &self,
        server: &ServerName,
        display: &str,
        now: Timestamp,
    ) -> Option<Ruling> {
        let lists = [
            (Verdict::Deny, &self.global.deny),
            (Verdict::Ask, &self.global.ask),
            (Verdict::Allow, &self.global.allow),
        ];
        lists.into_iter().find_map(|(verdict, rules)| {
            let fits = |rule: &&Rule| {
                let names = [server.as_str(), display];
                rule.in_force(server, now)
                    && names.iter().any(|name| rule.pattern.matches_elicitation(name))
            };
            rules.iter().find(fits).map(|rule| rule.ruling(verdict))
        })
    }

    pub(crate) fn default_ruling(&self, question: &Question<'_>, fallback: DefaultRule) -> Ruling {
        let own = self.server_defaults.get(question.server).copied();
        let default = own.or(self.default).unwrap_or(fallback);
        let verdict = match default {
            DefaultRule::Always(verdict) => verdict,
            DefaultRule::AskWrites if question.effect == Effect::Read => Verdict::Allow,
            DefaultRule::AskWrites => Verdict::Ask,
        };
        Ruling {
            verdict,
            rule: format!("permissions.default: {}", default.as_str()),
            by: By::Default,
        }
    }
}

// === impl RuleList ===

impl RuleList {
    /// Whether no rule looks at arguments or at the time.
    pub(crate) fn is_steady(&self) -> bool {
        let mut rules = self.deny.iter().chain(&self.ask).chain(&self.allow);
        rules.all(Rule::is_steady)
    }

    /// What these lists alone say of a call: deny, then ask, then allow, else nothing.
    pub fn rule_on(
        &self,
        question: &Question<'_>,
        seen: &mut dyn FnMut(&dyn fmt::Display, Option<Verdict>),
    ) -> Option<Ruling> {
        let stages = [
            Stage { verdict: Verdict::Deny, rules: &self.deny },
            Stage { verdict: Verdict::Ask, rules: &self.ask },
            Stage { verdict: Verdict::Allow, rules: &self.allow },
        ];
        first_match(&stages, question, seen)
    }
}

fn first_match(
    stages: &[Stage<'_>],
    question: &Question<'_>,
    seen: &mut dyn FnMut(&dyn fmt::Display, Option<Verdict>),
) -> Option<Ruling> {
    for stage in stages {
        for rule in stage.rules {
            let matched = rule.speaks_of(question, stage.verdict);
            seen(&Seen { rule, now: question.now }, matched.then_some(stage.verdict));
            if matched {
                return Some(rule.ruling(stage.verdict));
            }
        }
    }
    None
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
        let reaches = match &self.reach {
            Reach::All => true,
            Reach::Only(servers) => servers.contains(server),
        };
        reaches && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it depends on nothing but the item.
    pub(crate) fn is_steady(&self) -> bool {
        self.expires_at.is_none() && !self.pattern.has_matchers()
    }

    pub(crate) fn speaks_of(&self, question: &Question<'_>, verdict: Verdict) -> bool {
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

// === impl Seen ===

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, now } = self;
        match rule.expires_at {
            Some(end) if end <= *now => write!(f, "{rule} (expired)"),
            Some(_) | None => write!(f, "{rule}"),
        }
    }
}

// === impl RuleEffect ===

impl RuleEffect {
    /// Whether an item that does this is meant. What is not known counts as a write.
    fn fits(self, effect: Effect) -> bool {
        match (self, effect) {
            (Self::Read, Effect::Read) | (Self::Write, Effect::Write | Effect::Unknown) => true,
            (Self::Read, Effect::Write | Effect::Unknown) | (Self::Write, Effect::Read) => false,
        }
    }
}

// === impl OrderedRule ===

impl OrderedRule {
    /// What the first rule of an ordered list that speaks of a call says.
    pub(crate) fn first(
        list: &[Self],
        question: &Question<'_>,
        seen: &mut dyn FnMut(&dyn fmt::Display, Option<Verdict>),
    ) -> Option<Ruling> {
        list.iter().find_map(|Self { verdict, rule }| {
            let matched = rule.speaks_of(question, *verdict);
            seen(&Seen { rule, now: question.now }, matched.then_some(*verdict));
            matched.then(|| rule.ruling(*verdict))
        })
    }
}

// === impl DefaultRule ===

impl DefaultRule {
    /// The default's word in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Always(verdict) => verdict.as_str(),
            Self::AskWrites => "ask-writes",
        }
    }

    /// The stricter of two: what denies more or asks more.
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

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
