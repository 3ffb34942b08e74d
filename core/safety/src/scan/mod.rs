//! Scans text of servers for attempts to steer a model or to deceive a person.
//!
//! A text is first brought into the form in which a model reads it (`reading`): without invisible
//! characters, look-alike letters and long blanks; encoded parts are decoded (`encoded`). Then its
//! sentences are scored: `words` groups words by meaning, `rules` combines groups, `phrases` finds
//! the `signs` that are not words. `characters` reports the disguise itself.
//!
//! The scan is a help, not a fence: it finds known kinds of attempts, and honest texts pass.

mod characters;
mod definition;
mod encoded;
mod mode;
mod phrases;
mod quick;
mod reading;
mod rules;
mod score;
mod sentence;
mod signs;
mod words;

use std::borrow::Cow;
use std::ops::Range;

pub use definition::{Located, Peer, scan_among, scan_definition};
pub use mode::{Mode, Modes};

use crate::clean::{clean, is_invisible};
use characters::characters;
use reading::Reading;

/// The replacement for a masked part.
pub const MASKED: &str = "[sanitized]";

/// Longest text that is scanned at once, in bytes. A longer one is scanned in parts.
const MAX_PART: usize = 64 * 1024;

/// Longest excerpt of a finding, in bytes.
const MAX_EXCERPT: usize = 120;

/// Most findings of one text.
const MAX_FINDINGS: usize = 64;

/// The role of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// A definition of a tool, prompt or resource.
    Definition,
    /// A server's instructions.
    Instructions,
    /// An answer, which may be any document.
    Answer,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Characters of no width.
    Invisible,
    /// Characters that change the direction of text.
    Direction,
    /// A message in tag characters.
    Tags,
    /// A message in variation selectors.
    Variation,
    /// Sequences that a terminal obeys.
    Terminal,
    /// Letters that look like others, or are spelled with digits.
    LookAlike,
    /// Text in another encoding.
    Encoded,
    /// Text that a person does not see.
    Hidden,
    /// Text that instructs the model.
    Instruction,
    /// Text that imitates another part of the conversation.
    Imitation,
    /// Text that keeps things from the person.
    Concealment,
    /// Text that sends data out.
    Exfiltration,
    /// Text that has secrets read.
    Secrets,
    /// Text about tools of other servers.
    CrossServer,
    /// Commands of a shell.
    Command,
}

/// The weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth a look; the text is not suspicious for it.
    Low,
    /// The text is suspicious.
    Medium,
    /// The text is almost certainly an attack.
    High,
}

/// A part of a text that looks like an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub class: Class,
    /// Its weight.
    pub severity: Severity,
    /// Its place in the text, in bytes.
    pub span: Range<usize>,
    /// Its beginning, safe to show.
    pub excerpt: String,
}

/// The subject of a text.
#[derive(Clone, Copy)]
struct About<'a> {
    surface: Surface,
    /// The name of the item that the text defines; empty if there is none.
    name: &'a str,
}

/// Scans a text.
pub fn scan(text: &str, surface: Surface) -> Vec<Finding> {
    scan_about(text, About { surface, name: "" })
}

fn scan_about(text: &str, about: About<'_>) -> Vec<Finding> {
    if about.surface == Surface::Answer && !quick::may_matter(text) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut start = 0;
    while start < text.len() && findings.len() < MAX_FINDINGS {
        let end = part_end(text, start);
        let part = text.get(start..end).unwrap_or_default();
        let shift = |finding: Finding| Finding {
            span: finding.span.start + start..finding.span.end + start,
            ..finding
        };
        findings.extend(scan_part(part, about, Depth::Text).into_iter().map(shift));
        start = end;
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

/// True if an answer, as JSON, may have a suspicious string. False is certain, and found at little
/// cost.
pub fn may_matter(json: &str) -> bool {
    quick::may_matter(json) || json.contains("\\u") || json.contains("\\b")
}

/// True if some finding makes its text suspicious.
pub fn is_suspicious(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity >= Severity::Medium)
}

/// Masks suspicious parts of a text, and removes characters that nobody sees. The rest stays.
pub fn masked(text: &str, surface: Surface) -> Cow<'_, str> {
    mask(text, &scan(text, surface))
}

/// Masks the findings of a text that make it suspicious, and removes characters that nobody sees.
pub fn mask<'a>(text: &'a str, findings: &[Finding]) -> Cow<'a, str> {
    let mut spans: Vec<Range<usize>> = findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Medium && finding.class.is_words())
        .map(|finding| finding.span.clone())
        .collect();
    if spans.is_empty() {
        return without_hidden(text);
    }
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut clean = String::with_capacity(text.len());
    let mut done = 0;
    let mut has_masked = false;
    for span in spans {
        if span.end <= done {
            continue;
        }
        let between = text.get(done..span.start).unwrap_or_default();
        if !has_masked || !between.trim().is_empty() {
            clean.push_str(&without_hidden(between));
            if span.start >= done {
                clean.push_str(MASKED);
            }
        }
        (done, has_masked) = (span.end, true);
    }
    clean.push_str(&without_hidden(text.get(done..).unwrap_or_default()));
    Cow::Owned(clean)
}

/// How a text was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// The text itself.
    Text,
    /// A text that was decoded from it.
    Decoded,
}

fn scan_part(text: &str, about: About<'_>, depth: Depth) -> Vec<Finding> {
    let surface = about.surface;
    let found = characters(text, surface);
    let mut findings = found.findings;
    let reading = Reading::new(text);
    findings.extend(disguise(text, &reading, surface));
    findings.extend(score::findings(text, &reading, about));
    if let Some(joined) = reading.joined() {
        findings.extend(score::findings(text, &joined, about));
    }
    if let Some(plain) = score::leet(&reading) {
        findings.push(Finding::new(text, Class::LookAlike, Severity::Medium, 0..text.len()));
        findings.extend(score::findings(text, &plain, about));
    }
    if depth == Depth::Text {
        let hidden = found.hidden.into_iter();
        findings.extend(hidden.flat_map(|(message, span)| {
            let reading = Reading::derived(message, span.start, span.end);
            score::findings(text, &reading, about)
        }));
        findings.extend(decoded(text, about));
    }
    findings.sort_by_key(|finding| (finding.span.start, finding.class));
    findings.dedup_by(|one, other| one.class == other.class && one.span == other.span);
    findings
}

/// Reports letters that are not what they seem.
fn disguise(text: &str, reading: &Reading, surface: Surface) -> Option<Finding> {
    let is_cjk =
        || text.chars().any(|c| matches!(c, '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'));
    let severity = match (reading.look_alikes, reading.styled) {
        (0, 0..8) => return None,
        (0, _) if is_cjk() => return None,
        (1, _) if surface == Surface::Answer => Severity::Low,
        (0.., _) => Severity::Medium,
    };
    Some(Finding::new(text, Class::LookAlike, severity, 0..text.len()))
}

/// Reports encoded texts: in a definition any sentence, in an answer a suspicious one.
fn decoded(text: &str, about: About<'_>) -> Vec<Finding> {
    let judge = |decoded: encoded::Decoded| {
        let inner = scan_part(&decoded.text, about, Depth::Decoded);
        let severity = match about.surface {
            _ if is_suspicious(&inner) => Severity::High,
            Surface::Definition | Surface::Instructions if decoded.is_sentence() => {
                Severity::Medium
            }
            Surface::Definition | Surface::Instructions | Surface::Answer => return None,
        };
        Some(Finding::new(text, Class::Encoded, severity, decoded.span))
    };
    encoded::decoded(text).into_iter().filter_map(judge).collect()
}

/// The end of the part that begins at `start`: at a line break if there is one.
fn part_end(text: &str, start: usize) -> usize {
    let limit = text.floor_char_boundary(start.saturating_add(MAX_PART));
    if limit >= text.len() {
        return text.len();
    }
    let part = text.get(start..limit).unwrap_or_default();
    part.rfind('\n').filter(|at| *at > MAX_PART / 2).map_or(limit, |at| start + at + 1)
}

/// Removes control characters (except line breaks and tabs) and invisible characters.
fn without_hidden(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| match c {
        '\n' | '\t' => false,
        other => other.is_control() || is_invisible(other),
    };
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().filter(|c| !is_hidden(*c)).collect())
}

/// The beginning of a part of a text, safe to show.
fn excerpt(text: &str, span: &Range<usize>) -> String {
    let part = text.get(span.clone()).unwrap_or_default();
    let cut = part.get(..part.floor_char_boundary(MAX_EXCERPT)).unwrap_or_default();
    let line: Vec<&str> = cut.split_whitespace().collect();
    let dots = if cut.len() < part.len() { "…" } else { "" };
    format!("{}{dots}", clean(&line.join(" ")))
}

// === impl Finding ===

impl Finding {
    fn new(text: &str, class: Class, severity: Severity, span: Range<usize>) -> Self {
        let excerpt = excerpt(text, &span);
        Self { class, severity, span, excerpt }
    }
}

// === impl Class ===

impl Class {
    /// The name, as findings show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invisible => "invisible",
            Self::Direction => "direction",
            Self::Tags => "tag-characters",
            Self::Variation => "variation-selectors",
            Self::Terminal => "terminal",
            Self::LookAlike => "look-alike",
            Self::Encoded => "encoded",
            Self::Hidden => "hidden",
            Self::Instruction => "instruction",
            Self::Imitation => "imitation",
            Self::Concealment => "concealment",
            Self::Exfiltration => "exfiltration",
            Self::Secrets => "secrets",
            Self::CrossServer => "cross-server",
            Self::Command => "command",
        }
    }

    /// True if the words are masked. Of the others, removing the characters is enough.
    const fn is_words(self) -> bool {
        !matches!(
            self,
            Self::Invisible | Self::Direction | Self::Tags | Self::Variation | Self::Terminal
        )
    }
}

// === impl Severity ===

impl Severity {
    /// The name, as findings show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

#[cfg(test)]
mod tests;
