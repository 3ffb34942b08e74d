//! Converts YAML to JSON: one document, whose plain scalars follow the core schema.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Number, Value};

/// The largest number of values in a document with its aliases expanded.
/// It includes the copies that its anchors keep. Aliases of aliases and anchors within anchors
/// would otherwise grow without bound.
const MAX_NODES: usize = 2_000_000;

/// The number of bytes of text that count as one more value: copied values may be few and long.
const TEXT: usize = 64;

/// The deepest nesting of values; the JSON parser has a similar limit.
const MAX_DEPTH: usize = 120;

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, (Value, usize)>,
    nodes: usize,
    /// The size of the copies that the anchors keep. It is not part of any value, so no copy's size
    /// includes it.
    copied: usize,
    depth: usize,
}

/// Parses a document.
///
/// # Errors
/// A description of the problem.
#[expect(clippy::wildcard_enum_match_arm, reason = "the events are the parser's, and may grow")]
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        events: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
        copied: 0,
        depth: 0,
    };
    let mut document = None;
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::StreamEnd => return document.ok_or_else(|| "it is empty".to_owned()),
            Event::DocumentStart(..) if document.is_some() => {
                return Err("it contains a second document".to_owned());
            }
            Event::DocumentStart(..) => {
                let next = reader.next()?;
                document = Some(reader.node(next)?);
            }
            _ => return Err("it contains text outside the document".to_owned()),
        }
    }
}

// === impl Reader ===

#[expect(clippy::wildcard_enum_match_arm, reason = "the events are the parser's, and may grow")]
impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<Event<'t>, String> {
        match self.events.next() {
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(format!("line {}: {}", error.marker().line(), error.info())),
            None => Ok(Event::StreamEnd),
        }
    }

    /// Reads the value that begins with this event.
    fn node(&mut self, event: Event<'t>) -> Result<Value, String> {
        let before = self.nodes;
        self.count(1)?;
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(text.len() / TEXT)?;
                let plain = style == ScalarStyle::Plain && tag.is_none();
                let value = if plain { scalar(&text) } else { Value::String(text.into_owned()) };
                (anchor, value)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.deeper(Self::list)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.deeper(Self::table)?),
            Event::Alias(anchor) => {
                let size = self.anchors.get(&anchor).map(|(_, size)| *size);
                self.count(size.unwrap_or_default())?;
                let value = self.anchors.get(&anchor).map(|(value, _)| value.clone());
                return value.ok_or_else(|| "an alias has no anchor".to_owned());
            }
            _ => return Err("a value is missing".to_owned()),
        };
        if anchor != 0 {
            let size = self.nodes - before;
            self.copied = self.copied.saturating_add(size);
            self.count(0)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(value)
    }

    fn deeper(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, String>,
    ) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                next => items.push(self.node(next)?),
            }
        }
    }

    fn table(&mut self) -> Result<Value, String> {
        let mut members = Map::new();
        let mut merged = Map::new();
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err("a key must be a word".to_owned()),
            };
            self.count(key.len() / TEXT)?;
            let next = self.next()?;
            let value = self.node(next)?;
            match (key.as_str(), value) {
                ("<<", Value::Object(more)) => merged.extend(more),
                ("<<", _) => return Err("`<<` names no mapping".to_owned()),
                (_, value) => {
                    if members.insert(key.clone(), value).is_some() {
                        return Err(format!("`{key}` is defined twice"));
                    }
                }
            }
        }
        for (key, value) in merged {
            members.entry(key).or_insert(value);
        }
        Ok(Value::Object(members))
    }

    fn count(&mut self, more: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(more);
        if self.nodes.saturating_add(self.copied) > MAX_NODES {
            return Err(format!("it has more than {MAX_NODES} values"));
        }
        Ok(())
    }
}

/// The value of an unquoted scalar.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        text => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.trim_start_matches(['+', '-']);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    Number::from_f64(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_lists_anchors_and_merges_mean_what_json_would() {
        let text = "
            a: &x { n: 1, big: 1e3, neg: -2.5, yes: true, no: ~, text: '1', word: 1.2.3 }
            b: *x
            c:
              <<: *x
              n: 2
            responses:
              200: [ok, |
                long]
        ";
        let text = text.replace("|\n                long", "long");
        let x = json!({"n": 1, "big": 1000.0, "neg": -2.5, "yes": true, "no": null, "text": "1",
            "word": "1.2.3"});
        let mut c = x.clone();
        c["n"] = json!(2);
        let read = read(&text).unwrap();
        assert_eq!(read, json!({"a": x, "b": x, "c": c, "responses": {"200": ["ok", "long"]}}));
    }

    #[test]
    fn anchors_within_anchors_do_not_multiply_what_they_keep() {
        let nested = |levels: usize, inner: &str| {
            let open: Vec<String> = (0..levels).map(|level| format!("&a{level} [")).collect();
            read(&format!("{}{inner}{}", open.concat(), "]".repeat(levels)))
        };
        let many = vec!["x"; 50_000].join(",");
        let long = format!("'{}'", "x".repeat(4 << 20));
        for inner in [many.as_str(), long.as_str()] {
            assert!(nested(5, inner).is_ok());
            let error = nested(100, inner).unwrap_err();
            assert!(error.contains("more than"), "{error}");
        }
        // A few long words, each copied as often as it is referenced.
        let named = vec!["*a"; 100].join(",");
        let error = read(&format!("[&a {long},{named}]")).unwrap_err();
        assert!(error.contains("more than"), "{error}");
    }

    #[test]
    fn what_grows_without_bound_or_is_broken_is_refused() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..9 {
            let last = format!("*a{}", level - 1);
            let line = vec![last; 10].join(",");
            bomb = format!("{bomb}a{level}: &a{level} [{line}]\n");
        }
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for (text, words) in [
            (bomb.as_str(), "more than"),
            (deep.as_str(), ""),
            ("a: 1\na: 2", "twice"),
            ("a: *nobody", ""),
            ("a: [", ""),
            ("", "empty"),
            ("a: 1\n---\nb: 2", "second"),
            ("<<: 1", "no mapping"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
