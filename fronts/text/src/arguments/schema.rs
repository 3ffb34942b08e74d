//! Reads the types of values from a JSON Schema.
//!
//! It reads only what is needed to convert typed text; the server validates the whole value. The
//! schema comes from a server, so every traversal is bounded.

use serde_json::{Map, Value};

use crate::clean::one_line;

/// Maximum number of sub-schemas that are visited from one schema.
const MAX_STEPS: usize = 64;

/// Maximum number of choices in a message.
const MAX_LISTED: usize = 12;

/// One schema within a schema document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a> {
    document: &'a Value,
    node: &'a Value,
}

/// The types of JSON, in the order in which text is tried as each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Integer,
    Number,
    Boolean,
    Object,
    Text,
    List,
}

/// One alternative of a schema for valid values.
#[derive(Clone, Debug)]
pub(super) struct Alternative<'a> {
    /// The allowed types; empty allows any.
    pub(super) types: Vec<Type>,
    /// The only allowed values, if they are listed.
    pub(super) choices: Option<Vec<&'a Value>>,
    /// The schema of a list's items.
    pub(super) items: Option<Schema<'a>>,
}

/// Values that are allowed under keys that the schema does not name.
pub(super) enum Others<'a> {
    /// None.
    Refused,
    /// Any.
    Free,
    /// Values that fit this schema.
    Like(Schema<'a>),
}

// === impl Schema ===

impl<'a> Schema<'a> {
    pub(super) fn new(document: &'a Value) -> Self {
        Self { document, node: document }
    }

    fn at(self, node: &'a Value) -> Self {
        Self { document: self.document, node }
    }

    /// This schema and everything it refers to or consists of, outermost first.
    fn parts(self, kinds: &[&str]) -> Vec<&'a Map<String, Value>> {
        let mut parts = Vec::new();
        let mut open = vec![self.node];
        let mut steps = 0;
        while let Some(node) = open.pop() {
            steps += 1;
            if steps > MAX_STEPS {
                break;
            }
            let Some(map) = node.as_object() else { continue };
            parts.push(map);
            if let Some(target) = self.target(map) {
                open.push(target);
            }
            for kind in kinds {
                let inner = map.get(*kind).and_then(Value::as_array);
                open.extend(inner.into_iter().flatten().rev());
            }
        }
        parts
    }

    /// The target of a `$ref` within this document.
    fn target(self, map: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = map.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.document.pointer(pointer)
    }

    fn all_parts(self) -> Vec<&'a Map<String, Value>> {
        self.parts(&["allOf", "anyOf", "oneOf"])
    }

    /// The schema of a member that this schema names.
    pub(super) fn property(self, key: &str) -> Option<Self> {
        let mut parts = self.all_parts().into_iter();
        parts.find_map(|map| map.get("properties")?.get(key)).map(|node| self.at(node))
    }

    /// The keys of all members that this schema names.
    pub(super) fn keys(self) -> Vec<&'a str> {
        let properties = self.all_parts().into_iter().filter_map(|map| map.get("properties"));
        let keys = properties.filter_map(Value::as_object).flat_map(Map::keys);
        keys.map(String::as_str).collect()
    }

    /// The keys of the required members.
    pub(super) fn required(self) -> Vec<&'a str> {
        let parts = self.parts(&["allOf"]);
        let lists = parts.into_iter().filter_map(|map| map.get("required")?.as_array());
        let mut keys: Vec<&str> = Vec::new();
        for key in lists.flatten().filter_map(Value::as_str) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Values that are allowed under other keys.
    pub(super) fn others(self) -> Others<'a> {
        let parts = self.all_parts();
        // Key patterns are not evaluated here; the server validates them.
        if parts.iter().any(|map| map.contains_key("patternProperties")) {
            return Others::Free;
        }
        match parts.iter().find_map(|map| map.get("additionalProperties")) {
            Some(Value::Bool(false)) => Others::Refused,
            Some(node @ Value::Object(_)) => Others::Like(self.at(node)),
            Some(_) | None => Others::Free,
        }
    }

    /// True if the value can be an object.
    pub(super) fn is_object(self) -> bool {
        self.ways().iter().any(|way| way.types.contains(&Type::Object))
    }

    /// True if the value can be a list.
    pub(super) fn is_list(self) -> bool {
        self.ways().iter().any(|way| way.types.contains(&Type::List))
    }

    /// True if the value can be neither object nor list.
    pub(super) fn is_simple(self) -> bool {
        !self.is_object() && !self.is_list()
    }

    pub(super) fn description(self) -> Option<&'a str> {
        self.value("description")?.as_str()
    }

    /// The value of a keyword, such as `default`.
    pub(super) fn value(self, keyword: &str) -> Option<&'a Value> {
        self.parts(&[]).into_iter().find_map(|map| map.get(keyword))
    }

    /// All alternatives for valid values; never empty.
    pub(super) fn ways(self) -> Vec<Alternative<'a>> {
        let mut ways: Vec<Alternative<'a>> =
            self.all_parts().into_iter().filter_map(|map| self.way(map)).collect();
        if ways.is_empty() {
            ways.push(Alternative { types: Vec::new(), choices: None, items: None });
        }
        ways
    }

    /// The alternative that one part describes; `None` if it restricts neither type nor values.
    fn way(self, map: &'a Map<String, Value>) -> Option<Alternative<'a>> {
        let choices = match (map.get("const"), map.get("enum").and_then(Value::as_array)) {
            (Some(only), _) => Some(vec![only]),
            (None, Some(list)) => Some(list.iter().collect()),
            (None, None) => None,
        };
        let types = types(map);
        (choices.is_some() || !types.is_empty()).then(|| Alternative {
            types,
            choices,
            items: map.get("items").map(|node| self.at(node)),
        })
    }

    /// A description of valid values, as the end of a sentence.
    pub(super) fn expected(self) -> String {
        let ways = self.ways();
        let open = ways.iter().filter(|way| way.choices.is_none());
        let mut types: Vec<Type> = open.flat_map(|way| way.types.iter().copied()).collect();
        types.sort_unstable();
        types.dedup();
        let mut words: Vec<String> = types.into_iter().map(|t| t.noun().to_owned()).collect();
        words.extend(choices(&ways));
        let each = ways.iter().filter_map(|way| way.items).find(|items| items.is_simple());
        match (words.is_empty(), each) {
            (true, _) => "any value".to_owned(),
            (false, Some(items)) => format!("{} ({} each)", words.join(" or "), items.expected()),
            (false, None) => words.join(" or "),
        }
    }
}

/// The choices of all alternatives in one phrase.
fn choices(ways: &[Alternative<'_>]) -> Option<String> {
    let all: Vec<&Value> =
        ways.iter().flat_map(|way| way.choices.iter().flatten().copied()).collect();
    let mut listed: Vec<String> = all.iter().take(MAX_LISTED).map(|choice| shown(choice)).collect();
    if all.len() > MAX_LISTED {
        listed.push(format!("{} more", all.len() - MAX_LISTED));
    }
    match listed.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("one of {}", several.join(", "))),
    }
}

/// The types that one part of a schema allows, explicitly or by implication.
fn types(map: &Map<String, Value>) -> Vec<Type> {
    let named = |value: &Value| value.as_str().and_then(Type::from_word);
    match map.get("type") {
        Some(Value::Array(words)) => words.iter().filter_map(named).collect(),
        Some(word) => named(word).into_iter().collect(),
        None if map.contains_key("properties") => vec![Type::Object],
        None if map.contains_key("items") => vec![Type::List],
        None => Vec::new(),
    }
}

/// A choice as it is typed, quoted.
fn shown(choice: &Value) -> String {
    let text = choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
    format!("`{}`", one_line(&text, 40))
}

// === impl Type ===

impl Type {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "null" => Self::Null,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "string" => Self::Text,
            "array" => Self::List,
            _ => return None,
        })
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Object => "a JSON object",
            Self::Text => "text",
            Self::List => "a list",
        }
    }
}
