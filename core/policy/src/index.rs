//! Finds the rules that may speak of a call without looking at every one of them.
//!
//! Every glob has a text in it that a name must have too. All these texts are looked for at once;
//! the rules whose text is found are then looked at one by one, in the order in which they stand.
//! That this decides what looking at every rule would decide is tested in `decide_tests.rs`.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use capstan_model::{Ruling, ServerName, Verdict};

use crate::decide::Policy;
use crate::pattern::PatternSubject;
use crate::permission::{DefaultRule, Question, Rule, RuleList};

/// With fewer rules than this, looking at each is quicker.
const MIN_RULES: usize = 24;

/// Bytes of what is looked for, up to which the quickest kind of search is made.
const MAX_QUICK: usize = 16 * 1024;

/// The rules of a policy by what they look for; made when it is first needed.
///
/// **Invariant:** a policy does not change once it has decided something. A copy of it may, so that
/// a copy begins without an index.
#[derive(Debug, Default)]
pub(crate) struct Lazy(OnceLock<Option<Index>>);

/// The rules of a policy by what they look for.
#[derive(Debug)]
pub(crate) struct Index {
    /// Those that speak of all servers.
    shared: Needles,
    /// Those of one server.
    own: HashMap<ServerName, Needles>,
}

/// What the engines say of a call.
pub(crate) struct Said {
    /// Tool policy and authorization.
    pub(crate) by_tools: Option<Ruling>,
    pub(crate) by_permissions: Ruling,
}

/// The lists of rules, in the order in which they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    ToolsDeny,
    ToolsAsk,
    ToolsAllow,
    Authorization,
    GlobalDeny,
    OwnDeny,
    OwnAsk,
    OwnAllow,
    GlobalAsk,
    GlobalAllow,
}

/// Where a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    stage: Stage,
    at: usize,
}

#[derive(Debug, Default)]
struct Needles {
    search: Option<AhoCorasick>,
    /// The rules that look for each text.
    places: Vec<Vec<Place>>,
    /// Rules that look for none.
    others: Vec<Place>,
}

// === impl Lazy ===

impl Lazy {
    /// The index of `policy`; `None` where it has too few rules for one.
    pub(crate) fn of(&self, policy: &Policy) -> Option<&Index> {
        self.0.get_or_init(|| Index::new(policy)).as_ref()
    }
}

impl Clone for Lazy {
    fn clone(&self) -> Self {
        Self::default()
    }
}

// === impl Index ===

impl Index {
    fn new(policy: &Policy) -> Option<Self> {
        let count = |list: &RuleList| list.deny.len() + list.ask.len() + list.allow.len();
        let permissions = &policy.permissions;
        let shared = count(&policy.tools) + policy.authorization.len() + count(&permissions.global);
        let most = permissions.servers.values().map(count).max().unwrap_or_default();
        if shared + most < MIN_RULES {
            return None;
        }
        let own = permissions.servers.iter().map(|(server, list)| {
            let lists = [
                (Stage::OwnDeny, &list.deny),
                (Stage::OwnAsk, &list.ask),
                (Stage::OwnAllow, &list.allow),
            ];
            (
                server.clone(),
                Needles::new(lists.into_iter().flat_map(|(s, rules)| placed(s, rules))),
            )
        });
        let lists = [
            (Stage::ToolsDeny, &policy.tools.deny),
            (Stage::ToolsAsk, &policy.tools.ask),
            (Stage::ToolsAllow, &policy.tools.allow),
            (Stage::GlobalDeny, &permissions.global.deny),
            (Stage::GlobalAsk, &permissions.global.ask),
            (Stage::GlobalAllow, &permissions.global.allow),
        ];
        let shared = lists.into_iter().flat_map(|(stage, rules)| placed(stage, rules));
        let ordered = policy.authorization.iter().enumerate();
        let ordered = ordered.map(|(at, it)| (Place { stage: Stage::Authorization, at }, &it.rule));
        Some(Self { own: own.collect(), shared: Needles::new(shared.chain(ordered)) })
    }

    /// What the rules say of a call.
    pub(crate) fn rule_on(
        &self,
        policy: &Policy,
        question: &Question<'_>,
        fallback: DefaultRule,
    ) -> Said {
        let mut places = Vec::new();
        self.shared.find(question.names, &mut places);
        if let Some(own) = self.own.get(question.server) {
            own.find(question.names, &mut places);
        }
        places.sort_unstable();
        places.dedup();
        let first = |stages: std::ops::RangeInclusive<Stage>| {
            let mut within = places.iter().filter(|place| stages.contains(&place.stage));
            within.find_map(|place| {
                let (verdict, rule) = place.rule(policy, question.server)?;
                rule.speaks_of(question, verdict).then(|| rule.ruling(verdict))
            })
        };
        let by_tools = first(Stage::ToolsDeny..=Stage::Authorization);
        let by_permissions = first(Stage::GlobalDeny..=Stage::GlobalAllow);
        let by_permissions =
            by_permissions.unwrap_or_else(|| policy.permissions.default_ruling(question, fallback));
        Said { by_tools, by_permissions }
    }
}

fn placed(stage: Stage, rules: &[Rule]) -> impl Iterator<Item = (Place, &Rule)> {
    rules.iter().enumerate().map(move |(at, rule)| (Place { stage, at }, rule))
}

// === impl Place ===

impl Place {
    fn rule<'p>(self, policy: &'p Policy, server: &ServerName) -> Option<(Verdict, &'p Rule)> {
        let (tools, global) = (&policy.tools, &policy.permissions.global);
        let own = || policy.permissions.servers.get(server);
        let (verdict, list) = match self.stage {
            Stage::Authorization => {
                let ordered = policy.authorization.get(self.at)?;
                return Some((ordered.verdict, &ordered.rule));
            }
            Stage::ToolsDeny => (Verdict::Deny, &tools.deny),
            Stage::ToolsAsk => (Verdict::Ask, &tools.ask),
            Stage::ToolsAllow => (Verdict::Allow, &tools.allow),
            Stage::GlobalDeny => (Verdict::Deny, &global.deny),
            Stage::OwnDeny => (Verdict::Deny, &own()?.deny),
            Stage::OwnAsk => (Verdict::Ask, &own()?.ask),
            Stage::OwnAllow => (Verdict::Allow, &own()?.allow),
            Stage::GlobalAsk => (Verdict::Ask, &global.ask),
            Stage::GlobalAllow => (Verdict::Allow, &global.allow),
        };
        Some((verdict, list.get(self.at)?))
    }
}

// === impl Needles ===

impl Needles {
    fn new<'r>(rules: impl Iterator<Item = (Place, &'r Rule)>) -> Self {
        let mut texts: HashMap<&str, Vec<Place>> = HashMap::new();
        let mut others = Vec::new();
        for (place, rule) in rules {
            match rule.pattern.subject() {
                PatternSubject::Item(glob) => match glob.needle() {
                    Some(needle) => texts.entry(needle).or_default().push(place),
                    None => others.push(place),
                },
                // It never speaks of a call.
                PatternSubject::Elicit(_) => {}
            }
        }
        let (texts, places): (Vec<&str>, Vec<Vec<Place>>) = texts.into_iter().unzip();
        if texts.is_empty() {
            return Self { others, ..Self::default() };
        }
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        // The quickest is also the largest: some hundred bytes for each that is looked for.
        let kind = (bytes <= MAX_QUICK).then_some(AhoCorasickKind::DFA);
        if let Ok(search) = AhoCorasick::builder().kind(kind).build(texts) {
            return Self { search: Some(search), places, others };
        }
        // Too large to search at once: then each is looked at.
        others.extend(places.into_iter().flatten());
        Self { others, ..Self::default() }
    }

    /// Adds the rules that may speak of one of these names.
    fn find(&self, names: &[String], found: &mut Vec<Place>) {
        found.extend(&self.others);
        let Some(search) = &self.search else { return };
        for (at, name) in names.iter().enumerate() {
            // What is found in the end of another name was found there.
            let within =
                |(other_at, other): (usize, &String)| other_at != at && other.ends_with(name);
            if names.iter().enumerate().any(within) {
                continue;
            }
            for hit in search.find_overlapping_iter(name) {
                let places = self.places.get(hit.pattern().as_usize());
                found.extend(places.into_iter().flatten());
            }
        }
    }
}
