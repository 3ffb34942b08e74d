//! Walks over JSON that is known to be well-formed, about as fast as its quotes are found.
//!
//! A parser would check again what was checked when the text came in. Text that is not well-formed
//! ends a walk early and does no other harm.

use std::borrow::Cow;

use memchr::memchr2;

/// The members of an object in the order they were written: name with its quotes, and value.
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// The items of a list in the order they were written.
pub(crate) struct Items<'a> {
    text: &'a [u8],
    at: usize,
}

// === impl Members ===

impl<'a> Members<'a> {
    /// Nothing, when `text` is no object.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        text.starts_with(b"{").then_some(Self { text, at: 1 })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        let name = past_space(text, self.at);
        if text.get(name) != Some(&b'"') {
            return None;
        }
        let name_end = end_of_string(text, name);
        let colon = past_space(text, name_end);
        let value = past_space(text, colon + 1);
        let value_end = end_of_value(text, value);
        self.at = past_space(text, value_end) + 1;
        Some((text.get(name..name_end)?, text.get(value..value_end)?))
    }
}

// === impl Items ===

impl<'a> Items<'a> {
    /// Nothing, when `text` is no list.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        text.starts_with(b"[").then_some(Self { text, at: 1 })
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = past_space(self.text, self.at);
        let end = end_of_value(self.text, start);
        self.at = past_space(self.text, end) + 1;
        self.text.get(start..end).filter(|item| !item.is_empty())
    }
}

/// The text that `quoted` spells, escapes resolved; `None` when an escape stands for no character.
pub(crate) fn decode(quoted: &[u8]) -> Option<Cow<'_, str>> {
    match plain(quoted) {
        Some(plain) => std::str::from_utf8(plain).map(Cow::Borrowed).ok(),
        None => serde_json::from_slice(quoted).map(Cow::Owned).ok(),
    }
}

/// What stands between the quotes, when there are no escapes.
fn plain(quoted: &[u8]) -> Option<&[u8]> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (!inner.contains(&b'\\')).then_some(inner)
}

/// The index after the closing quote of the string that opens at `start`.
pub(crate) fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// The index of the next byte that is no white space.
pub(crate) fn past_space(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().position(|byte| !byte.is_ascii_whitespace()).map_or(text.len(), |at| from + at)
}

/// The index after the value that begins at `start`.
fn end_of_value(text: &[u8], start: usize) -> usize {
    match text.get(start) {
        Some(b'"') => end_of_string(text, start),
        Some(b'{' | b'[') => end_of_nested(text, start),
        Some(_) | None => {
            let rest = text.get(start..).unwrap_or_default();
            let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            rest.iter().position(ends).map_or(text.len(), |at| start + at)
        }
    }
}

fn end_of_nested(text: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a-c"\\\[\]{},: \n\u{e9}]{0,9}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let list = prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from);
            let key = r#"[a-c"\\{}\[\],:]{0,4}"#;
            let object = prop::collection::btree_map(key, inner, 0..5);
            prop_oneof![list, object.prop_map(|map| Value::Object(map.into_iter().collect()))]
        })
    }

    proptest! {
        #[test]
        fn a_walk_finds_what_a_parser_finds(json in any_json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{json:#}") } else { json.to_string() };
            let members = Members::of(text.as_bytes()).map(|members| {
                members.map(|(name, value)| (decode(name).unwrap().into_owned(), value.to_vec()))
                    .collect::<Vec<_>>()
            });
            let parsed: Option<indexed::Members> = serde_json::from_str(&text).ok();
            prop_assert_eq!(members, parsed.map(|members| members.0));
            let items = Items::of(text.as_bytes()).map(|items| items.map(<[u8]>::to_vec).collect());
            let parsed: Option<Vec<Box<RawValue>>> = serde_json::from_str(&text).ok();
            let parsed = parsed.map(|items| {
                items.iter().map(|item| item.get().as_bytes().to_vec()).collect::<Vec<_>>()
            });
            prop_assert_eq!(items, parsed);
        }

        #[test]
        fn text_that_is_no_json_ends_a_walk(text in r#"[{\["\\a:,\]} ]{0,20}"#) {
            for text in [text.clone(), format!("{{{text}"), format!("[{text}")] {
                let bytes = text.as_bytes();
                prop_assert!(Members::of(bytes).is_none_or(|members| members.count() <= 20));
                prop_assert!(Items::of(bytes).is_none_or(|items| items.count() <= 21));
            }
        }
    }

    /// The same, by a parser.
    mod indexed {
        use serde::Deserialize;
        use serde::de::{Deserializer, MapAccess, Visitor};
        use serde_json::value::RawValue;

        pub(super) struct Members(pub(super) Vec<(String, Vec<u8>)>);

        impl<'de> Deserialize<'de> for Members {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct InOrder;
                impl<'de> Visitor<'de> for InOrder {
                    type Value = Members;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                        let mut all = Vec::new();
                        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                            all.push((key, value.get().as_bytes().to_vec()));
                        }
                        Ok(Members(all))
                    }
                }
                deserializer.deserialize_map(InOrder)
            }
        }
    }
}
