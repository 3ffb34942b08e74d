//! Describes the arguments of a tool: rows of a table, and an example call.

use serde_json::Value;

use super::schema::{Schema, Type};

/// The headers of [`rows`].
pub const HEADERS: [&str; 4] = ["ARGUMENT", "TYPE", "NEEDED", "DESCRIPTION"];

/// Number of optional arguments in an example without required ones.
const MOST_OPTIONAL: usize = 2;

/// The arguments that a schema names, required ones first, as rows of a table.
pub fn rows(schema: &Value) -> Vec<Vec<String>> {
    let schema = Schema::new(schema);
    let required = schema.required();
    let mut keys = schema.keys();
    keys.sort_by_key(|key| !required.contains(key));
    let row = |key: &str| {
        let member = schema.property(key)?;
        let needed = if required.contains(&key) { "required" } else { "optional" };
        let description = member.description().unwrap_or_default();
        let description = match member.value("default").filter(|value| !value.is_null()) {
            Some(default) => format!("{description} (default {default})"),
            None => description.to_owned(),
        };
        let texts = [key, &member.expected(), needed, description.trim()];
        Some(texts.map(ToOwned::to_owned).to_vec())
    };
    keys.into_iter().filter_map(row).collect()
}

/// The required arguments with example values, as words of `capstan call`; if none is required, the
/// first optional ones.
///
/// A value comes from the schema's examples, default or choices; a text without any is the
/// argument's name in capitals.
pub fn example(schema: &Value) -> Vec<String> {
    let schema = Schema::new(schema);
    let word = |key: &str| {
        let member = schema.property(key);
        match member.map_or(Value::from(placeholder(key)), |member| value(key, member)) {
            Value::String(text) => quoted(&format!("{key}={text}")),
            Value::Array(items) => match items.as_slice() {
                [Value::String(text)] => quoted(&format!("{key}={text}")),
                [only] if !only.is_object() && !only.is_array() => format!("{key}={only}"),
                _ => quoted(&format!("{key}:={}", Value::Array(items))),
            },
            object @ Value::Object(_) => quoted(&format!("{key}:={object}")),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => format!("{key}={plain}"),
        }
    };
    let mut shown = schema.required();
    if shown.is_empty() {
        shown = schema.keys().into_iter().take(MOST_OPTIONAL).collect();
    }
    shown.into_iter().map(word).collect()
}

/// An example of a value that fits a schema.
fn value(key: &str, schema: Schema<'_>) -> Value {
    let ways = schema.ways();
    let first = |name: &str| schema.value(name)?.as_array()?.first();
    let choice = || ways.iter().find_map(|way| way.choices.as_ref()?.first().copied());
    let known = first("examples").or_else(|| schema.value("default")).or_else(choice);
    if let Some(known) = known.filter(|known| !known.is_null()) {
        return known.clone();
    }
    let types = ways.iter().flat_map(|way| way.types.iter().copied());
    match types.filter(|kind| *kind != Type::Null).min() {
        Some(Type::Integer | Type::Number) => {
            schema.value("minimum").filter(|least| least.is_number()).cloned().unwrap_or(1.into())
        }
        Some(Type::Boolean) => true.into(),
        Some(Type::Object) => Value::Object(serde_json::Map::new()),
        Some(Type::List) => {
            let items = ways.iter().find_map(|way| way.items).filter(|items| items.is_simple());
            items.map_or(Value::Array(Vec::new()), |items| Value::Array(vec![value(key, items)]))
        }
        Some(Type::Text | Type::Null) | None => {
            match schema.value("format").and_then(Value::as_str) {
                Some("uri" | "url") => "https://example.com".into(),
                Some("date") => "2026-01-31".into(),
                Some("date-time") => "2026-01-31T12:00:00Z".into(),
                Some("email") => "me@example.com".into(),
                Some(_) | None => placeholder(key).into(),
            }
        }
    }
}

fn placeholder(key: &str) -> String {
    key.to_uppercase()
}

/// Quotes a word for a shell, if needed.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:=,%".contains(c);
    if word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::tests::typed;

    #[test]
    fn required_arguments_come_first_and_defaults_are_shown() {
        let schema = json!({
            "type": "object",
            "properties": {
                "limit": { "type": "integer", "description": "At most", "default": 5 },
                "unit": { "enum": ["c", "f"] },
                "city": { "type": "string", "description": "Where" },
            },
            "required": ["city"],
        });
        let rows: Vec<String> = rows(&schema).iter().map(|row| row.join(" | ")).collect();
        assert_eq!(
            rows,
            [
                "city | text | required | Where",
                "limit | an integer | optional | At most (default 5)",
                "unit | one of `c`, `f` | optional | ",
            ]
        );
        assert_eq!(super::rows(&json!({})), Vec::<Vec<String>>::new());
    }

    #[test]
    fn an_example_fits_the_schema_that_it_is_made_from() {
        let schema = json!({
            "type": "object",
            "properties": {
                "message": { "type": "string" },
                "site": { "type": "string", "format": "uri" },
                "count": { "type": ["null", "integer"], "minimum": 3 },
                "fast": { "type": "boolean" },
                "unit": { "enum": ["c", "f"] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "filter": { "type": "object" },
                "said": { "type": "string", "examples": ["it's fine"] },
            },
            "required": ["message", "site", "count", "fast", "unit", "tags", "filter", "said"],
        });
        let words = example(&schema);
        assert_eq!(
            words,
            [
                "message=MESSAGE",
                "site=https://example.com",
                "count=3",
                "fast=true",
                "unit=c",
                "tags=TAGS",
                "'filter:={}'",
                r"'said=it'\''s fine'",
            ]
        );
        let words: Vec<String> =
            words.iter().map(|word| word.trim_matches('\'').replace(r"'\''", "'")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let built = typed(&schema.to_string(), &words).unwrap();
        let built: Value = built.read().unwrap();
        assert_eq!(built["count"], json!(3));
        assert_eq!(built["tags"], json!(["TAGS"]));
        assert_eq!(built["filter"], json!({}));
    }
}
