//! Classifies the effect of tools.
//!
//! The operator's configuration counts first, then annotations, then name and description.

mod annotations;
mod classify;
mod name;
mod description;
mod sentence;
mod foreign;
mod schema;
mod word_list;
mod words;

use capstan_model::{Effect, Trust};
use capstan_wire::Json;
use globset::GlobMatcher;
use serde::Serialize;

use self::annotations::Hints;
use self::classify::{Judged, classify};
pub(crate) use self::word_list::WordList;
use crate::pattern::{BadPattern, glob};

/// The operator's declarations for the tools of one server.
#[derive(Clone, Debug, Default)]
pub struct EffectRules {
    read: Vec<GlobMatcher>,
    write: Vec<GlobMatcher>,
}

/// The effect of a tool, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// The effect.
    pub effect: Effect,
    /// The confidence, from 0 to 100.
    pub confidence: u8,
    /// The source of the classification.
    pub source: Source,
    /// The reasons, as text.
    pub reasons: Vec<String>,
}

/// The source of a classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The operator, in the configuration.
    Override,
    /// The tool's own annotations.
    Annotation,
    /// Its name, its description and its arguments.
    Classifier,
    /// No source; the tool counts as a write.
    Fallback,
}

/// Minimum confidence of the classifier for a report that an annotation is false.
const SURE: u8 = 70;

/// Maximum length of a name whose words are examined.
const MAX_NAME: usize = 160;

// === impl EffectRules ===

impl EffectRules {
    /// Parses the two lists of a server.
    pub fn new(read: &[String], write: &[String]) -> Result<Self, BadPattern> {
        if let Some(both) = read.iter().find(|pattern| write.contains(pattern)) {
            return Err(BadPattern::Both(both.clone()));
        }
        let globs = |list: &[String]| -> Result<Vec<GlobMatcher>, BadPattern> {
            list.iter().map(|text| glob(text)).collect()
        };
        Ok(Self { read: globs(read)?, write: globs(write)? })
    }

    /// The effect of `tool`; [`EffectRules::classify`] also gives the reasons.
    pub fn of(&self, tool: &str, definition: &Json, trust: Trust) -> Effect {
        self.classify(tool, definition, trust).effect
    }

    /// The effect of `tool`, with reasons.
    ///
    /// The order is: the operator's lists, the tool's annotations if its server is trusted, the
    /// classifier's result on `definition`, which is the tool as its server describes it.
    ///
    /// A tool in both lists writes.
    pub fn classify(&self, tool: &str, definition: &Json, trust: Trust) -> Classified {
        let listed = |globs: &[GlobMatcher]| globs.iter().find(|glob| glob.is_match(tool)).cloned();
        match (listed(&self.write), listed(&self.read)) {
            (Some(glob), read) => Classified::overridden(Effect::Write, "write", &glob, read),
            (None, Some(glob)) => Classified::overridden(Effect::Read, "read", &glob, None),
            (None, None) => {
                let hints = Hints::of(definition);
                let judged = classify(tool, definition);
                match trust {
                    Trust::Trusted => believing(hints, judged),
                    Trust::Untrusted | Trust::Sandboxed => doubting(hints, judged),
                }
            }
        }
    }
}

// === impl Classified ===

impl Classified {
    /// A tool of an unknown server.
    pub(crate) fn unknown() -> Self {
        let reasons = vec!["configuration: no such server".to_owned()];
        Self { effect: Effect::Unknown, confidence: 0, source: Source::Fallback, reasons }
    }

    fn overridden(effect: Effect, list: &str, by: &GlobMatcher, also: Option<GlobMatcher>) -> Self {
        let mut reasons = vec![format!("configuration: effect.{list} has `{}`", by.glob())];
        if let Some(also) = also {
            reasons.push(format!("effect.read has `{}`, too; a tool in both writes", also.glob()));
        }
        Self { effect, confidence: 100, source: Source::Override, reasons }
    }

    /// The result of the classifier.
    fn judged(judged: Judged) -> Self {
        let Judged { effect, confidence, reasons, destroys: _ } = judged;
        let source = match effect {
            Effect::Read | Effect::Write => Source::Classifier,
            Effect::Unknown => Source::Fallback,
        };
        Self { effect, confidence, source, reasons }
    }

    /// The result of an annotation that counts.
    fn annotated(effect: Effect, hints: Hints) -> Self {
        let reasons = vec![hints.text()];
        Self { effect, confidence: 95, source: Source::Annotation, reasons }
    }
}

// === impl Source ===

impl Source {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Annotation => "annotation",
            Self::Classifier => "classifier",
            Self::Fallback => "fallback",
        }
    }
}

/// The words of a name, in lower case.
pub(crate) fn name_words(name: &str) -> Vec<String> {
    name::tokens(name.chars().take(MAX_NAME))
}

/// The annotations of a trusted server count, unless the tool's name contradicts them.
fn believing(hints: Hints, judged: Judged) -> Classified {
    match hints.effect() {
        Effect::Unknown => Classified::judged(judged),
        Effect::Write => Classified::annotated(Effect::Write, hints),
        Effect::Read => {
            let mut classified = Classified::annotated(Effect::Read, hints);
            if let Some(verb) = &judged.destroys {
                classified.effect = Effect::Write;
                let lie = format!("finding: says readOnlyHint, but its name has `{verb}`");
                classified.reasons.push(lie);
            } else {
                classified.reasons.extend(lie(&judged));
            }
            classified
        }
    }
}

/// The annotations of other servers are only hints: they can make a tool a write, but never a read.
fn doubting(hints: Hints, judged: Judged) -> Classified {
    match (hints.effect(), judged.effect) {
        (Effect::Write, Effect::Read | Effect::Unknown) => {
            let mut classified = Classified::annotated(Effect::Write, hints);
            // A server has no advantage from declaring a read as a write.
            classified.confidence = 90;
            classified.reasons.extend(judged.reasons);
            classified
        }
        (Effect::Read, Effect::Write | Effect::Unknown) => {
            let lie = lie(&judged);
            let mut classified = Classified::judged(judged);
            classified.reasons.push(format!("{}, from a server that is not trusted", hints.text()));
            classified.reasons.extend(lie);
            classified
        }
        (Effect::Write, Effect::Write) | (Effect::Read, Effect::Read) | (Effect::Unknown, _) => {
            Classified::judged(judged)
        }
    }
}

/// The finding for a tool that claims to read and looks like a write.
fn lie(judged: &Judged) -> Option<String> {
    let is_lie = judged.effect == Effect::Write && judged.confidence >= SURE;
    let why = judged.reasons.first().map_or("", String::as_str);
    is_lie.then(|| format!("finding: says readOnlyHint, but looks like a write ({why})"))
}

#[cfg(test)]
mod tests;
