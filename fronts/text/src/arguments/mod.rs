//! Builds the arguments of a call from words of the command line.
//!
//! There are three forms: a single `-` reads a JSON object from stdin, a single word that begins
//! with `{` is the object itself, and everything else is `key=value` (typed by the tool's input
//! schema), `key:=json` (taken as it is), or either with `@FILE` as the value. JSON in the first two
//! forms is passed on byte for byte, and numbers keep their digits in all forms.

mod given;
mod pairs;
mod schema;
pub mod slots;
pub mod usage;
mod value;
mod words;
#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::io;

use capstan_wire::{BadJson, Json, compose, object};

pub use self::given::{Given, Input, needs_input};
use self::schema::Schema;
use crate::clean::one_line;

/// Maximum length of a description in a message about a missing argument.
const MAX_DESCRIPTION: usize = 80;

/// The reason why words are not valid arguments.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// A word that stands for all arguments is mixed with others.
    #[error("`{word}` stands for all arguments and cannot be mixed with others")]
    Alone {
        /// `-`, or the beginning of a JSON object.
        word: String,
    },
    /// Stdin could not be read.
    #[error("cannot read the arguments from stdin")]
    Stdin(#[source] io::Error),
    /// Stdin has too many bytes.
    #[error("the arguments on stdin have more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// A file that a value refers to could not be read.
    #[error("cannot read the file `{path}` for `{key}`: {cause}")]
    File {
        /// The key.
        key: String,
        /// The path as typed.
        path: String,
        /// The reason.
        cause: io::Error,
    },
    /// The files that values refer to have too many bytes.
    #[error("with the file `{path}`, the arguments have more than {limit} bytes")]
    FileTooLarge {
        /// The path as typed.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// A file that a value refers to is not text.
    #[error("the file `{path}` for `{key}` is not UTF-8 text")]
    Binary {
        /// The key.
        key: String,
        /// The path as typed.
        path: String,
    },
    /// A piece that must be JSON is not valid.
    #[error("{what} is not valid JSON")]
    NotJson {
        /// The name of the piece.
        what: String,
        /// The position of the syntax error.
        #[source]
        cause: BadJson,
    },
    /// The arguments are JSON, but not an object.
    #[error("the arguments are not a JSON object but {found}")]
    NotObject {
        /// The type that was found instead.
        found: &'static str,
    },
    /// A word has none of the forms.
    #[error("`{word}` is not an argument")]
    NotAPair {
        /// The word.
        word: String,
    },
    /// `--key` is the last word and is not a boolean.
    #[error("`--{key}` needs a value")]
    NoValue {
        /// The key.
        key: String,
    },
    /// One argument was given twice.
    #[error("`{key}` is given twice and is not a list")]
    Twice {
        /// The key.
        key: String,
    },
    /// The tool has no such argument.
    #[error("there is no argument `{key}`")]
    Unknown {
        /// The key as typed.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// All known keys.
        known: Vec<String>,
    },
    /// A value of the wrong type.
    #[error("`{key}` cannot be `{value}`: expected {expected}")]
    BadValue {
        /// The key as typed.
        key: String,
        /// The value as typed, or a mask.
        value: String,
        /// A description of valid values.
        expected: String,
        /// True if the value can be a list.
        is_list: bool,
    },
    /// Required arguments were not given.
    #[error("missing {}", list(missing))]
    Missing {
        /// The missing arguments.
        missing: Vec<Missing>,
    },
}

/// An argument that was not given.
#[derive(Debug, PartialEq, Eq)]
pub struct Missing {
    /// The key.
    pub key: String,
    /// A description of valid values.
    pub expected: String,
    /// The server's description.
    pub description: Option<String>,
}

// === impl ArgumentError ===

impl ArgumentError {
    /// The remedy, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotAPair { .. } => {
                Some("write `key=value`, `key:=json` or one JSON object".to_owned())
            }
            Self::NoValue { key } => Some(format!("write `--{key}=VALUE` or `{key}=VALUE`")),
            Self::File { key, path, .. } => {
                Some(format!("for a text that begins with `@`, write `{key}=@@{path}`"))
            }
            Self::Binary { key, path } => {
                Some(format!("if the tool takes base64, write `{key}=\"$(base64 -w0 '{path}')\"`"))
            }
            Self::BadValue { key, is_list: true, .. } => {
                Some(format!("repeat `{key}=…` for each item, or write `{key}:='[…]'`"))
            }
            Self::Unknown { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{nearest}`?"))
            }
            Self::Unknown { nearest: None, known, .. } => match known.as_slice() {
                [] => Some("it takes no arguments".to_owned()),
                known => Some(format!("there are {}", quoted(known))),
            },
            Self::NotJson { cause, .. } => cause.source().map(ToString::to_string),
            Self::Alone { .. }
            | Self::Stdin(_)
            | Self::TooLarge { .. }
            | Self::FileTooLarge { .. }
            | Self::NotObject { .. }
            | Self::Twice { .. }
            | Self::BadValue { is_list: false, .. }
            | Self::Missing { .. } => None,
        }
    }
}

fn is_object_text(word: &str) -> bool {
    word.trim_start().starts_with('{')
}

/// Parses a JSON object and keeps its text.
fn whole(text: String, what: &str) -> Result<Json, ArgumentError> {
    let json = parse(text, what)?;
    match json.as_bytes().first() {
        Some(b'{') => Ok(json),
        first => Err(ArgumentError::NotObject { found: noun(first.copied()) }),
    }
}

fn parse(text: String, what: &str) -> Result<Json, ArgumentError> {
    Json::parse(text).map_err(|cause| ArgumentError::NotJson { what: what.to_owned(), cause })
}

/// The word for a JSON value that begins with this byte.
fn noun(first: Option<u8>) -> &'static str {
    match first {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(_) | None => "a number",
    }
}

/// Fails if an object lacks members that `schema` requires. `place` is the path of the object.
fn refuse_missing(given: &Json, schema: Schema<'_>, place: &str) -> Result<(), ArgumentError> {
    let missing: Vec<Missing> = schema
        .required()
        .into_iter()
        .filter(|key| object::get(given, key).is_none())
        .map(|key| {
            let property = schema.property(key);
            let describe = |text: &str| one_line(text, MAX_DESCRIPTION);
            Missing {
                key: format!("{place}{}", one_line(key, MAX_DESCRIPTION)),
                expected: property.map_or_else(|| "any value".to_owned(), Schema::expected),
                description: property.and_then(Schema::description).map(describe),
            }
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(ArgumentError::Missing { missing }) }
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn list(missing: &[Missing]) -> String {
    let line = |argument: &Missing| match &argument.description {
        Some(text) if !text.is_empty() => {
            format!("`{}` ({}: {text})", argument.key, argument.expected)
        }
        Some(_) | None => format!("`{}` ({})", argument.key, argument.expected),
    };
    missing.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// Composes an object with the members in the order given.
fn object_of(members: &[(String, Json)]) -> Json {
    let borrowed: Vec<(&str, &Json)> = members.iter().map(|(k, v)| (k.as_str(), v)).collect();
    compose::object(&borrowed)
}
