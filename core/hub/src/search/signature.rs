//! The arguments of a tool in one line: `(path: string, mode?: "read" | "write")`.
//!
//! A search result names many tools. Their whole schemas would cost more tokens than a search saves.

use capstan_safety::clean::quotable;
use capstan_wire::Json;
use serde_json::Value;

/// Maximum length of a signature, in bytes.
const MAX_SIGNATURE: usize = 400;

/// Maximum depth of objects whose members are shown.
const MAX_DEPTH: usize = 2;

/// Maximum number of permitted values that are shown.
const MAX_VALUES: usize = 6;

/// Larger schemas are not read.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Writes the arguments of a schema as a typed signature. Required arguments come first.
///
/// A schema that cannot be read has the signature `(…)`.
pub fn signature(schema: &Json) -> String {
    if schema.len() > MAX_SCHEMA_BYTES {
        return "(…)".to_owned();
    }
    let Ok(schema) = schema.read::<Value>() else { return "(…)".to_owned() };
    let mut text = String::from("(");
    text.push_str(&members(&schema, 0));
    if text.len() > MAX_SIGNATURE {
        text.truncate(text.floor_char_boundary(MAX_SIGNATURE));
        text.push('…');
    }
    text.push(')');
    quotable(&text)
}

/// The members of an object, required ones first.
fn members(schema: &Value, depth: usize) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return String::new();
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
    };
    let mut text = String::new();
    for wanted in [true, false] {
        for (name, member) in properties.iter().filter(|(name, _)| is_required(name) == wanted) {
            if text.len() > MAX_SIGNATURE {
                return text;
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(name);
            text.push_str(if wanted { ": " } else { "?: " });
            text.push_str(&kind(member, depth));
        }
    }
    text
}

/// The type of one argument.
fn kind(schema: &Value, depth: usize) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let shown: Vec<String> = values.iter().take(MAX_VALUES).map(Value::to_string).collect();
        let more = if values.len() > MAX_VALUES { " | …" } else { "" };
        return format!("{}{more}", shown.join(" | "));
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(choice).and_then(Value::as_array) {
            if depth >= MAX_DEPTH {
                return "…".to_owned();
            }
            let mut kinds: Vec<String> =
                choices.iter().take(MAX_VALUES).map(|choice| kind(choice, depth + 1)).collect();
            kinds.dedup();
            return kinds.join(" | ");
        }
    }
    match schema.get("type") {
        Some(Value::String(word)) => typed(word, schema, depth),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            words.map(|word| typed(word, schema, depth)).collect::<Vec<_>>().join(" | ")
        }
        _ if schema.get("properties").is_some() => typed("object", schema, depth),
        _ => "any".to_owned(),
    }
}

fn typed(word: &str, schema: &Value, depth: usize) -> String {
    match word {
        "array" => {
            let items = schema.get("items").filter(|_| depth < MAX_DEPTH);
            let items = items.map_or_else(|| "any".to_owned(), |items| kind(items, depth + 1));
            if items.contains(" | ") { format!("({items})[]") } else { format!("{items}[]") }
        }
        "object" if depth < MAX_DEPTH && schema.get("properties").is_some() => {
            format!("{{{}}}", members(schema, depth + 1))
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> String {
        signature(&Json::parse(schema.to_owned()).unwrap())
    }

    #[test]
    fn required_arguments_come_first_with_their_types() {
        let schema = r#"{"type":"object","required":["path"],"properties":{
            "mode":{"enum":["read","write"]},"path":{"type":"string"},
            "tags":{"type":"array","items":{"type":"string"}},
            "limit":{"type":["integer","null"]},
            "filter":{"type":"object","required":["a"],"properties":{"a":{"type":"number"},"b":{}}},
            "when":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}"#;
        assert_eq!(
            of(schema),
            "(path: string, mode?: \"read\" | \"write\", tags?: string[], limit?: integer | null, \
             filter?: {a: number, b?: any}, when?: string | integer)"
        );
    }

    #[test]
    fn odd_and_endless_schemas_have_a_short_signature() {
        assert_eq!(of("{}"), "()");
        assert_eq!(of("[]"), "()");
        assert_eq!(of(r#"{"properties":{"c":{"type":7},"d":true}}"#), "(c?: any, d?: any)");
        let hidden = of("{\"properties\":{\"a\\n\\u001b[2Jb\":{\"type\":\"string\"}}}");
        assert!(!hidden.contains(['\n', '\u{1b}']), "{hidden:?}");
        let deep = format!("{}{}{}", r#"{"properties":{"a":"#.repeat(60), "{}", "}}".repeat(60));
        assert_eq!(of(&deep), "(a?: {a?: {a?: object}})");
        let many: Vec<String> = (0..5_000).map(|i| format!("\"ä{i}\":{{}}")).collect();
        let wide = of(&format!("{{\"properties\":{{{}}}}}", many.join(",")));
        assert!(wide.len() < MAX_SIGNATURE + 10 && wide.ends_with("…)"), "{wide}");
        let huge = format!("{{\"title\":\"{}\"}}", "x".repeat(MAX_SCHEMA_BYTES));
        assert_eq!(of(&huge), "(…)");
    }
}
