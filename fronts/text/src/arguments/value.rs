//! Converts the text of one value to JSON of the type that the schema requires.

use capstan_wire::{Json, compose};
use serde_json::Value;

use super::schema::{Alternative, Schema, Type};

/// Converts a text to JSON under a schema; `None` if it fits none of the allowed types.
///
/// If several types are allowed, the first that fits wins, and text comes after all types that can
/// be distinguished from text. So `5` for `["string", "integer"]` is a number; `key:="5"` is not.
pub(super) fn convert(text: &str, schema: Schema<'_>) -> Option<Json> {
    convert_at(Parent::Member, text, schema)
}

/// The position of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    /// The value of a member.
    Member,
    /// An item of a list. A list within it must be JSON: a schema that contains itself would cause
    /// endless recursion.
    Item,
}

fn convert_at(place: Parent, text: &str, schema: Schema<'_>) -> Option<Json> {
    let ways = schema.ways();
    let choices = ways.iter().filter_map(|way| way.choices.as_ref()).flatten();
    if let Some(chosen) = choices.into_iter().find_map(|choice| as_choice(text, choice)) {
        return Some(chosen);
    }
    let open: Vec<&Alternative<'_>> = ways.iter().filter(|way| way.choices.is_none()).collect();
    if open.iter().any(|way| way.types.is_empty()) {
        return Some(guess(text));
    }
    let takes_text = open.iter().any(|way| way.types.contains(&Type::Text));
    let mut tries: Vec<(Type, &Alternative<'_>)> =
        open.iter().flat_map(|way| way.types.iter().map(move |t| (*t, *way))).collect();
    tries.sort_by_key(|(t, _)| *t);
    // If text is also allowed, `yes` and `1` are text; only `true` and `false` are booleans.
    tries.retain(|(t, _)| *t != Type::Boolean || !takes_text || matches!(text, "true" | "false"));
    if text.trim_start().starts_with('[')
        && let Some(list) = json_of(text, b'[')
        && tries.iter().any(|(t, _)| *t == Type::List)
    {
        return Some(list);
    }
    tries.retain(|(t, _)| *t != Type::List || place == Parent::Member);
    tries.into_iter().find_map(|(t, way)| as_type(text, t, way))
}

/// Converts a text to one item of a list.
pub(super) fn convert_item(text: &str, schema: Schema<'_>) -> Option<Json> {
    let ways = schema.ways();
    let way = ways.iter().find(|way| way.types.contains(&Type::List))?;
    item(text, way)
}

/// Converts a text without a schema: to JSON if it is an object, a list, a number, a boolean or
/// null, else to a string.
pub(super) fn guess(text: &str) -> Json {
    let composed = text.starts_with(['{', '[']);
    let literal = composed || matches!(text, "true" | "false" | "null") || is_number(text);
    let json = if literal { Json::parse(text.to_owned()).ok() } else { None };
    json.unwrap_or_else(|| compose::string(text))
}

fn as_type(text: &str, wanted: Type, way: &Alternative<'_>) -> Option<Json> {
    match wanted {
        Type::Null => (text == "null").then(|| guess("null")),
        Type::Integer => is_integer(text).then(|| guess(text)),
        Type::Number => is_number(text).then(|| guess(text)),
        Type::Boolean => boolean(text),
        Type::Object => json_of(text, b'{'),
        Type::Text => Some(compose::string(text)),
        Type::List => list(text, way),
    }
}

fn boolean(text: &str) -> Option<Json> {
    let is_any = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_any(&["true", "yes", "1"]) {
        Some(guess("true"))
    } else if is_any(&["false", "no", "0"]) {
        Some(guess("false"))
    } else {
        None
    }
}

/// Converts one word to a list: JSON, or a single item. Commas belong to the item: "Smith, John".
fn list(text: &str, way: &Alternative<'_>) -> Option<Json> {
    match text {
        "" => Some(compose::array([])),
        _ if text.trim_start().starts_with('[') => json_of(text, b'['),
        _ => item(text, way).map(|item| compose::array([&item])),
    }
}

fn item(text: &str, way: &Alternative<'_>) -> Option<Json> {
    match way.items {
        Some(schema) => convert_at(Parent::Item, text, schema),
        None => Some(guess(text)),
    }
}

/// The text as JSON, if it is valid and begins with this byte.
fn json_of(text: &str, first: u8) -> Option<Json> {
    Json::parse(text.to_owned()).ok().filter(|json| json.as_bytes().first() == Some(&first))
}

/// The text as JSON, if it is this choice as it is typed.
fn as_choice(text: &str, choice: &Value) -> Option<Json> {
    if let Value::String(choice) = choice {
        return (choice == text).then(|| compose::string(text));
    }
    // Compared by value but sent as typed, so that a number keeps its digits.
    let json = Json::parse(text.to_owned()).ok()?;
    json.read::<Value>().is_ok_and(|value| value == *choice).then_some(json)
}

/// True if the text is a JSON number.
fn is_number(text: &str) -> bool {
    let ends_with_digit = text.ends_with(|c: char| c.is_ascii_digit());
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    begins && ends_with_digit && Json::parse(text.to_owned()).is_ok()
}

fn is_integer(text: &str) -> bool {
    is_number(text) && !text.contains(['.', 'e', 'E'])
}
