//! Reads the members of an object, or replaces one, without touching the rest.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::Error as _;

use crate::fold::collides;
use crate::scan::{Items, Members, Quoted};
use crate::{BadJson, Json, compose};

/// Objects up to this size are copied rather than changed in place.
const SMALL: usize = 16 * 1024;

/// In texts up to this size, a substring search runs before the members are scanned; in longer ones
/// the scan costs no more.
const SHORT: usize = 4 * 1024;

/// Returns the members of an object, in order, each value as it was written.
///
/// # Errors
/// Fails if `json` is not an object, or if a name in it cannot be decoded.
pub fn members(json: &Json) -> Result<Vec<(String, Json)>, BadJson> {
    let own = |(name, value): (Cow<'_, str>, &[u8])| (name.into_owned(), json.slice(value));
    named(json).map(|member| member.map(own)).collect()
}

/// Returns the first member called `key`, as it was written; `None` also if `json` is not an
/// object.
pub fn get(json: &Json, key: &str) -> Option<Json> {
    let [found] = peek(json, [key]);
    found
}

/// Returns the first member of each of these names, as it was written, in one pass.
///
/// All are `None` if `json` is not an object, or if a name in it cannot be decoded.
pub fn peek<const N: usize>(json: &Json, keys: [&str; N]) -> [Option<Json>; N] {
    find(json, keys).map(|found| found.map(|value| json.slice(value)))
}

/// False only if no name and no string in the text can be one of these words.
///
/// A quick check before members are read: it costs less than scanning a short text, and is not made
/// for a long one.
pub fn may_mention(json: &Json, words: &[&str]) -> bool {
    json.len() > SHORT || may_name(json, words)
}

/// Returns the range of the value of the first member of this name within the text.
pub fn place(json: &Json, key: &str) -> Option<Range<usize>> {
    let [found] = find(json, [key]);
    json.place_of(found?)
}

/// Returns the member called `key`, if it is a string.
pub fn get_string(json: &Json, key: &str) -> Option<String> {
    let [found] = find(json, [key]);
    let value = found.filter(|value| value.starts_with(b"\""))?;
    Quoted::at(value, 0).decode().map(Cow::into_owned)
}

/// Returns the value at a dotted path such as `issue.repo`, if any reading of the path will do.
///
/// Decisions must use [`all_at_path`] instead.
pub fn at_path(json: &Json, path: &str) -> Option<Json> {
    members(json).ok()?.into_iter().find_map(|(name, value)| match below(path, &name) {
        _ if name == path => Some(value),
        Some(rest) => at_path(&value, rest),
        None => None,
    })
}

/// Returns every value that a dotted path such as `issue.repo` can mean, in the order of the text.
///
/// A dot may lead into an object or be part of a member's name. Both readings count, because
/// otherwise a sender could choose which one is checked and hide the other.
///
/// # Errors
/// Fails if `json`, or an object on the path, is not an object whose names can all be decoded, or
/// if a lenient reader could take another name for one in the path (see [`collides`]).
pub fn all_at_path(json: &Json, path: &str) -> Result<Vec<Json>, BadJson> {
    let mut found = Vec::new();
    for (name, value) in members(json)? {
        if name == path {
            found.push(value);
        } else if let Some(rest) = below(path, &name) {
            if value.as_bytes().starts_with(b"{") {
                found.extend(all_at_path(&value, rest)?);
            }
        } else if starts_of(path).any(|start| collides(&name, start)) {
            return Err(bad("a member name is ambiguous"));
        }
    }
    Ok(found)
}

/// Returns the rest of a dotted path below the member `name`.
fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    path.strip_prefix(name)?.strip_prefix('.')
}

/// Returns every possible first name of a dotted path: the path up to each dot, and all of it.
fn starts_of(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.match_indices('.').filter_map(|(at, _)| path.get(..at));
    dots.chain(std::iter::once(path))
}

/// Returns the items of a list, each as it was written.
///
/// # Errors
/// Fails if `json` is not a list.
pub fn items(json: &Json) -> Result<Vec<Json>, BadJson> {
    let items = Items::of(json.as_bytes()).ok_or_else(|| bad("not a list"))?;
    Ok(items.map(|item| json.slice(item)).collect())
}

/// Returns `json` with the member `key` set to `value`: replaced in place, else added at the end.
///
/// # Errors
/// Fails if `json` is not an object, or if a name in it cannot be decoded.
pub fn with_member(json: &Json, key: &str, value: &Json) -> Result<Json, BadJson> {
    let mut text = Vec::with_capacity(json.len() + key.len() + value.len() + 8);
    text.push(b'{');
    let mut is_set = false;
    for member in named(json) {
        let (name, old) = member?;
        let new = if !is_set && name == key {
            is_set = true;
            value.as_bytes()
        } else {
            old
        };
        push_read(&mut text, name, new);
    }
    if !is_set {
        compose::push_member(&mut text, key, value.as_bytes());
    }
    text.push(b'}');
    Ok(Json::composed(text))
}

/// Like [`with_member`], but takes the object and changes it in place where possible.
///
/// That is the case if the object is large and not shared, and the value is not longer than the old
/// one; the rest is filled with spaces.
///
/// # Errors
/// Fails if `json` is not an object, or if a name in it cannot be decoded.
pub fn set_member(json: Json, key: &str, value: &Json) -> Result<Json, BadJson> {
    if json.len() <= SMALL {
        return with_member(&json, key, value);
    }
    let mut place = None;
    for member in named(&json) {
        let (name, old) = member?;
        if place.is_none() && name == key && old.len() >= value.len() {
            place = json.place_of(old);
        }
    }
    match place {
        Some(place) => {
            json.overwritten(place, value).or_else(|json| with_member(&json, key, value))
        }
        None => with_member(&json, key, value),
    }
}

/// Returns `json` without the member `key`.
///
/// # Errors
/// Fails if `json` is not an object, or if a name in it cannot be decoded.
pub fn without_member(json: &Json, key: &str) -> Result<Json, BadJson> {
    let mut text = Vec::with_capacity(json.len());
    text.push(b'{');
    for member in named(json) {
        let (name, value) = member?;
        if name != key {
            push_read(&mut text, name, value);
        }
    }
    text.push(b'}');
    Ok(Json::composed(text))
}

/// Returns `json` without these members of the object in its member `key`, and without `key` itself
/// if nothing is left in it; `None` if there are no such members.
pub fn without_inner(json: &Json, key: &str, inner: &[&str]) -> Option<Json> {
    if !may_mention(json, &[key]) {
        return None;
    }
    let mut text = Vec::with_capacity(json.len());
    text.push(b'{');
    let (mut is_found, mut is_changed) = (false, false);
    for member in named(json) {
        let (name, value) = member.ok()?;
        if is_found || name != key {
            push_read(&mut text, name, value);
            continue;
        }
        is_found = true;
        let start = text.len();
        push_read(&mut text, name, b"{");
        for member in named_in(value) {
            let (name, value) = member.ok()?;
            if inner.contains(&&*name) {
                is_changed = true;
            } else {
                push_read(&mut text, name, value);
            }
        }
        if text.last() == Some(&b'{') {
            text.truncate(start);
        } else {
            text.push(b'}');
        }
    }
    text.push(b'}');
    is_changed.then(|| Json::composed(text))
}

/// Returns the values for [`peek`] as slices.
fn find<'a, const N: usize>(json: &'a Json, keys: [&str; N]) -> [Option<&'a [u8]>; N] {
    if !may_mention(json, &keys) {
        return [None; N];
    }
    let mut found: [Option<&'a [u8]>; N] = [None; N];
    let Some(mut members) = Members::of(json.as_bytes()) else { return found };
    while let Some((name, value)) = members.next() {
        let Some(name) = name.spelled() else { return [None; N] };
        let place = keys.iter().zip(&mut found).find(|(key, _)| key.as_bytes() == &*name);
        if let Some((_, place @ None)) = place {
            *place = Some(value);
            // Only a name with an escape could still change the outcome.
            if found.iter().all(Option::is_some) && members.is_rest_plain() {
                break;
            }
        }
    }
    found
}

/// True if a member may have one of these names: the text contains it, or may escape it.
///
/// Most names that are looked up are absent, and this check finds that out at almost no cost.
pub(crate) fn may_name(json: &Json, keys: &[&str]) -> bool {
    let text = json.as_str();
    // Such a key can be escaped only with `\u`.
    let is_plain = |key: &str| !key.contains(|c: char| matches!(c, '"' | '\\' | '/') || c < ' ');
    keys.iter().any(|key| !is_plain(key) || text.contains(key)) || text.contains("\\u")
}

/// Iterates over the members of an object with decoded names; gives one error if it is not an
/// object.
fn named(json: &Json) -> impl Iterator<Item = Result<(Cow<'_, str>, &[u8]), BadJson>> {
    named_in(json.as_bytes())
}

fn named_in<'a>(text: &'a [u8]) -> impl Iterator<Item = Result<(Cow<'a, str>, &'a [u8]), BadJson>> {
    let members = Members::of(text);
    let none = members.is_none().then(|| Err(bad("not an object")));
    let read = |(name, value): (Quoted<'a>, &'a [u8])| match name.decode() {
        Some(name) => Ok((name, value)),
        None => Err(bad("a name has an escape that stands for no character")),
    };
    none.into_iter().chain(members.into_iter().flatten().map(read))
}

/// Writes a member whose name was decoded.
fn push_read(text: &mut Vec<u8>, name: Cow<'_, str>, value: &[u8]) {
    match name {
        // A borrowed name had no escapes, so it needs none.
        Cow::Borrowed(name) => compose::push_plain_member(text, name, value),
        Cow::Owned(name) => compose::push_member(text, &name, value),
    }
}

fn bad(problem: &str) -> BadJson {
    BadJson::from(serde_json::Error::custom(problem))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn a_name_is_found_however_it_is_escaped() {
        for (text, key) in [
            (r#"{"a":0,"task":1}"#, "task"),
            (r#"{"a":0,"t\u0061sk":1}"#, "task"),
            (r#"{"a":0,"x\/y":1}"#, "x/y"),
            (r#"{"a":0,"x\"y":1}"#, "x\"y"),
            (r#"{"a":0,"x\ny":1}"#, "x\ny"),
        ] {
            let json = Json::parse(text).unwrap();
            assert_eq!(get(&json, key).as_ref().map(Json::as_str), Some("1"), "{text}");
            assert_eq!(get(&json, "other"), None, "{text}");
        }
        let inner = Json::parse(r#"{"a":"task","b":{"task":1}}"#).unwrap();
        assert_eq!(get(&inner, "task"), None);
        let unreadable = Json::parse(r#"{"task":1,"a":[2],"\ud800":3}"#).unwrap();
        assert_eq!(peek(&unreadable, ["task", "a"]), [None, None]);
    }

    #[test]
    fn replacing_a_member_leaves_every_other_byte_of_the_values() {
        let before = json(r#"{"z": 1.000, "name":"a", "u":{"x": [1 ,2]}}"#);
        let after = with_member(&before, "name", &compose::string("b")).unwrap();
        assert_eq!(after.as_str(), r#"{"z":1.000,"name":"b","u":{"x": [1 ,2]}}"#);
    }

    #[test]
    fn a_large_object_is_changed_in_place_when_nobody_else_has_it() {
        let rest = "y".repeat(SMALL);
        let text = format!(r#"{{"a":[ 1],"name":"s__echo","x":"{rest}"}}"#);
        let whole = |name: &str| format!(r#"{{"a":[ 1],"name":{name},"x":"{rest}"}}"#);
        let copied = |name: &str| whole(name);
        let check = |shared: bool, name: &str, expected: String, moved: bool| {
            let before = json(&text);
            let (place, other) = (before.as_bytes().as_ptr(), shared.then(|| before.clone()));
            let after = set_member(before, "name", &compose::string(name)).unwrap();
            assert!(after.as_str() == expected, "{name} {shared}");
            assert_eq!(after.as_bytes().as_ptr() != place, moved, "{name} {shared}");
            assert!(Json::parse(after.bytes().clone()).is_ok());
            assert!(other.is_none_or(|other| other.as_str() == text), "{name} {shared}");
        };
        check(false, "echo", whole(r#""echo"   "#), false);
        check(false, "s__echo", whole(r#""s__echo""#), false);
        check(true, "echo", copied(r#""echo""#), true);
        check(false, "longer__echo", copied(r#""longer__echo""#), true);
        let other = set_member(json(&text), "z", &json("1")).unwrap();
        assert!(other.as_str().ends_with(r#"","z":1}"#));
    }

    #[test]
    fn a_member_that_is_not_there_is_added_at_the_end() {
        let after = with_member(&json(r#"{"a":1}"#), "b", &json("2")).unwrap();
        assert_eq!(after.as_str(), r#"{"a":1,"b":2}"#);
    }

    #[test]
    fn members_of_a_member_are_removed_and_all_other_bytes_stay() {
        for (before, after) in [
            (
                r#"{"a": 1.0,"m":{"x":1,"y":{"x":2}},"b":2}"#,
                Some(r#"{"a":1.0,"m":{"y":{"x":2}},"b":2}"#),
            ),
            (r#"{"a":1,"m":{"x":1,"z":[1]},"b":2}"#, Some(r#"{"a":1,"b":2}"#)),
            (r#"{"m":{"\u0078":1}}"#, Some("{}")),
            (r#"{"m":{"x":1},"b":{"x":1}}"#, Some(r#"{"b":{"x":1}}"#)),
            (r#"{"m":{"y":1}}"#, None),
            (r#"{"m":{}}"#, None),
            (r#"{"m":["x"]}"#, None),
            (r#"{"m":{"x":1,"\ud800":2}}"#, None),
            (r#"{"x":1}"#, None),
            ("[]", None),
        ] {
            let found = without_inner(&json(before), "m", &["x", "z"]);
            assert_eq!(found.as_ref().map(Json::as_str), after, "{before}");
        }
    }

    #[test]
    fn a_dotted_path_reaches_into_objects() {
        let args = json(r#"{"issue":{"repo":"acme/x","a.b":{"c":7}},"dotted.key":1}"#);
        assert_eq!(at_path(&args, "issue.repo"), Some(json(r#""acme/x""#)));
        assert_eq!(at_path(&args, "dotted.key"), Some(json("1")));
        assert_eq!(at_path(&args, "issue.a.b.c"), Some(json("7")));
        assert_eq!(at_path(&args, "issue.none"), None);
        assert_eq!(at_path(&json("[1]"), "0"), None);
    }

    #[test]
    fn no_reading_of_a_path_hides_another() {
        let readings = |text: &str, path: &str| -> Vec<String> {
            let found = all_at_path(&json(text), path).unwrap();
            found.iter().map(ToString::to_string).collect()
        };
        let both = r#"{"issue.repo":"x","issue":{"repo":"y"}}"#;
        assert_eq!(readings(both, "issue.repo"), [r#""x""#, r#""y""#]);
        let turned = r#"{"issue":{"repo":"y"},"issue.repo":"x"}"#;
        assert_eq!(readings(turned, "issue.repo"), [r#""y""#, r#""x""#]);
        let dead_end = r#"{"a.b":{"x":0},"a":{"b":{"c":1},"b.c":2},"a.b.c":3}"#;
        assert_eq!(readings(dead_end, "a.b.c"), ["1", "2", "3"]);
        assert_eq!(readings(r#"{"a":1,"a":2}"#, "a"), ["1", "2"]);
        for nowhere in ["{}", r#"{"a":1}"#, r#"{"a":{"c":1}}"#, r#"{"a":[{"b":1}]}"#] {
            assert_eq!(readings(nowhere, "a.b"), [""; 0], "{nowhere}");
        }
    }

    #[test]
    fn a_path_through_names_that_cannot_be_read_is_an_error() {
        for text in [r#"{"a":1,"\ud800":1}"#, r#"{"a":{"\udc00":1,"b":2}}"#, "[]", "1"] {
            assert!(all_at_path(&json(text), "a.b").is_err(), "{text}");
            assert_eq!(at_path(&json(text), "a.b"), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["[]", "1", "null", "\"x\""] {
            assert!(members(&json(text)).is_err());
            assert_eq!(get(&json(text), "a"), None);
            assert!(with_member(&json(text), "a", &json("1")).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_key_survives_taking_apart_and_putting_together(key in ".*", value in any::<i64>()) {
            let object = compose::object(&[(&key, &json(&value.to_string()))]);
            prop_assert_eq!(get(&object, &key), Some(json(&value.to_string())));
            prop_assert_eq!(members(&object).unwrap().len(), 1);
        }
    }
}
