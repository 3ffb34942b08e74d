//! The members of a message's envelope, as they were written.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check::Check;

/// The members of the envelope.
///
/// A member that is given twice is refused, even if one name is escaped: the fast path leaves such
/// messages to the parser, which refuses them.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Members<'a> {
    pub(crate) jsonrpc: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) id: Option<Id>,
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<Raw<'a>>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    pub(crate) result: Option<Raw<'a>>,
    #[serde(borrow)]
    pub(crate) error: Option<Raw<'a>>,
}

/// A value as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Raw<'a>(pub(crate) &'a str);

/// The id of a message.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Id {
    Number(i64),
    Text(String),
    Null(()),
}

// === impl Members ===

impl<'a> Members<'a> {
    /// Parses the members of one message.
    pub(crate) fn parse(line: &'a [u8]) -> serde_json::Result<Self> {
        Self::of(line).map_or_else(|| serde_json::from_slice(line), Ok)
    }

    /// Fast path for messages as nearly all are written.
    ///
    /// `None` for anything unusual, which the parser handles and reports.
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut check = Check::of(std::str::from_utf8(line).ok()?);
        let mut members = Self::default();
        check.space();
        if check.byte()? != b'{' {
            return None;
        }
        loop {
            check.space();
            let (name, value) = (check.name()?, check.value()?);
            members.add(name, value)?;
            check.space();
            match check.byte()? {
                b',' => {}
                b'}' => break,
                _ => return None,
            }
        }
        check.space();
        check.is_at_end().then_some(members)
    }

    fn add(&mut self, name: &str, value: &'a str) -> Option<()> {
        match name {
            "jsonrpc" => set(&mut self.jsonrpc, plain(value)?.into()),
            "id" => set(&mut self.id, Id::plain(value)?),
            "method" => set(&mut self.method, plain(value)?.into()),
            "params" if value != "null" => set(&mut self.params, Raw(value)),
            "result" => set(&mut self.result, Raw(value)),
            "error" if value != "null" => set(&mut self.error, Raw(value)),
            "params" | "error" => None,
            // With escapes, it may spell one of the names above.
            other => (!other.contains('\\')).then_some(()),
        }
    }
}

// === impl Raw ===

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

// === impl Id ===

impl Id {
    /// Parses an id that is an unsigned number or a string without escapes.
    fn plain(value: &str) -> Option<Self> {
        match value.as_bytes() {
            [b'"', ..] => plain(value).map(|text| Self::Text(text.to_owned())),
            [b'0'..=b'9', ..] => value.parse().map(Self::Number).ok(),
            _ => None,
        }
    }
}

/// Distinguishes an absent `id` from a null one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Id>, D::Error> {
    Id::deserialize(deserializer).map(Some)
}

/// Distinguishes an absent `result` from a null one: `"result":null` is a result.
fn present_raw<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Raw<'de>>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

/// Returns the content of a string without escapes.
fn plain(value: &str) -> Option<&str> {
    let text = value.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains('\\')).then_some(text)
}

/// Sets a member; `None` if it is already set.
fn set<T>(member: &mut Option<T>, value: T) -> Option<()> {
    member.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks that the fast path agrees with the parser.
    fn check(line: &[u8]) -> Result<(), TestCaseError> {
        if let Some(members) = Members::of(line) {
            let parsed: Members<'_> = serde_json::from_slice(line)
                .map_err(|error| TestCaseError::fail(format!("{error}: {line:?}")))?;
            prop_assert_eq!(members, parsed);
        }
        Ok(())
    }

    #[test]
    fn what_is_nested_without_end_is_left_to_a_parser() {
        for (levels, is_plain) in [(63, true), (64, false), (100_000, false)] {
            let (open, end) = ("[".repeat(levels), "]".repeat(levels));
            let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{open}{end}}}"#);
            assert_eq!(Members::of(line.as_bytes()).is_some(), is_plain, "{levels}");
            assert!(Members::parse(line.as_bytes()).is_ok(), "{levels}");
        }
    }

    #[test]
    fn no_parser_is_needed_for_messages_as_almost_all_are_written() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{}}}"#,
            "\t{ \"method\" : \"x\" ,\r\n\"jsonrpc\": \"2.0\"}\n ",
            r#"{"result":{"a":[-0.5e+3,0,"\u00e9\\",true,[],{"b":null}]},"id":"x","jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":null,"more":["é"]}"#,
            r#"{"jsonrpc":"2.0","id":9223372036854775807,"error":{"code":1,"message":"\n"}}"#,
        ] {
            assert!(Members::of(line.as_bytes()).is_some(), "{line}");
            check(line.as_bytes()).unwrap();
        }
    }

    /// Names of members, some of them in unusual spellings.
    const NAMES: &str = r#"jsonrpc id method params result error x \u0069d é \""#;

    /// Valid and invalid values.
    const VALUES: &str = r#""2.0" 1 -1 0 -0 01 1.0 1e2 9223372036854775808 - 1. null true nul
        "m" "\u006d" "\ud800" "\x" "\u12g4" {} [] {"a":1,"a":[{}]} [1,] {,} {"a"} [1}
        {"code":-1,"message":"no"}"#;

    fn any_of(words: &'static str) -> impl Strategy<Value = &'static str> {
        prop::sample::select(words.split_whitespace().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn what_is_plain_to_see_is_what_a_parser_sees(
            members in prop::collection::vec((any_of(NAMES), any_of(VALUES)), 0..5),
            comma in prop::sample::select(&[",", " ,\n", ",,", "\u{c},", "{", ""][..]),
            (place, byte) in (any::<prop::sample::Index>(), any::<u8>()),
        ) {
            let members = members.iter().map(|(name, value)| format!(r#""{name}":{value}"#));
            let members = members.collect::<Vec<_>>().join(comma);
            let mut line = format!("{{{members}}}").into_bytes();
            check(&line)?;
            let place = place.index(line.len());
            line[place] = byte;
            check(&line)?;
        }
    }
}
