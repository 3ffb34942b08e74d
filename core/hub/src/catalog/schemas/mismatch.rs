//! Describes in words why a value does not fit a schema.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the reasons are those of a library that adds to them; each has a keyword to fall back on"
)]

use std::error::Error;
use std::fmt::Write as _;

use capstan_model::secret::{MASK, is_secret_name, looks_like_token};
use jsonschema::error::{TypeKind, ValidationErrorKind as Reason};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

/// Longest value or pattern that a message quotes, in characters.
const MAX_SHOWN: usize = 60;

/// Longest foreign message that is quoted, in characters.
const MAX_CAUSE: usize = 160;

/// Most names or choices that are listed.
const MAX_LISTED: usize = 8;

/// Describes one mismatch in arguments.
pub(super) fn tell(error: &ValidationError<'_>) -> String {
    say(error, "the arguments")
}

/// Describes one mistake in a schema.
pub(super) fn tell_schema(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Reason::Referencing(cause) => cut(&cause.to_string(), MAX_CAUSE),
        Reason::Format { .. } => format!("`{}` is not a pattern", place(error.instance_path())),
        _ => say(error, "it"),
    }
}

/// Shortens a text that comes from a server.
pub(super) fn short(text: &str) -> String {
    cut(text, MAX_SHOWN)
}

/// Returns the innermost cause of an error, shortened.
pub(super) fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    cut(&innermost.to_string(), MAX_CAUSE)
}

/// True if the value may still fit: the check ran into a limit before it was done.
pub(super) fn is_doubtful(error: &ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        Reason::BacktrackLimitExceeded { .. } | Reason::RegexEngineFailure { .. }
    )
}

fn say(error: &ValidationError<'_>, root: &str) -> String {
    let path = error.instance_path();
    let given = || given(error.instance(), path);
    let who = if path.is_empty() { root.to_owned() } else { format!("`{}`", place(path)) };
    let member = |name: &str| {
        let inner = place(path);
        let dot = if inner.is_empty() { "" } else { "." };
        format!("`{inner}{dot}{}`", cut(name, MAX_SHOWN))
    };
    match error.kind() {
        Reason::Type { kind } => format!("{who} must be {}, not {}", types(kind), given()),
        Reason::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("{} is missing", member(name))
        }
        Reason::AdditionalProperties { unexpected }
        | Reason::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| member(name)).collect();
            format!("there is no {}", listed(&names, " and "))
        }
        Reason::Enum { options } => {
            let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
            let options: Vec<String> = options.iter().map(literal).collect();
            format!("{who} must be one of {}, not {}", listed(&options, ", "), given())
        }
        Reason::Constant { expected_value } => {
            format!("{who} must be {}, not {}", literal(expected_value), given())
        }
        Reason::Pattern { pattern } => {
            format!("{who} must match `{}`, which {} does not", cut(pattern, MAX_SHOWN), given())
        }
        Reason::AnyOf { context } | Reason::OneOfNotValid { context } => {
            none_of(context, &who, &given())
        }
        Reason::FalseSchema if error.schema_path().as_str().ends_with("additionalProperties") => {
            format!("{who} must have no members")
        }
        Reason::FalseSchema => format!("{who} must not be given"),
        Reason::OneOfMultipleValid { .. } => {
            format!("{who} must match exactly one form, but matches several")
        }
        kind => match limit(kind) {
            Some(limit) => format!("{who} must {limit}, not {}", given()),
            None => format!("{who} does not match `{}`", cut(kind.keyword(), MAX_SHOWN)),
        },
    }
}

/// Describes the limit that a value violates; `None` if the reason is not a limit.
fn limit(kind: &Reason) -> Option<String> {
    Some(match kind {
        Reason::Minimum { limit } => format!("be at least {limit}"),
        Reason::ExclusiveMinimum { limit } => format!("be more than {limit}"),
        Reason::Maximum { limit } => format!("be at most {limit}"),
        Reason::ExclusiveMaximum { limit } => format!("be less than {limit}"),
        Reason::MultipleOf { multiple_of } => format!("be a multiple of {multiple_of}"),
        Reason::MinLength { limit } => format!("have at least {limit} characters"),
        Reason::MaxLength { limit } => format!("have at most {limit} characters"),
        Reason::MinItems { limit } => format!("have at least {limit} items"),
        Reason::MaxItems { limit } => format!("have at most {limit} items"),
        Reason::MinProperties { limit } => format!("have at least {limit} members"),
        Reason::MaxProperties { limit } => format!("have at most {limit} members"),
        Reason::UniqueItems => "have no item twice".to_owned(),
        _ => return None,
    })
}

/// Describes a value that fits none of several forms: the possible types, or the nearest form's
/// error.
fn none_of(context: &[Vec<ValidationError<'static>>], who: &str, given: &str) -> String {
    let first = |form: &Vec<ValidationError<'static>>| match form.first().map(ValidationError::kind)
    {
        Some(Reason::Type { kind }) => Some(types(kind)),
        Some(_) | None => None,
    };
    let kinds: Option<Vec<String>> = context.iter().map(first).collect();
    if let Some(mut kinds) = kinds.filter(|kinds| !kinds.is_empty()) {
        kinds.dedup();
        return format!("{who} must be {}, not {given}", listed(&kinds, " or "));
    }
    let nearest = context.iter().filter(|form| first(form).is_none()).min_by_key(|form| form.len());
    let count = context.len();
    match nearest.and_then(|form| form.first()).filter(|error| !is_choice(error.kind())) {
        Some(error) => {
            format!(
                "{who} matches none of {count} forms; for the closest one, {}",
                say(error, "it")
            )
        }
        None => format!("{who} matches none of {count} forms"),
    }
}

fn is_choice(kind: &Reason) -> bool {
    matches!(kind, Reason::AnyOf { .. } | Reason::OneOfNotValid { .. })
}

/// Formats a path as it is typed: `issue.labels[0]`.
fn place(path: &Location) -> String {
    let mut text = String::new();
    for segment in path.segments() {
        match segment {
            LocationSegment::Property(name) => {
                let dot = if text.is_empty() { "" } else { "." };
                text.push_str(dot);
                text.push_str(&name);
            }
            LocationSegment::Index(index) => drop(write!(text, "[{index}]")),
        }
    }
    cut(&text, MAX_SHOWN)
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => noun(*kind).to_owned(),
        TypeKind::Multiple(kinds) => {
            let nouns: Vec<String> = kinds.iter().map(|kind| noun(kind).to_owned()).collect();
            listed(&nouns, " or ")
        }
    }
}

fn noun(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Number => "a number",
        JsonType::String => "text",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}

/// Describes the given value; secrets are masked, and lists and objects only named.
fn given(value: &Value, path: &Location) -> String {
    let is_secret = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Property(name) => is_secret_name(&name),
        LocationSegment::Index(_) => false,
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        _ if path.segments().any(is_secret) => MASK.to_owned(),
        Value::String(text) if looks_like_token(text) || text.contains("://") => MASK.to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => literal(value),
    }
}

fn literal(value: &Value) -> String {
    format!("`{}`", cut(&value.to_string(), MAX_SHOWN))
}

/// Joins the first few words, and says how many are left out.
fn listed(words: &[String], between: &str) -> String {
    let mut shown: Vec<String> = words.iter().take(MAX_LISTED).cloned().collect();
    if let Some(more) = words.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        shown.push(format!("{more} more"));
    }
    shown.join(between)
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
