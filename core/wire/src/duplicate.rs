//! Refuses JSON that two readers could read differently.
//!
//! Readers disagree about objects that name a member twice: one takes the first, another the last.
//! A sender could bypass a policy that reads the first by sending
//! `{"name":"harmless","name":"delete"}` to a server that reads the last. Readers also disagree
//! about half a surrogate pair such as `"\ud800"`: one refuses the whole object, another keeps it,
//! a third replaces it. So none of this is ever forwarded.
//!
//! Lenient readers also take `Name` or `name\0x` for `name` (see [`crate::fold`]). The members that
//! decisions read are protected: no other member may collide with one of them.
//!
//! The text is scanned by hand because a parser would also check the numbers, and a number that is
//! too long for us may be valid for the server.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::Json;
use crate::fold::collision;
use crate::scan::{Quoted, past_space};

/// Deepest nesting that is checked; deeper text is refused.
pub const MAX_DEPTH: usize = 128;

/// Number of names that are searched linearly; further ones are hashed.
const FEW: usize = 16;

/// Longest part of a name that an error shows, in characters.
const MAX_SHOWN: usize = 64;

/// Why a request cannot be forwarded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DuplicateKey {
    /// An object names a member twice.
    #[error("an object has the member `{0}` twice")]
    Twice(String),
    /// A lenient reader could take a member for a protected one.
    #[error("the member {name:?} could be read as `{protected}`; remove or rename it")]
    Collides {
        /// The member as it was sent.
        name: String,
        /// The protected member.
        protected: &'static str,
    },
    /// A name or a text has an escape that stands for no character.
    #[error("a string has an invalid escape")]
    NoCharacter,
    /// The text is nested too deeply.
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// Checks every object and every string in `json`, at any depth.
///
/// In the outermost object, no member may collide with one of the `protected` ones.
///
/// # Errors
/// Fails if two readers could read `json` differently.
pub fn refuse_duplicates(
    json: &Json,
    protected: &'static [&'static str],
) -> Result<(), DuplicateKey> {
    let text = json.as_bytes();
    let mut names = Names::new(protected);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => names.deeper()?,
            b'}' | b']' => names.back(),
            b'"' => {
                let quoted = Quoted::at(text, at);
                at += quoted.len();
                if text.get(past_space(text, at)) == Some(&b':') {
                    names.add(quoted.spelled().ok_or(DuplicateKey::NoCharacter)?)?;
                } else if !quoted.is_sound() {
                    return Err(DuplicateKey::NoCharacter);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The names so far in the objects that enclose the current position.
struct Names<'a> {
    /// Members of the outermost object that no other member may collide with.
    protected: &'static [&'static str],
    /// The number of objects and lists that enclose the current position.
    depth: usize,
    /// The first names, which are searched faster than hashed. Each has the depth of its object;
    /// those of the innermost object come last.
    few: [(usize, Name<'a>); FEW],
    /// The number of used entries in `few`.
    count: usize,
    /// The further names of each object that has more, innermost last.
    many: Vec<(usize, HashSet<Name<'a>>)>,
}

type Name<'a> = Cow<'a, [u8]>;

// === impl Names ===

impl<'a> Names<'a> {
    fn new(protected: &'static [&'static str]) -> Self {
        let few = [const { (0, Cow::Borrowed(b"" as &[u8])) }; FEW];
        Self { protected, depth: 0, few, count: 0, many: Vec::new() }
    }

    fn deeper(&mut self) -> Result<(), DuplicateKey> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(DuplicateKey::TooDeep) } else { Ok(()) }
    }

    fn back(&mut self) {
        self.count -= self.few_here().count();
        self.many.pop_if(|(depth, _)| *depth == self.depth);
        self.depth = self.depth.saturating_sub(1);
    }

    fn add(&mut self, name: Name<'a>) -> Result<(), DuplicateKey> {
        if self.depth == 1
            && let Some(protected) = collision(&name, self.protected)
        {
            let name = String::from_utf8_lossy(&name).chars().take(MAX_SHOWN).collect();
            return Err(DuplicateKey::Collides { name, protected });
        }
        let is_few = self.few_here().any(|other| *other == name);
        let many = self.many.last_mut().filter(|(depth, _)| *depth == self.depth);
        if is_few || many.as_ref().is_some_and(|(_, many)| many.contains(&name)) {
            return Err(DuplicateKey::Twice(String::from_utf8_lossy(&name).into_owned()));
        }
        match (self.few.get_mut(self.count), many) {
            (Some(place), _) => {
                *place = (self.depth, name);
                self.count += 1;
            }
            (None, Some((_, many))) => drop(many.insert(name)),
            (None, None) => self.many.push((self.depth, HashSet::from([name]))),
        }
        Ok(())
    }

    /// Returns the entries of `few` that belong to the innermost object.
    fn few_here(&self) -> impl Iterator<Item = &Name<'a>> {
        let few = self.few.iter().take(self.count).rev();
        few.take_while(|(depth, _)| *depth == self.depth).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), DuplicateKey> {
        refuse_duplicates(&Json::parse(text.to_owned()).unwrap(), &[])
    }

    /// Holes 2.
    #[test]
    fn a_member_that_could_be_read_as_a_protected_one_is_refused_in_the_outermost_object() {
        let check = |text: &str| {
            refuse_duplicates(&Json::parse(text.to_owned()).unwrap(), &["name", "arguments"])
        };
        for (name, protected) in [
            ("Name", "name"),
            ("NAME", "name"),
            (r"\u004eame", "name"),
            (r"name\u0000", "name"),
            (r"name\u0000x", "name"),
            ("ｎａｍｅ", "name"),
            ("na\u{200b}me", "name"),
            ("argumentſ", "arguments"),
            ("Arguments", "arguments"),
        ] {
            for text in [
                format!(r#"{{"name":"a","{name}":"b"}}"#),
                format!(r#"{{"{name}":"b"}}"#),
                format!(r#"{{"x":{{"y":[]}}, "{name}" : {{}}}}"#),
            ] {
                let refused = check(&text);
                let Err(DuplicateKey::Collides { protected: found, .. }) = refused else {
                    panic!("{text}: {refused:?}")
                };
                assert_eq!(found, protected, "{text}");
            }
        }
        let told = check(r#"{"name\u0000":1}"#).unwrap_err().to_string();
        assert_eq!(told, r#"the member "name\0" could be read as `name`; remove or rename it"#);
        let long = format!(r#"{{"name\u0000{}":1}}"#, "x".repeat(100_000));
        assert!(check(&long).unwrap_err().to_string().len() < 200);
        for text in [
            r#"{"name":"a","arguments":{"Name":1,"NAME":2}}"#,
            r#"{"\u006eame":"a","names":"b","nam":"c","nom":"d","argument":1}"#,
            r#"{"größe":1,"名前":2,"":3,"x\u0000name":4}"#,
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
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
    fn it_does_not_matter_how_many_members_there_are() {
        let object = |depth: usize, from: usize| {
            let names: Vec<_> = (from..100).map(|n| format!(r#""{n}":{{"0":{depth}}}"#)).collect();
            names.join(",")
        };
        let (one, other) = (object(1, 0), object(2, 0));
        let nested = format!(r#"{{{one},"x":{{{other}}},"y":[{{{other}}}]}}"#);
        assert_eq!(check(&nested), Ok(()));
        for twice in ["0", "15", "16", "17", "99"] {
            let refused = Err(DuplicateKey::Twice(twice.to_owned()));
            assert_eq!(check(&format!(r#"{{{one},"x":{{{other}}},"{twice}":1}}"#)), refused);
            assert_eq!(check(&format!(r#"{{{one},"x":{{{other},"{twice}":1}}}}"#)), refused);
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
            let passes = Json::parse(deep).is_ok_and(|json| refuse_duplicates(&json, &[]).is_ok());
            assert!(!passes, "{levels} levels");
        }
        assert_eq!(check(&format!("{}1{}", "[".repeat(100), "]".repeat(100))), Ok(()));
    }
}
