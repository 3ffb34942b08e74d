//! Adds up the signs of neighbouring sentences.

use std::collections::BTreeMap;

use super::phrases::signs;
use super::reading::Reading;
use super::rules::{ENOUGH, Hit, RULES, hits};
use super::sentence::{Sentence, sentences};
use super::{About, Class, Finding, Severity, Surface};

/// Sentences that count together.
const WINDOW: usize = 4;

/// Points of an almost certain attack.
const CERTAIN: u32 = 16;

/// Points of a sign that is reported although the text is not suspicious.
const NOTABLE: u32 = 6;

/// Returns the suspicious parts of a reading, as places in the original.
pub(super) fn findings(text: &str, reading: &Reading, about: About<'_>) -> Vec<Finding> {
    let surface = about.surface;
    let sentences = sentences(&reading.text, about.name);
    let hits = all_hits(reading, &sentences, surface);
    let mut findings = Vec::new();
    for (at, (sentence, own)) in sentences.iter().zip(&hits).enumerate() {
        if own.is_empty() {
            continue;
        }
        let total = best_window(&hits, at);
        let mut classes: BTreeMap<Class, (usize, u32)> = BTreeMap::new();
        for hit in own {
            let entry = classes.entry(hit.class).or_insert((hit.start, 0));
            *entry = (entry.0.min(hit.start), entry.1.max(hit.points));
        }
        for (class, (start, points)) in classes {
            let severity = match total {
                CERTAIN.. => Severity::High,
                ENOUGH.. => Severity::Medium,
                _ if points >= NOTABLE => Severity::Low,
                _ => continue,
            };
            let span = reading.original(start)..reading.original(sentence.span.end);
            findings.push(Finding::new(text, class, severity, span));
        }
    }
    findings
}

/// The signs of each sentence.
fn all_hits(reading: &Reading, sentences: &[Sentence], surface: Surface) -> Vec<Vec<Hit>> {
    let mut all: Vec<Vec<Hit>> = sentences.iter().map(hits).collect();
    for found in signs(&reading.text, surface) {
        let number = sentences.partition_point(|sentence| sentence.span.end <= found.span.start);
        let (Some(sentence), Some(hits)) = (sentences.get(number), all.get_mut(number)) else {
            continue;
        };
        let points = sentence.weighed(found.points, found.span.start);
        let rule = RULES.len() + found.number;
        hits.push(Hit { rule, class: found.class, points, start: found.span.start });
    }
    all
}

/// The most points of some neighbouring sentences with the one at `at`; each rule counts once.
fn best_window(hits: &[Vec<Hit>], at: usize) -> u32 {
    let first = at.saturating_sub(WINDOW - 1);
    let windows = hits.windows(WINDOW.min(hits.len())).skip(first).take(WINDOW);
    windows
        .map(|window| {
            let mut points: BTreeMap<usize, u32> = BTreeMap::new();
            for hit in window.iter().flatten() {
                let entry = points.entry(hit.rule).or_default();
                *entry = (*entry).max(hit.points);
            }
            points.values().sum()
        })
        .max()
        .unwrap_or_default()
}

/// A reading of a text that is spelled with digits for letters; `None` if it is not.
pub(super) fn leet(reading: &Reading) -> Option<Reading> {
    if !reading.text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut all = 0;
    let mut leet = 0;
    for word in reading.text.split(|c: char| !c.is_alphanumeric() && c != '@' && c != '$') {
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        let digits = word.chars().filter(|c| digit(*c).is_some()).count();
        if letters + digits > 1 {
            all += 1;
        }
        // A digit between two letters.
        let is_leet = letters >= 2 && letters + digits == word.chars().count() && {
            let inner = word.trim_matches(|c| digit(c).is_some());
            inner.chars().any(|c| digit(c).is_some())
        };
        leet += usize::from(is_leet);
    }
    let is_spelled = leet >= 3 && leet * 4 >= all;
    is_spelled.then(|| reading.replaced(digit))
}

fn digit(c: char) -> Option<char> {
    Some(match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        _ => return None,
    })
}
