//! Refuses JSON in which an object names a member twice.
//!
//! Readers disagree about such objects: one takes the first, another the last. Whoever can send
//! `{"name":"harmless","name":"delete"}` past a policy that reads the first to a server that
//! reads the last has no policy. So nothing of the kind is ever forwarded.
//!
//! The text is scanned by hand because a parser would also judge the numbers, and a number too
//! long for us may be just right for the server.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::Json;

/// Deepest nesting that is looked into; deeper text is refused.
pub const MAX_DEPTH: usize = 128;

/// Why a request cannot be forwarded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DuplicateKey {
    /// An object names a member twice.
    #[error("an object names the member `{0}` twice")]
    Twice(String),
    /// Nested more deeply than anybody needs.
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Checks every object in `json`, at any depth.
pub fn refuse_duplicates(json: &Json) -> Result<(), DuplicateKey> {
    let text = json.as_bytes();
    let mut open: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => open.push(Level::Object(HashSet::new())),
            b'[' => open.push(Level::List),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = end_of_string(text, at);
                if let Some(Level::Object(names)) = open.last_mut()
                    && next_is_colon(text, end)
                {
                    let name = decode(text.get(at..end).unwrap_or_default());
                    if !names.insert(name.clone()) {
                        return Err(DuplicateKey::Twice(name.into_owned()));
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        if open.len() > MAX_DEPTH {
            return Err(DuplicateKey::TooDeep);
        }
        at += 1;
    }
    Ok(())
}

/// An object or list that is open at some point of the text.
enum Level<'a> {
    Object(HashSet<Cow<'a, str>>),
    List,
}

/// The index after the closing quote of the string that opens at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn next_is_colon(text: &[u8], from: usize) -> bool {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// The name that `quoted` spells, escapes resolved.
fn decode(quoted: &[u8]) -> Cow<'_, str> {
    let plain = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    match std::str::from_utf8(plain) {
        Ok(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        Ok(_) | Err(_) => Cow::Owned(serde_json::from_slice(quoted).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), DuplicateKey> {
        refuse_duplicates(&Json::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn a_member_named_twice_is_refused_at_any_depth() {
        let refused = [
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a" :1, "a"	:2}"#,
            r#"{"x":{"a":1,"a":1}}"#,
            r#"{"x":{"a":1},"y":[],"x":1}"#,
            r#"[{"x":[{"a":1,"b":"a","a":3}]}]"#,
        ];
        for text in refused {
            assert!(check(text).is_err(), "accepted {text}");
        }
    }

    #[test]
    fn the_same_name_in_different_places_is_fine() {
        let accepted = [
            r#"{"a":{"a":1},"b":{"a":1}}"#,
            r#"{"a":"a","A":1}"#,
            r#"{"a":["a","a"],"b":"a\":"}"#,
            r#"{"a":1e400,"b":123456789012345678901234567890}"#,
            "12",
            "[]",
        ];
        for text in accepted {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn text_nested_without_end_is_refused_instead_of_overflowing() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        // Raw JSON is skipped without recursion, so such text can get this far.
        if let Ok(json) = Json::parse(deep) {
            assert_eq!(refuse_duplicates(&json), Err(DuplicateKey::TooDeep));
        }
    }
}
