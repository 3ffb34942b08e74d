//! Parses the words after a prompt or a template: values by name, or in declaration order.

use capstan_app::api::{Need, Slot};
use capstan_app::nearest;

use super::quoted;
use crate::clean::one_line;

/// Maximum length of a word or a description that a message repeats.
const MAX_SHOWN: usize = 80;

/// The reason why words do not fit the slots.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlotError {
    /// No slot has this name.
    #[error("there is no argument `{name}`{}", takes(known))]
    Unknown {
        /// The name as typed.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// A value is given twice.
    #[error("`{name}` is given twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// `--name` is the last word and has no value.
    #[error("`--{name}` needs a value")]
    NoValue {
        /// The name.
        name: String,
    },
    /// There are more values than slots.
    #[error("unexpected argument `{word}`{}", takes(known))]
    TooMany {
        /// The first surplus word.
        word: String,
        /// All known names.
        known: Vec<String>,
    },
    /// Required values are missing.
    #[error("missing {}{}", missing.join(", "), takes(known))]
    Missing {
        /// The missing names, with the server's descriptions.
        missing: Vec<String>,
        /// All known names.
        known: Vec<String>,
    },
}

/// Assigns words to slots, in the order of the slots; fails if a required value is missing.
pub fn fill(words: &[String], slots: &[Slot]) -> Result<Vec<(String, String)>, SlotError> {
    let given = assign(words, slots)?;
    let is_given = |slot: &&Slot| given.iter().any(|(name, _)| *name == slot.name);
    let missing: Vec<String> = slots
        .iter()
        .filter(|slot| slot.need == Need::Required && !is_given(slot))
        .map(|slot| match &slot.description {
            Some(text) => format!("`{}` ({})", shown(&slot.name), shown(text)),
            None => format!("`{}`", shown(&slot.name)),
        })
        .collect();
    if missing.is_empty() {
        return Ok(given);
    }
    Err(SlotError::Missing { missing, known: names(slots) })
}

/// Assigns words to slots; required values may be missing.
pub fn assign(words: &[String], slots: &[Slot]) -> Result<Vec<(String, String)>, SlotError> {
    let mut values: Vec<Option<String>> = vec![None; slots.len()];
    let mut bare = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            bare.extend(words.by_ref());
            break;
        }
        let Some((name, value)) = named(word, slots) else {
            bare.push(word);
            continue;
        };
        let at = slots.iter().position(|slot| slot.name == name);
        let place = at.and_then(|at| values.get_mut(at));
        let place = place.ok_or_else(|| unknown(name, slots))?;
        let next = || words.next().filter(|next| !next.starts_with("--")).map(String::as_str);
        let value = value.or_else(next);
        let value = value.ok_or_else(|| SlotError::NoValue { name: shown(name) })?;
        if place.replace(value.to_owned()).is_some() {
            return Err(SlotError::Twice { name: shown(name) });
        }
    }
    for word in bare {
        let Some(place) = values.iter_mut().find(|value| value.is_none()) else {
            return Err(SlotError::TooMany { word: shown(word), known: names(slots) });
        };
        *place = Some(word.clone());
    }
    let pairs = slots.iter().zip(values);
    Ok(pairs.filter_map(|(slot, value)| Some((slot.name.clone(), value?))).collect())
}

/// The name in a word, and its value unless that is the next word.
fn named<'a>(word: &'a str, slots: &[Slot]) -> Option<(&'a str, Option<&'a str>)> {
    if let Some(option) = word.strip_prefix("--") {
        return match option.split_once('=') {
            Some((name, value)) => Some((name, Some(value))),
            None => Some((option, None)),
        };
    }
    let (name, value) = word.split_once('=')?;
    // Free text may contain `=`. If the part before it looks like a name, it is more likely a
    // misspelt name, which must not silently become a value.
    let like_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !name.is_empty() && name.chars().all(like_a_name);
    let is_slot = slots.iter().any(|slot| slot.name == name);
    (is_name || is_slot).then_some((name, Some(value)))
}

/// The error for a name that no slot has.
pub fn unknown(name: &str, slots: &[Slot]) -> SlotError {
    let near = nearest(name, slots.iter().map(|slot| slot.name.as_str()));
    SlotError::Unknown { name: shown(name), nearest: near.map(shown), known: names(slots) }
}

// === impl SlotError ===

impl SlotError {
    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest: Some(near), .. } => Some(format!("did you mean `{near}`?")),
            Self::NoValue { name } => Some(format!("write `--{name}=VALUE` or `{name}=VALUE`")),
            Self::TooMany { known, .. } if !known.is_empty() => {
                Some("quote values that contain spaces".to_owned())
            }
            Self::Unknown { nearest: None, .. }
            | Self::TooMany { .. }
            | Self::Twice { .. }
            | Self::Missing { .. } => None,
        }
    }
}

fn names(slots: &[Slot]) -> Vec<String> {
    slots.iter().map(|slot| shown(&slot.name)).collect()
}

fn shown(text: &str) -> String {
    one_line(text, MAX_SHOWN)
}

fn takes(known: &[String]) -> String {
    if known.is_empty() {
        return "; it takes none".to_owned();
    }
    format!("; it takes {}", quoted(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `title` is required, `mood` is optional.
    fn slots() -> Vec<Slot> {
        let slot = |name: &str, need| Slot { name: name.to_owned(), need, description: None };
        vec![slot("title", Need::Required), slot("mood", Need::Optional)]
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check(typed: &[&str], expected: &[(&str, &str)]) {
        let given = fill(&words(typed), &slots()).unwrap();
        let given: Vec<(&str, &str)> =
            given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(given, expected, "{typed:?}");
    }

    #[track_caller]
    fn refused(typed: &[&str], message: &str) {
        assert_eq!(fill(&words(typed), &slots()).unwrap_err().to_string(), message, "{typed:?}");
    }

    #[test]
    fn every_form_gives_the_same_values() {
        let both = [("title", "LLxprt Code"), ("mood", "reverent")];
        check(&["--title=LLxprt Code", "--mood=reverent"], &both);
        check(&["--title", "LLxprt Code", "--mood", "reverent"], &both);
        check(&["--mood", "reverent", "title=LLxprt Code"], &both);
        check(&["LLxprt Code", "reverent"], &both);
        check(&["mood=reverent", "LLxprt Code"], &both);
        check(&["--", "LLxprt Code", "reverent"], &both);
        check(&["LLxprt Code"], &both[..1]);
    }

    #[test]
    fn any_text_can_be_a_value() {
        check(&["title=a=b"], &[("title", "a=b")]);
        check(&["--title=--json"], &[("title", "--json")]);
        check(&["--title="], &[("title", "")]);
        check(&["let x=1"], &[("title", "let x=1")]);
        check(&["https://a/?b=c"], &[("title", "https://a/?b=c")]);
        check(&["-5"], &[("title", "-5")]);
        check(&["--", "--title", "a=b"], &[("title", "--title"), ("mood", "a=b")]);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let takes = "; it takes `title`, `mood`";
        refused(&[], &format!("missing `title`{takes}"));
        refused(&["mood=x"], &format!("missing `title`{takes}"));
        refused(&["titel=x"], &format!("there is no argument `titel`{takes}"));
        refused(&["--what", "x"], &format!("there is no argument `what`{takes}"));
        refused(&["--what=x", "t"], &format!("there is no argument `what`{takes}"));
        refused(&["a", "b", "c"], &format!("unexpected argument `c`{takes}"));
        refused(&["title=a", "--title=b"], "`title` is given twice");
        refused(&["--what"], &format!("there is no argument `what`{takes}"));
        refused(&["--title"], "`--title` needs a value");
        refused(&["--title", "--mood", "x"], "`--title` needs a value");
    }

    #[test]
    fn a_slip_is_answered_with_the_right_name() {
        let hint = |typed: &[&str]| fill(&words(typed), &slots()).unwrap_err().hint();
        assert_eq!(hint(&["titel=x"]).as_deref(), Some("did you mean `title`?"));
        assert_eq!(hint(&["--x=1"]), None);
        assert_eq!(hint(&[]), None);
    }

    #[test]
    fn what_takes_nothing_says_so() {
        let error = |typed: &[&str]| fill(&words(typed), &[]).unwrap_err().to_string();
        assert_eq!(error(&["a"]), "unexpected argument `a`; it takes none");
        assert_eq!(error(&["--a", "b"]), "there is no argument `a`; it takes none");
        assert_eq!(fill(&[], &[]).unwrap(), []);
    }
}
