//! Scans JSON that is known to be well-formed, about as fast as its quotes can be found.
//!
//! A parser would repeat the checks that were made when the text arrived. Text that is not
//! well-formed ends a scan early and does no other harm.

use std::borrow::Cow;

use memchr::memmem;

use crate::plain;

/// Iterates over the members of an object in the order of the text: name and value.
pub(crate) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

/// Iterates over the items of a list in the order of the text.
pub(crate) struct Items<'a> {
    text: &'a [u8],
    at: usize,
}

/// A string as it was written, with its quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'a> {
    written: &'a [u8],
    has_escapes: bool,
}

// === impl Members ===

impl<'a> Members<'a> {
    /// Starts at the first member; `None` if `text` is not an object.
    pub(crate) fn of(text: &'a [u8]) -> Option<Self> {
        text.starts_with(b"{").then_some(Self { text, at: 1 })
    }

    /// True if no escape follows the member that was returned last.
    pub(crate) fn is_rest_plain(&self) -> bool {
        memchr::memchr(b'\\', self.text.get(self.at..).unwrap_or_default()).is_none()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Quoted<'a>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        let start = past_space(text, self.at);
        if text.get(start) != Some(&b'"') {
            return None;
        }
        let name = Quoted::at(text, start);
        let colon = past_space(text, start + name.len());
        let value = past_space(text, colon + 1);
        let value_end = end_of_value(text, value);
        self.at = past_space(text, value_end) + 1;
        Some((name, text.get(value..value_end)?))
    }
}

// === impl Items ===

impl<'a> Items<'a> {
    /// Starts at the first item; `None` if `text` is not a list.
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

// === impl Quoted ===

impl<'a> Quoted<'a> {
    /// Returns the string whose opening quote is at `start`.
    pub(crate) fn at(text: &'a [u8], start: usize) -> Self {
        let (mut end, mut has_escapes) = (start + 1, false);
        loop {
            end += plain::quoted(text.get(end..).unwrap_or_default());
            if text.get(end) != Some(&b'\\') {
                break;
            }
            (end, has_escapes) = (end + 2, true);
        }
        let written = text.get(start..=end).or(text.get(start..)).unwrap_or_default();
        Self { written, has_escapes }
    }

    /// Its length as it was written, in bytes.
    pub(crate) fn len(self) -> usize {
        self.written.len()
    }

    /// Returns the bytes of the string with escapes resolved; `None` if an escape stands for no
    /// character.
    pub(crate) fn spelled(self) -> Option<Cow<'a, [u8]>> {
        match self.plain() {
            Some(plain) => Some(Cow::Borrowed(plain)),
            None => self.read().map(|text| Cow::Owned(text.into_bytes())),
        }
    }

    /// Returns the string with escapes resolved; `None` if an escape stands for no character.
    pub(crate) fn decode(self) -> Option<Cow<'a, str>> {
        match self.plain() {
            Some(plain) => std::str::from_utf8(plain).map(Cow::Borrowed).ok(),
            None => self.read().map(Cow::Owned),
        }
    }

    /// True if every escape stands for a character.
    pub(crate) fn is_sound(self) -> bool {
        // Only half a surrogate pair stands for no character.
        !self.has_escapes || memmem::find(self.written, b"\\u").is_none() || self.read().is_some()
    }

    /// Returns the bytes between the quotes, if there are no escapes.
    fn plain(self) -> Option<&'a [u8]> {
        let inner = self.written.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        (!self.has_escapes).then_some(inner)
    }

    fn read(self) -> Option<String> {
        serde_json::from_slice(self.written).ok()
    }
}

/// Returns the index of the next byte that is not white space.
pub(crate) fn past_space(text: &[u8], from: usize) -> usize {
    let mut at = from;
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at.min(text.len())
}

/// Returns the index after the value that begins at `start`.
fn end_of_value(text: &[u8], start: usize) -> usize {
    match text.get(start) {
        Some(b'"') => start + Quoted::at(text, start).len(),
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
                at += Quoted::at(text, at).len();
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
                members.map(|(name, value)| (name.decode().unwrap().into_owned(), value.to_vec()))
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

    /// The members of an object as a parser sees them, for comparison.
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
