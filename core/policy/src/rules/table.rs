//! All rules in one table, compiled in the order of [`ORDER`].
//!
//! A decision consults only the rows that the index proposes, an explanation consults every row.
//! Both use `RuleTable::vote`, so they cannot disagree unless the index misses a match;
//! `decide_tests.rs` tests that it misses none.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::OnceLock;

use capstan_model::{By, Effect, Ruling, ServerName, Verdict};
use jiff::Timestamp;

use super::index::Index;
use super::order::{Engine, ORDER, RuleGroup, Scope, Vote};
use super::rule::{Question, Rule};
use super::source::{DefaultRule, OrderedRule, Permissions, RuleList};

/// All rules over calls, in the order in which they are consulted.
#[derive(Debug, Default)]
pub(crate) struct RuleTable {
    rows: Vec<Row>,
    /// The rows that apply to every server, ascending.
    shared: Vec<usize>,
    /// The rows of single servers, ascending.
    own: HashMap<ServerName, Vec<usize>>,
    default: Option<DefaultRule>,
    server_defaults: HashMap<ServerName, DefaultRule>,
    /// Proposes rows if there are many; built for the first decision.
    index: OnceLock<Option<Index>>,
}

/// One rule with its place in the order.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) engine: Engine,
    /// The server whose list it is in.
    pub(super) server: Option<ServerName>,
    pub(super) verdict: Verdict,
    pub(super) rule: Rule,
}

/// The verdicts of the engines that consult rules.
pub(crate) struct Votes {
    /// Tool policy, else authorization.
    pub(crate) by_tools: Option<Ruling>,
    /// Permissions, else the default.
    pub(crate) by_permissions: Ruling,
}

/// Receives every consulted rule: its engine, the rule, and its verdict if it matched.
pub(crate) type Look<'a> = &'a mut dyn FnMut(&'static str, &dyn fmt::Display, Option<Verdict>);

/// A rule as explanations show it.
struct Seen<'a> {
    rule: &'a Rule,
    now: Timestamp,
}

// === impl RuleTable ===

impl RuleTable {
    /// Compiles the lists of a configuration.
    pub(crate) fn new(
        mut tools: RuleList,
        authorization: Vec<OrderedRule>,
        permissions: Permissions,
    ) -> Self {
        let Permissions { mut global, servers, default, server_defaults } = permissions;
        let mut authorization = Some(authorization);
        // Sorted, so that the table does not depend on the order of a hash map.
        let mut servers: BTreeMap<ServerName, RuleList> = servers.into_iter().collect();
        let mut table = Self { default, server_defaults, ..Self::default() };
        for group in ORDER {
            let RuleGroup { engine, scope, verdict } = group;
            match (engine, scope, verdict) {
                (Engine::ToolPolicy, _, Some(verdict)) => {
                    table.extend(engine, None, verdict, tools.take(verdict));
                }
                (Engine::Permissions, Scope::AllServers, Some(verdict)) => {
                    table.extend(engine, None, verdict, global.take(verdict));
                }
                (Engine::Permissions, Scope::OneServer, Some(verdict)) => {
                    for (server, list) in &mut servers {
                        table.extend(engine, Some(server), verdict, list.take(verdict));
                    }
                }
                (_, _, None) | (Engine::Authorization, ..) => {
                    for OrderedRule { verdict, rule } in authorization.take().into_iter().flatten()
                    {
                        table.extend(engine, None, verdict, vec![rule]);
                    }
                }
            }
        }
        table
    }

    fn extend(
        &mut self,
        engine: Engine,
        server: Option<&ServerName>,
        verdict: Verdict,
        rules: Vec<Rule>,
    ) {
        if rules.is_empty() {
            return;
        }
        let numbers = self.rows.len()..self.rows.len() + rules.len();
        match server {
            Some(server) => self.own.entry(server.clone()).or_default().extend(numbers),
            None => self.shared.extend(numbers),
        }
        let server = || server.cloned();
        self.rows.extend(rules.into_iter().map(|rule| Row {
            engine,
            server: server(),
            verdict,
            rule,
        }));
    }

    /// Every rule.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rows.iter().map(|row| &row.rule)
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// True if no rule depends on arguments or on the time.
    pub(crate) fn is_steady(&self) -> bool {
        self.rules().all(Rule::is_steady)
    }

    /// The verdicts on a call.
    pub(crate) fn decide(&self, question: &Question<'_>, fallback: DefaultRule) -> Votes {
        let look: Look<'_> = &mut |_, _, _| {};
        let index = self.index.get_or_init(|| Index::new(&self.rows, &self.shared, &self.own));
        match index {
            Some(index) => {
                let rows = index.candidates(question.server, question.names);
                self.vote(rows.into_iter(), question, fallback, look)
            }
            None => self.explain(question, fallback, look),
        }
    }

    /// The verdicts on a call; `look` receives every rule that is consulted.
    pub(crate) fn explain(
        &self,
        question: &Question<'_>,
        fallback: DefaultRule,
        look: Look<'_>,
    ) -> Votes {
        self.vote(self.numbers_for(question.server), question, fallback, look)
    }

    /// Consults rows in ascending order: in each vote the first match decides.
    fn vote(
        &self,
        rows: impl Iterator<Item = usize>,
        question: &Question<'_>,
        fallback: DefaultRule,
        look: Look<'_>,
    ) -> Votes {
        let (mut by_tools, mut by_permissions) = (None, None);
        for row in rows.filter_map(|number| self.rows.get(number)) {
            let vote = match row.engine.vote() {
                Vote::Tools => &mut by_tools,
                Vote::Permissions => &mut by_permissions,
            };
            if vote.is_some() {
                continue;
            }
            let Row { engine, verdict, rule, .. } = row;
            let matched = rule.matches(question, *verdict);
            look(engine.as_str(), &Seen { rule, now: question.now }, matched.then_some(*verdict));
            if matched {
                *vote = Some(rule.ruling(*verdict));
            }
        }
        let by_permissions = by_permissions.unwrap_or_else(|| {
            let ruling = self.default_ruling(question, fallback);
            look(Engine::Permissions.as_str(), &ruling.rule, Some(ruling.verdict));
            ruling
        });
        Votes { by_tools, by_permissions }
    }

    /// The ruling of the `Elicit(…)` rules on a server's questions; `None` if none matches.
    ///
    /// The patterns may name the server by its slug or by `display`.
    pub(crate) fn rule_on_elicitation(
        &self,
        server: &ServerName,
        display: &str,
        now: Timestamp,
    ) -> Option<Ruling> {
        let mut rows = self.shared.iter().filter_map(|number| self.rows.get(*number));
        let row = rows.find(|Row { engine, rule, .. }| {
            let names = [server.as_str(), display];
            *engine == Engine::Permissions
                && rule.in_force(server, now)
                && names.iter().any(|name| rule.pattern.matches_elicitation(name))
        })?;
        Some(row.rule.ruling(row.verdict))
    }

    /// The numbers of the rows that apply to a server, ascending.
    pub(super) fn numbers_for(&self, server: &ServerName) -> impl Iterator<Item = usize> {
        let own = self.own.get(server).map_or(&[][..], Vec::as_slice);
        let (mut shared, mut own) =
            (self.shared.iter().copied().peekable(), own.iter().copied().peekable());
        std::iter::from_fn(move || match (shared.peek(), own.peek()) {
            (Some(left), Some(right)) if right < left => own.next(),
            (Some(_), _) => shared.next(),
            (None, _) => own.next(),
        })
    }

    fn default_ruling(&self, question: &Question<'_>, fallback: DefaultRule) -> Ruling {
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

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
