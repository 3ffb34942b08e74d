//! Proposes the rules that may match a call, without consulting every one of them.
//!
//! Every glob contains a text that all matching names contain too. One search finds all these texts
//! at once; the rules whose text is found are then consulted in order.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use capstan_model::ServerName;

use super::table::Row;
use crate::pattern::PatternSubject;

/// With fewer rules than this, consulting each one is faster.
const MIN_RULES: usize = 24;

/// Total length of the texts, in bytes, up to which the fastest kind of search is built.
const MAX_QUICK: usize = 16 * 1024;

/// The rows of a table, by the text that they search for.
#[derive(Debug)]
pub(super) struct Index {
    /// Rows that apply to every server.
    shared: Needles,
    /// Rows of single servers.
    own: HashMap<ServerName, Needles>,
}

#[derive(Debug, Default)]
struct Needles {
    search: Option<AhoCorasick>,
    /// The rows for each text.
    rows: Vec<Vec<usize>>,
    /// Rows without a text.
    others: Vec<usize>,
}

// === impl Index ===

impl Index {
    /// Builds the index of a table; `None` if it has too few rules.
    pub(super) fn new(
        rows: &[Row],
        shared: &[usize],
        own: &HashMap<ServerName, Vec<usize>>,
    ) -> Option<Self> {
        let most = own.values().map(Vec::len).max().unwrap_or_default();
        if shared.len() + most < MIN_RULES {
            return None;
        }
        let own = own.iter().map(|(server, numbers)| (server.clone(), Needles::new(rows, numbers)));
        Some(Self { own: own.collect(), shared: Needles::new(rows, shared) })
    }

    /// The rows that may match an item with these names, ascending.
    pub(super) fn candidates(&self, server: &ServerName, names: &[String]) -> Vec<usize> {
        let mut found = Vec::new();
        self.shared.find(names, &mut found);
        if let Some(own) = self.own.get(server) {
            own.find(names, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

// === impl Needles ===

impl Needles {
    fn new(rows: &[Row], numbers: &[usize]) -> Self {
        let mut texts: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut others = Vec::new();
        for number in numbers {
            let Some(row) = rows.get(*number) else { continue };
            match row.rule.pattern.subject() {
                PatternSubject::Item(glob) => match glob.needle() {
                    Some(needle) => texts.entry(needle).or_default().push(*number),
                    None => others.push(*number),
                },
                // An `Elicit(…)` rule never matches a call.
                PatternSubject::Elicit(_) => {}
            }
        }
        let (texts, rows): (Vec<&str>, Vec<Vec<usize>>) = texts.into_iter().unzip();
        if texts.is_empty() {
            return Self { others, ..Self::default() };
        }
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        // The fastest kind is also the largest: some hundred bytes per byte of text.
        let kind = (bytes <= MAX_QUICK).then_some(AhoCorasickKind::DFA);
        if let Ok(search) = AhoCorasick::builder().kind(kind).build(texts) {
            return Self { search: Some(search), rows, others };
        }
        // Too large for one search: every rule is a candidate.
        others.extend(rows.into_iter().flatten());
        Self { others, ..Self::default() }
    }

    /// Adds the rows that may match one of these names.
    fn find(&self, names: &[String], found: &mut Vec<usize>) {
        found.extend(&self.others);
        let Some(search) = &self.search else { return };
        for (at, name) in names.iter().enumerate() {
            // Skip a name that is the end of another: its matches are found there.
            let within =
                |(other_at, other): (usize, &String)| other_at != at && other.ends_with(name);
            if names.iter().enumerate().any(within) {
                continue;
            }
            for hit in search.find_overlapping_iter(name) {
                let rows = self.rows.get(hit.pattern().as_usize());
                found.extend(rows.into_iter().flatten());
            }
        }
    }
}
