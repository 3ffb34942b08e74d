//! Finds signs that are not words: tags, role markers, comments, remote pictures, and fixed idioms.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::signs::{SIGNS, Sign};
use super::{Class, Surface};

/// A found sign.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) number: usize,
    pub(super) class: Class,
    pub(super) points: u32,
    pub(super) span: Range<usize>,
}

/// Largest compiled pattern.
const MAX_COMPILED: usize = 4 << 20;

/// Most finds of one sign in a text.
const MOST: usize = 64;

/// The signs, compiled: one automaton that tells which occur, and one for each that tells where.
struct Compiled {
    which: RegexSet,
    each: Vec<Regex>,
}

/// Returns the signs in a text.
pub(super) fn signs(text: &str, surface: Surface) -> Vec<Found> {
    let mut found = Vec::new();
    let Some(compiled) = compiled() else { return found };
    for number in &compiled.which.matches(text) {
        let (Some(sign), Some(pattern)) = (SIGNS.get(number), compiled.each.get(number)) else {
            continue;
        };
        let points = match surface {
            Surface::Definition => sign.points,
            Surface::Instructions => sign.in_instructions,
            Surface::Answer => sign.in_answers,
        };
        if points == 0 {
            continue;
        }
        let class = sign.class;
        let here = pattern.find_iter(text).take(MOST);
        found.extend(here.map(|at| Found { number, class, points, span: at.range() }));
    }
    found
}

/// A test checks that all of them compile.
fn compiled() -> Option<&'static Compiled> {
    static COMPILED: OnceLock<Option<Compiled>> = OnceLock::new();
    let compile = || {
        // Only ASCII matters: a reading has Latin letters as such. This keeps the automata small.
        let plain = |sign: &Sign| {
            let pattern = sign.pattern.replace(r"\b", r"(?-u:\b)");
            pattern.replace(r"\w", "[a-zA-Z0-9_']").replace(r"\s", r"[ \n\t]")
        };
        let patterns: Vec<String> = SIGNS.iter().map(plain).collect();
        let which = RegexSetBuilder::new(&patterns)
            .case_insensitive(true)
            .size_limit(MAX_COMPILED)
            .build()
            .ok()?;
        let one = |pattern: &String| {
            let mut builder = RegexBuilder::new(pattern);
            builder.case_insensitive(true).size_limit(MAX_COMPILED).build().ok()
        };
        Some(Compiled { which, each: patterns.iter().map(one).collect::<Option<_>>()? })
    };
    COMPILED.get_or_init(compile).as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_used() {
        assert!(compiled().is_some());
    }
}
