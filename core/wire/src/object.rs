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

/// Returns `json` without its only member called `key` and the white space around it; every other
/// byte stays. `None` if there is no such member, or if the rest of the text may contain another.
pub fn cut_member(json: &Json, key: &str) -> Option<Json> {
    if !may_name(json, &[key]) {
        return None;
    }
    let bytes = json.as_bytes();
    let mut before = 1;
    let mut members = Members::of(bytes)?;
    let value = loop {
        let (name, value) = members.next()?;
        if *name.spelled()? == *key.as_bytes() {
            break value;
        }
        before = json.place_of(value)?.end;
    };
    let end = json.place_of(value)?.end;
    let mut rest = bytes.get(end..)?.trim_ascii_start();
    if before == 1 {
        // The first member takes the comma behind it along; others, the comma before them.
        rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
    let mut text = Vec::with_capacity(before + rest.len());
    text.extend_from_slice(bytes.get(..before)?);
    text.extend_from_slice(rest);
    let rest = Json::composed(text);
    (!may_name(&rest, &[key])).then_some(rest)
}

/// Like [`cut_member`], for a member with this value, an object, which is compared and not scanned.
/// `None` also if the member is neither the first of several nor the last, or has spaces around.
pub fn cut_known(json: &Json, key: &str, value: &Json) -> Option<Json> {
    // Behind a comma that is not in a string, a name and a value that end just before the end of
    // the text are a member of the outermost object. The comma cannot be in a string, because the
    // quote behind it would end that string.
    let is_last = |text: &[u8]| {
        let text = text.strip_suffix(b"}")?.strip_suffix(value.as_bytes())?;
        let text = text.strip_suffix(b"\":")?.strip_suffix(key.as_bytes())?;
        Some([text.strip_suffix(b",\"")?, b"}"].concat())
    };
    let is_first = |text: &[u8]| {
        let text = text.strip_prefix(b"{\"")?.strip_prefix(key.as_bytes())?;
        let text = text.strip_prefix(b"\":")?.strip_prefix(value.as_bytes())?;
        Some([b"{", text.strip_prefix(b",")?].concat())
    };
    let text = json.as_bytes();
    let is_object = value.as_bytes().starts_with(b"{");
    let rest = is_last(text).or_else(|| is_first(text)).filter(|_| is_object)?;
    let rest = Json::composed(rest);
    (!may_name(&rest, &[key])).then_some(rest)
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
mod tests;
