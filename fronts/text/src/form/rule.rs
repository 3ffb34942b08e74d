//! Rules for the answer to a field, and conversion of typed text to an answer.

use capstan_wire::{Json, compose, object};

/// The kind of answer that a field takes.
#[derive(Debug)]
pub(super) enum Kind {
    /// Any text within limits.
    Text {
        /// Lengths in characters.
        lengths: Lengths,
        format: Option<Format>,
    },
    /// A whole number.
    Integer(Range),
    /// A number.
    Number(Range),
    /// Yes or no.
    Boolean,
    /// One of these choices.
    Choice(Vec<Choice>),
    /// Any number of these choices.
    Choices { options: Vec<Choice>, lengths: Lengths },
}

/// A value to choose.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) value: Json,
    /// The text that is shown; safe to show.
    pub(super) title: String,
}

/// Limits on the length of a text or list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lengths {
    pub(super) min: Option<usize>,
    pub(super) max: Option<usize>,
}

/// Limits on a number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Email,
    Uri,
    Date,
    DateTime,
}

/// The reason why an answer is invalid, as the end of a sentence that begins with the answer.
pub(super) type Fault = String;

// === impl Kind ===

impl Kind {
    /// Checks that `value` satisfies the rules.
    pub(super) fn check(&self, value: &Json) -> Result<(), Fault> {
        match self {
            Self::Text { lengths, format } => {
                let text: String = value.read().map_err(|_| "is not text")?;
                lengths.check(text.chars().count(), "characters")?;
                format.map_or(Ok(()), |format| format.check(&text))
            }
            Self::Integer(range) => {
                let digits = value.as_str().strip_prefix('-').unwrap_or(value.as_str());
                let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
                if whole { range.check(value) } else { Err("is not a whole number".to_owned()) }
            }
            Self::Number(range) => range.check(value),
            Self::Boolean => match value.as_str() {
                "true" | "false" => Ok(()),
                _ => Err("is neither true nor false".to_owned()),
            },
            Self::Choice(options) => is_option(options, value),
            Self::Choices { options, lengths } => {
                let items = object::items(value).map_err(|_| "is not a list")?;
                let twice = items
                    .iter()
                    .enumerate()
                    .any(|(at, item)| items.iter().take(at).any(|i| i == item));
                if twice {
                    return Err("has an item twice".to_owned());
                }
                lengths.check(items.len(), "items")?;
                items.iter().try_for_each(|item| is_option(options, item))
            }
        }
    }

    /// Converts typed text to an answer that satisfies the rules. Numbers keep their digits.
    pub(super) fn parse(&self, text: &str) -> Result<Json, Fault> {
        let value = match self {
            Self::Text { .. } => compose::string(text),
            Self::Integer(_) | Self::Number(_) => {
                Json::parse(text.trim().to_owned()).map_err(|_| "is not a number")?
            }
            Self::Boolean | Self::Choice(_) | Self::Choices { .. } => {
                Json::parse(text.trim().to_owned()).map_err(|_| "is not valid JSON")?
            }
        };
        self.check(&value)?;
        Ok(value)
    }
}

fn is_option(options: &[Choice], value: &Json) -> Result<(), Fault> {
    let same = |option: &Choice| option.value == *value || same_text(&option.value, value);
    if options.iter().any(same) { Ok(()) } else { Err("is not one of the choices".to_owned()) }
}

/// True if both are the same text, regardless of escapes.
fn same_text(one: &Json, other: &Json) -> bool {
    matches!((one.read::<String>(), other.read::<String>()), (Ok(one), Ok(other)) if one == other)
}

// === impl Lengths ===

impl Lengths {
    fn check(self, length: usize, unit: &str) -> Result<(), Fault> {
        match (self.min, self.max) {
            (Some(min), _) if length < min => {
                Err(format!("has {length} {unit}; at least {min} are needed"))
            }
            (_, Some(max)) if length > max => {
                Err(format!("has {length} {unit}; at most {max} are allowed"))
            }
            _ => Ok(()),
        }
    }
}

// === impl Range ===

impl Range {
    fn check(self, value: &Json) -> Result<(), Fault> {
        let number: f64 = value.read().map_err(|_| "is not a number")?;
        match (self.min, self.max) {
            (Some(min), _) if number < min => Err(format!("is less than {min}")),
            (_, Some(max)) if number > max => Err(format!("is greater than {max}")),
            _ => Ok(()),
        }
    }
}

// === impl Format ===

impl Format {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        match word {
            "email" => Some(Self::Email),
            "uri" => Some(Self::Uri),
            "date" => Some(Self::Date),
            "date-time" => Some(Self::DateTime),
            _ => None,
        }
    }

    /// An example, shown with the question.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Email => "such as name@example.com",
            Self::Uri => "such as https://example.com",
            Self::Date => "such as 2026-01-31",
            Self::DateTime => "such as 2026-01-31T12:00:00Z",
        }
    }

    fn check(self, text: &str) -> Result<(), Fault> {
        let fits = match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.contains(['T', 't']) && text.parse::<jiff::Timestamp>().is_ok(),
        };
        let word = match self {
            Self::Email => "an e-mail address",
            Self::Uri => "an address",
            Self::Date => "a date",
            Self::DateTime => "a date with a time and a zone",
        };
        if fits { Ok(()) } else { Err(format!("is not {word}, {}", self.example())) }
    }
}

fn is_email(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && !part.contains(['@', ',', ';', '<', '>']);
    let clean = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    clean
        && text.rsplit_once('@').is_some_and(|(name, host)| {
            plain(name) && plain(host) && !host.starts_with('.') && !host.ends_with('.')
        })
}

fn is_uri(text: &str) -> bool {
    let clean = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let scheme_fits = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    clean
        && text
            .split_once(':')
            .is_some_and(|(scheme, rest)| scheme_fits(scheme) && !rest.is_empty())
}
