//! Canonical form of arguments, and its digest.

use std::fmt::Write as _;

use capstan_wire::{Json, compose, object};
use sha2::{Digest as _, Sha256};

/// Returns the digest of arguments.
///
/// It does not depend on the order of members or on white space. Different values have different
/// digests.
pub(crate) fn digest(arguments: &Json) -> String {
    let mut text = String::new();
    canonical(arguments, &mut text);
    hex(&Sha256::digest(text.as_bytes()))
}

/// Returns the version of a policy that consists of these texts.
pub fn policy_version<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    digest_of(texts)
}

/// Returns the digest of these texts, in this order.
pub fn digest_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        // Each text is preceded by its length, so that different lists never give the same bytes.
        hash.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hex(&hash.finalize())
}

/// Formats bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Writes the canonical form: members sorted by name, no white space, no needless escapes.
///
/// Numbers stay as they were written: servers may treat `1.0` and `1` differently, and two large
/// numbers must not become the same.
fn canonical(json: &Json, text: &mut String) {
    match json.as_bytes().first() {
        Some(b'{') => match object::members(json) {
            Ok(mut members) => {
                members.sort_by(|a, b| a.0.cmp(&b.0));
                text.push('{');
                for (name, value) in &members {
                    text.push_str(compose::string(name).as_str());
                    text.push(':');
                    canonical(value, text);
                    text.push(',');
                }
                text.push('}');
            }
            Err(_) => text.push_str(json.as_str()),
        },
        Some(b'[') => match object::items(json) {
            Ok(items) => {
                text.push('[');
                for item in &items {
                    canonical(item, text);
                    text.push(',');
                }
                text.push(']');
            }
            Err(_) => text.push_str(json.as_str()),
        },
        Some(b'"') => match json.read::<String>() {
            Ok(plain) => text.push_str(compose::string(&plain).as_str()),
            // Half a surrogate pair, which only some readers accept; kept as it was written.
            Err(_) => text.push_str(json.as_str()),
        },
        Some(_) | None => text.push_str(json.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        digest(&Json::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn spelling_does_not_matter() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true , null ],\n \"a\":1 }"),
            (r#"{"a":"é/"}"#, r#"{"a":"\u00e9\/"}"#),
            (r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"y":2,"x":1}}"#),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(of(one), of(other), "{one}");
        }
    }

    #[test]
    fn any_other_value_has_another_digest() {
        let all = [
            "{}",
            "null",
            "[]",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1.0}"#,
            r#"{"a":12345678901234567890123}"#,
            r#"{"a":12345678901234567890124}"#,
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[[1],2]}"#,
            r#"{"a":[1,[2]]}"#,
            r#"{"a":{"b":1},"c":2}"#,
            r#"{"a":{"b":1,"c":2}}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"a":"\ud801"}"#,
            r#"{"a":"x\",\"b\":\"y"}"#,
            r#"{"a":"x","b":"y"}"#,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in all.iter().skip(at + 1) {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }
}
