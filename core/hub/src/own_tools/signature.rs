//! The arguments of a tool on one line: `(title: string, labels?: string[])`.

use capstan_safety::clean::quotable;
use capstan_wire::Json;
use serde_json::{Map, Value};

/// Maximum number of arguments that are shown.
const MAX_ARGUMENTS: usize = 12;

/// Maximum number of words of an enumeration that are shown.
const MAX_WORDS: usize = 6;

/// Maximum length of a name or a word, in characters.
const MAX_NAME: usize = 40;

/// Deepest nesting of lists and alternatives that is shown.
const MAX_DEPTH: usize = 3;

/// Writes the arguments of a schema: the required ones first, the others with `?`.
pub(super) fn signature(schema: &Json) -> String {
    let Ok(Value::Object(schema)) = schema.read::<Value>() else { return "()".to_owned() };
    let Some(Value::Object(properties)) = schema.get("properties") else { return "()".to_owned() };
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    let is_required = |name: &str| required.contains(&name);
    let argument = |(name, schema): (&String, &Value)| {
        let mark = if is_required(name) { "" } else { "?" };
        format!("{}{mark}: {}", short(name), type_of(schema, 0))
    };
    let first = properties.iter().filter(|(name, _)| is_required(name));
    let rest = properties.iter().filter(|(name, _)| !is_required(name));
    let mut shown: Vec<String> = first.chain(rest).take(MAX_ARGUMENTS).map(argument).collect();
    if properties.len() > MAX_ARGUMENTS {
        shown.push("…".to_owned());
    }
    format!("({})", shown.join(", "))
}

fn type_of(schema: &Value, depth: usize) -> String {
    let Value::Object(schema) = schema else { return "any".to_owned() };
    if depth > MAX_DEPTH {
        return "any".to_owned();
    }
    if let Some(constant) = schema.get("const") {
        return word(constant);
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        let mut shown: Vec<String> = words.iter().take(MAX_WORDS).map(word).collect();
        if words.len() > MAX_WORDS {
            shown.push("…".to_owned());
        }
        return shown.join("|");
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(options)) = schema.get(key) {
            let mut shown: Vec<String> = Vec::new();
            for option in options.iter().take(MAX_WORDS) {
                let option = type_of(option, depth + 1);
                if !shown.contains(&option) {
                    shown.push(option);
                }
            }
            return shown.join("|");
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => named(name, schema, depth),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str).take(MAX_WORDS);
            names.map(|name| named(name, schema, depth)).collect::<Vec<_>>().join("|")
        }
        Some(_) | None if schema.contains_key("properties") => "object".to_owned(),
        Some(_) | None => "any".to_owned(),
    }
}

fn named(name: &str, schema: &Map<String, Value>, depth: usize) -> String {
    match (name, schema.get("items")) {
        ("array", Some(items)) => {
            let items = type_of(items, depth + 1);
            if items.contains('|') { format!("({items})[]") } else { format!("{items}[]") }
        }
        ("array", None) => "any[]".to_owned(),
        (name, _) => short(name),
    }
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", short(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => short(&value.to_string()),
        Value::Array(_) | Value::Object(_) => "any".to_owned(),
    }
}

fn short(text: &str) -> String {
    let cut: String = text.chars().take(MAX_NAME).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{}{dots}", quotable(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &str) -> String {
        signature(&Json::parse(schema.to_owned()).unwrap())
    }

    #[test]
    fn arguments_are_written_with_their_types_and_the_required_ones_come_first() {
        let schema = r#"{"type":"object","required":["title"],"properties":{
            "labels":{"type":"array","items":{"type":"string"}},
            "state":{"enum":["open","closed",null,3]},
            "title":{"type":"string"},
            "milestone":{"type":["integer","null"]},
            "who":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"string"}]},
            "kinds":{"type":"array","items":{"enum":["a","b"]}},
            "more":{"properties":{}},
            "odd":true}}"#;
        assert_eq!(
            of(schema),
            "(title: string, labels?: string[], state?: \"open\"|\"closed\"|null|3, \
             milestone?: integer|null, who?: string|string[], kinds?: (\"a\"|\"b\")[], \
             more?: object, odd?: any)"
        );
    }

    #[test]
    fn odd_and_hostile_schemas_give_a_short_line() {
        for none in ["{}", "[]", "true", r#"{"properties":[]}"#, r#"{"properties":{}}"#] {
            assert_eq!(of(none), "()", "{none}");
        }
        assert_eq!(of(r#"{"required":"x","properties":{"x":{}}}"#), "(x?: any)");
        let hidden = of("{\"properties\":{\"a\\n\\u001b[2Jb\":{\"type\":\"string\"}}}");
        assert!(!hidden.contains(['\n', '\u{1b}']), "{hidden:?}");
        let many: Vec<String> = (0..500).map(|at| format!(r#""p{at}":{{}}"#)).collect();
        let many = of(&format!(r#"{{"properties":{{{}}}}}"#, many.join(",")));
        assert!(many.ends_with("p11?: any, …)"), "{many}");
        let long = of(&format!(r#"{{"properties":{{"{}":{{}}}}}}"#, "x".repeat(10_000)));
        assert!(long.len() < 100, "{long}");
        let deep = format!(
            "{}{}",
            r#"{"type":"array","items":"#.repeat(100),
            "{}".to_owned() + &"}".repeat(100)
        );
        assert_eq!(of(&format!(r#"{{"properties":{{"a":{deep}}}}}"#)), "(a?: any[][][][])");
    }
}
