//! Counts how many schemas a single value is checked against.
//!
//! With references, a short schema can stand for any number of schemas, so they are counted before
//! a value is checked against any of them.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Most schemas that a single value may be checked against.
pub(super) const MAX_WEIGHT: u64 = 4096;

/// Members with one schema that applies to the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];

/// Members with named schemas that apply to the same value.
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Members with a list of schemas that apply to the same value.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Members with a reference to a schema that applies to the same value.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns the largest number of schemas that any value is checked against.
///
/// It is [`u64::MAX`] if the number is unlimited.
///
/// # Errors
/// Returns the first reference that points to nothing, or out of the document.
pub(super) fn of(document: &Value) -> Result<u64, String> {
    let mut scale = Scale { document, anchors: HashMap::new(), known: HashMap::new(), lost: None };
    let mut all = Vec::new();
    collect(document, &mut all);
    for (value, map) in &all {
        let anchors = ["$anchor", "$dynamicAnchor", "$id", "id"];
        for anchor in anchors.iter().filter_map(|key| map.get(*key)?.as_str()) {
            scale.anchors.insert(anchor.strip_prefix('#').unwrap_or(anchor), *value);
        }
    }
    let heaviest = all.into_iter().map(|(_, map)| scale.weigh(map)).max().unwrap_or(0);
    scale.lost.map_or(Ok(heaviest), |reference| Err(reference.to_owned()))
}

struct Scale<'a> {
    document: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// The weights of schemas by address; [`u64::MAX`] while a schema is being weighed.
    known: HashMap<*const Map<String, Value>, u64>,
    /// The first reference whose target is not in the document.
    lost: Option<&'a str>,
}

// === impl Scale ===

impl<'a> Scale<'a> {
    fn weigh(&mut self, map: &'a Map<String, Value>) -> u64 {
        let place = std::ptr::from_ref(map);
        if let Some(weight) = self.known.get(&place) {
            return *weight;
        }
        self.known.insert(place, u64::MAX);
        let lists = SAME_LISTS.iter().filter_map(|key| map.get(*key)?.as_array()).flatten();
        let maps = SAME_MAPS.iter().filter_map(|key| map.get(*key)?.as_object());
        let maps = maps.flat_map(Map::values);
        let same = SAME.iter().filter_map(|key| map.get(*key)).chain(lists).chain(maps);
        let same: Vec<&'a Value> = same.collect();
        let mut weight: u64 = 1;
        for schema in same {
            let more = match schema {
                Value::Object(schema) => self.weigh(schema),
                Value::Bool(_) => 1,
                Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => 0,
            };
            weight = weight.saturating_add(more);
        }
        for reference in REFERENCES.iter().filter_map(|key| map.get(*key)?.as_str()) {
            match self.target(reference) {
                Some(Value::Object(target)) => {
                    weight = weight.saturating_add(self.weigh(target));
                }
                // A target that is not an object has no further references.
                Some(_) => weight = weight.saturating_add(1),
                None => drop(self.lost.get_or_insert(reference)),
            }
        }
        self.known.insert(place, weight);
        weight
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let known = self.anchors.get(reference.strip_prefix('#').unwrap_or(reference));
        let pointed = || self.document.pointer(&unescape(reference.strip_prefix('#')?));
        known.copied().or_else(pointed)
    }
}

/// Decodes the percent escapes of a fragment.
fn unescape(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = (*byte == b'%').then(|| after.get(..2)).flatten();
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let escaped = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(escaped.unwrap_or(*byte));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Collects every object in a document. Some are not schemas, which does no harm.
fn collect<'a>(value: &'a Value, all: &mut Vec<(&'a Value, &'a Map<String, Value>)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, all)),
        Value::Object(map) => {
            all.push((value, map));
            map.values().for_each(|member| collect(member, all));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_for_the_same_value_are_counted_and_those_for_its_parts_are_not() {
        for (schema, expected) in [
            (json!({}), 1),
            (json!({"properties": {"a": {}, "b": {"items": {}}}}), 1),
            (json!({"allOf": [{}, {"anyOf": [{}, true]}], "not": {}}), 6),
            (json!({"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"if": {}}}}), 3),
            (json!({"$ref": "#/$defs/a%25b~1c", "$defs": {"a%b/c": {}}}), 2),
            (json!({"dependentSchemas": {"a": {"not": {}}, "b": {}}}), 4),
            (json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here"}}}), 2),
            (json!({"properties": {"child": {"$ref": "#"}}}), 2),
        ] {
            assert_eq!(of(&schema), Ok(expected), "{schema}");
        }
    }

    #[test]
    fn a_reference_that_leads_out_of_the_document_is_named() {
        for reference in ["https://example.com/a", "file:///etc/passwd", "#/nowhere", "#x", "a"] {
            let schema = json!({"properties": {"a": {"items": {"$ref": reference}}}});
            assert_eq!(of(&schema), Err(reference.to_owned()));
        }
    }

    #[test]
    fn what_has_no_end_has_no_weight() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            json!({"dependencies": {"a": {"$ref": "#"}}}),
            json!({"$dynamicRef": "#a", "$dynamicAnchor": "a"}),
        ] {
            assert_eq!(of(&schema), Ok(u64::MAX), "{schema}");
        }
    }

    #[test]
    fn references_that_double_each_time_are_weighed_without_walking_them() {
        let mut defs = Map::new();
        for n in 0..62 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            defs.insert(format!("d{n}"), json!({"allOf": [next, next]}));
        }
        defs.insert("d62".to_owned(), json!({}));
        assert!(of(&json!({ "$defs": defs })).unwrap() > 1 << 60);
    }
}
