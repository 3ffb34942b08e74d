//! Refuses JSON that two readers could read differently.
//!
//! Readers disagree about objects that name a member twice: one takes the first, another the last.
//! Whoever can send `{"name":"harmless","name":"delete"}` past a policy that reads the first to a
//! server that reads the last has no policy. They disagree as well about half a surrogate pair such
//! as `"\ud800"`: one refuses the whole object, another keeps it, a third puts something in its
//! place. So nothing of the kind is ever forwarded.
//!
//! The text is scanned by hand because a parser would also judge the numbers, and a number too
//! long for us may be just right for the server.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;

use crate::Json;
use crate::scan::{decode, end_of_string, past_space};

/// Deepest nesting that is looked into; deeper text is refused.
pub const MAX_DEPTH: usize = 128;

/// How many names of an object are looked through one by one.
const FEW: usize = 16;

/// Why a request cannot be forwarded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DuplicateKey {
    /// An object names a member twice.
    #[error("an object names the member `{0}` twice")]
    Twice(String),
    /// A name or a text has an escape that stands for no character.
    #[error("a text in it has an escape that stands for no character")]
    NoCharacter,
    /// Nested more deeply than anybody needs.
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Checks every object and every text in `json`, at any depth.
pub fn refuse_duplicates(json: &Json) -> Result<(), DuplicateKey> {
    let text = json.as_bytes();
    let mut open: Vec<Level<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' => open.push(Level::Object(Names::default())),
            b'[' => open.push(Level::List),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = end_of_string(text, at);
                let quoted = text.get(at..end).unwrap_or_default();
                match open.last_mut() {
                    Some(Level::Object(names))
                        if text.get(past_space(text, end)) == Some(&b':') =>
                    {
                        names.add(decode(quoted).ok_or(DuplicateKey::NoCharacter)?)?;
                    }
                    Some(_) | None => check_text(quoted)?,
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
    Object(Names<'a>),
    List,
}

/// The names that an object has so far.
#[derive(Default)]
struct Names<'a> {
    /// Few are looked through faster than they are hashed.
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

// === impl Names ===

impl<'a> Names<'a> {
    fn add(&mut self, name: Cow<'a, str>) -> Result<(), DuplicateKey> {
        if self.few.contains(&name) || self.many.contains(&name) {
            return Err(DuplicateKey::Twice(name.into_owned()));
        }
        if self.few.len() < FEW {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
        Ok(())
    }
}

/// Whether every escape in a text stands for a character.
fn check_text(quoted: &[u8]) -> Result<(), DuplicateKey> {
    // Only halves of a pair stand for none.
    if memmem::find(quoted, b"\\u").is_none() {
        return Ok(());
    }
    decode(quoted).map(drop).ok_or(DuplicateKey::NoCharacter)
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
    fn half_a_character_is_refused_in_names_and_texts() {
        let refused = [
            r#"{"path":"/etc/passwd","\ud800":1}"#,
            r#"{"\udfff":1}"#,
            r#"{"\ud800":1,"\ud801":2}"#,
            r#"{"a":{"b":[{"\uD83D":1}]}}"#,
            r#"{"a":"\ud800"}"#,
            r#"["x","\ude00\ud83d"]"#,
            r#"{"a":"\ud83d\u0041"}"#,
            r#""\ud800""#,
        ];
        for text in refused {
            assert_eq!(check(text), Err(DuplicateKey::NoCharacter), "{text}");
        }
    }

    #[test]
    fn whole_characters_are_fine_however_they_are_written() {
        let accepted = [
            r#"{"\ud83d\ude00":"\ud83d\ude00","😀x":1}"#,
            r#"{"":"\u0000\n\\\"","\\ud800":"\\ud800"}"#,
            r#""\ufffd""#,
        ];
        for text in accepted {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        assert!(matches!(check(r#"{"😀":1,"\ud83d\ude00":2}"#), Err(DuplicateKey::Twice(_))));
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
        for levels in [MAX_DEPTH + 1, 100_000] {
            let deep = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
            // Raw JSON is skipped without recursion, so the parser may let such text get this far.
            let passes = Json::parse(deep).is_ok_and(|json| refuse_duplicates(&json).is_ok());
            assert!(!passes, "{levels} levels");
        }
        assert_eq!(check(&format!("{}1{}", "[".repeat(100), "]".repeat(100))), Ok(()));
    }
}
