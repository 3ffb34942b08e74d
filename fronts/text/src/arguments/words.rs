//! Parses `key=value` and `key:=json`, with dots for nested members.

use capstan_model::secret::{MASK, is_secret_name};
use capstan_wire::{Json, compose};

use super::schema::{Others, Schema};
use super::value::{convert, convert_items, guess};
use super::{ArgumentError, object_of, parse, refuse_missing};
use crate::clean::one_line;

/// Maximum length of a value that a message repeats.
const MAX_SHOWN: usize = 60;

/// One parsed word.
struct Pair<'a> {
    /// The key, or the rest of it within the enclosing objects.
    key: &'a str,
    value: Typed<'a>,
}

/// The right side of a word.
enum Typed<'a> {
    /// After `=`: text to convert by the schema.
    Text(&'a str),
    /// After `:=`: JSON.
    Raw(Json),
}

/// All words about one member.
struct Group<'a> {
    name: &'a str,
    /// Words that end at this member.
    values: Vec<Pair<'a>>,
    /// Words about the member's own members.
    inner: Vec<Pair<'a>>,
}

/// Builds the object that the words describe.
pub(super) fn build(words: &[String], schema: Schema<'_>) -> Result<Json, ArgumentError> {
    let pairs = words.iter().map(|word| Pair::parse(word)).collect::<Result<Vec<_>, _>>()?;
    object(pairs, schema, "")
}

/// Builds the object of these pairs. `place` is its own path with a dot at the end, for messages.
fn object(pairs: Vec<Pair<'_>>, schema: Schema<'_>, place: &str) -> Result<Json, ArgumentError> {
    let mut members = Vec::new();
    for group in groups(pairs, schema) {
        let name = group.name;
        let key = format!("{place}{name}");
        let member = match schema.property(name) {
            Some(property) => value(group, property, &key)?,
            None => match unknown(name, schema, &key)? {
                Some(like) => value(group, like, &key)?,
                None => guessed(group, &key)?,
            },
        };
        members.push((name.to_owned(), member));
    }
    let object = object_of(&members);
    refuse_missing(&object, schema, place)?;
    Ok(object)
}

/// Groups pairs by member, in the order of the first word about each.
fn groups<'a>(pairs: Vec<Pair<'a>>, schema: Schema<'_>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for pair in pairs {
        let (name, inner) = split_path(pair.key, schema);
        let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            groups.push(Group { name, values: Vec::new(), inner: Vec::new() });
            groups.len() - 1
        });
        let Some(group) = groups.get_mut(at) else { continue };
        match inner {
            Some(key) => group.inner.push(Pair { key, ..pair }),
            None => group.values.push(pair),
        }
    }
    groups
}

/// Splits a path into its first member and the rest: `a.b` is `b` within `a` only if the schema has
/// no `a.b` and `a` is an object.
fn split_path<'a>(path: &'a str, schema: Schema<'_>) -> (&'a str, Option<&'a str>) {
    if schema.property(path).is_some() {
        return (path, None);
    }
    let cuts = path.rmatch_indices('.').filter_map(|(at, _)| path.split_at_checked(at));
    for (name, rest) in cuts {
        let rest = rest.strip_prefix('.').unwrap_or(rest);
        let is_object = schema.property(name).is_some_and(Schema::is_object);
        if is_object && !rest.is_empty() {
            return (name, Some(rest));
        }
    }
    (path, None)
}

/// The schema for a key that the schema does not name, if it has one; an error if the key is
/// refused or is likely a misspelt key.
fn unknown<'a>(
    name: &str,
    schema: Schema<'a>,
    key: &str,
) -> Result<Option<Schema<'a>>, ArgumentError> {
    let keys = schema.keys();
    let nearest = nearest(name, &keys);
    let others = schema.others();
    if nearest.is_none() {
        match others {
            Others::Free => return Ok(None),
            Others::Like(schema) => return Ok(Some(schema)),
            Others::Refused => {}
        }
    }
    let show = |key: &str| one_line(key, MAX_SHOWN);
    Err(ArgumentError::Unknown {
        key: key.to_owned(),
        nearest: nearest.map(show),
        known: keys.into_iter().map(show).collect(),
    })
}

/// The key that `name` is most likely a misspelling of.
fn nearest<'a>(name: &str, keys: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |key: &str| strsim::damerau_levenshtein(&name, &key.to_lowercase());
    // At most one mistake per three letters; a short key is rarely a misspelling of another.
    let is_near = |distance: usize| distance * 3 <= name.chars().count();
    let near = keys.iter().map(|key| (distance(key), *key)).filter(|(d, _)| is_near(*d));
    near.min_by_key(|(distance, _)| *distance).map(|(_, key)| key)
}

/// The value of a group's member under its schema.
fn value(group: Group<'_>, schema: Schema<'_>, key: &str) -> Result<Json, ArgumentError> {
    let Group { mut values, inner, .. } = group;
    match (values.len(), inner.is_empty()) {
        (0, _) => object(inner, schema, &format!("{key}.")),
        (1, true) => match values.pop().map(|pair| pair.value) {
            Some(Typed::Raw(json)) => Ok(json),
            Some(Typed::Text(text)) => {
                convert(text, schema).ok_or_else(|| bad_value(key, text, schema))
            }
            None => Ok(Json::empty_object()),
        },
        (_, true) if schema.is_list() => collect(&values, schema, key),
        (_, _) => Err(ArgumentError::Twice { key: key.to_owned() }),
    }
}

/// The list from a repeated key; each word is one item.
fn collect(values: &[Pair<'_>], schema: Schema<'_>, key: &str) -> Result<Json, ArgumentError> {
    let one = |pair: &Pair<'_>| match &pair.value {
        Typed::Raw(json) => Ok(vec![json.clone()]),
        Typed::Text(text) => match convert_items(&[text], schema) {
            Some(list) => Ok(capstan_wire::object::items(&list).unwrap_or_default()),
            None => Err(bad_value(key, text, schema)),
        },
    };
    let items = values.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(compose::array(items.iter().flatten()))
}

/// The value of a group's member without a schema.
fn guessed(group: Group<'_>, key: &str) -> Result<Json, ArgumentError> {
    let mut values = group.values;
    match (values.pop(), values.is_empty()) {
        (Some(Pair { value: Typed::Raw(json), .. }), true) => Ok(json),
        (Some(Pair { value: Typed::Text(text), .. }), true) => Ok(guess(text)),
        (_, _) => Err(ArgumentError::Twice { key: key.to_owned() }),
    }
}

fn bad_value(key: &str, text: &str, schema: Schema<'_>) -> ArgumentError {
    let value = if is_secret_name(key) { MASK.to_owned() } else { one_line(text, MAX_SHOWN) };
    ArgumentError::BadValue { key: key.to_owned(), value, expected: schema.expected() }
}

// === impl Pair ===

impl<'a> Pair<'a> {
    fn parse(word: &'a str) -> Result<Self, ArgumentError> {
        let (key, text) = match word.split_once('=') {
            Some((key, text)) if !key.is_empty() && key != ":" => (key, text),
            Some(_) | None => {
                return Err(ArgumentError::NotAPair { word: one_line(word, MAX_SHOWN) });
            }
        };
        match key.strip_suffix(':') {
            Some(key) => {
                let json = parse(text.to_owned(), &format!("the value of `{key}`"))?;
                Ok(Self { key, value: Typed::Raw(json) })
            }
            None => Ok(Self { key, value: Typed::Text(text) }),
        }
    }
}
