//! Parses `key=value`, `key:=json` and `--key value`, with dots for nested members.

use capstan_model::secret::{MASK, is_secret_name};
use capstan_wire::{Json, compose};

use super::given::Files;
use super::pairs::{self, Right};
use super::schema::{Others, Schema, Type};
use super::value::{convert, convert_item, guess};
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

/// The value of a word.
enum Typed<'a> {
    /// Text to convert by the schema.
    Text(&'a str),
    /// The text of a file, to convert by the schema.
    File { path: &'a str, text: &'a str },
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
pub(super) fn build(
    words: &[String],
    files: &Files,
    schema: Schema<'_>,
) -> Result<Json, ArgumentError> {
    let pairs = pairs::split(words, |key, next| is_switch(key, next, schema))?;
    let pairs = pairs.into_iter().map(|(key, right)| Pair::new(key, right, files));
    object(pairs.collect::<Result<Vec<_>, _>>()?, schema, "")
}

/// True if `--key` stands for `key=true`: it is a boolean, and the next word is no boolean.
fn is_switch(key: &str, next: Option<&str>, schema: Schema<'_>) -> bool {
    let ways = schema.property(key).map(Schema::ways).unwrap_or_default();
    let is_boolean = ways.iter().any(|way| way.types.contains(&Type::Boolean));
    let fits = |next: &str| schema.property(key).is_some_and(|one| convert(next, one).is_some());
    is_boolean && !next.is_some_and(fits)
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
            Some(typed) => typed.convert(key, schema, |text| convert(text, schema)),
            None => Ok(Json::empty_object()),
        },
        (_, true) if schema.is_list() => collect(values, schema, key),
        (_, _) => Err(ArgumentError::Twice { key: key.to_owned() }),
    }
}

/// The list from a repeated key; each word is one item.
fn collect(values: Vec<Pair<'_>>, schema: Schema<'_>, key: &str) -> Result<Json, ArgumentError> {
    let one = |pair: Pair<'_>| pair.value.convert(key, schema, |text| convert_item(text, schema));
    let items = values.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(compose::array(&items))
}

/// The value of a group's member without a schema.
fn guessed(group: Group<'_>, key: &str) -> Result<Json, ArgumentError> {
    let mut values = group.values;
    match (values.pop(), values.is_empty()) {
        (Some(Pair { value: Typed::Raw(json), .. }), true) => Ok(json),
        (Some(Pair { value: Typed::Text(text), .. }), true) => Ok(guess(text)),
        (Some(Pair { value: Typed::File { text, .. }, .. }), true) => Ok(compose::string(text)),
        (_, _) => Err(ArgumentError::Twice { key: key.to_owned() }),
    }
}

fn bad_value(key: &str, text: &str, schema: Schema<'_>) -> ArgumentError {
    let value = if is_secret_name(key) { MASK.to_owned() } else { one_line(text, MAX_SHOWN) };
    let (key, is_list) = (key.to_owned(), schema.is_list());
    ArgumentError::BadValue { key, value, expected: schema.expected(), is_list }
}

// === impl Pair ===

impl<'a> Pair<'a> {
    fn new(key: &'a str, right: Right<'a>, files: &'a Files) -> Result<Self, ArgumentError> {
        let json = |text: &str| parse(text.to_owned(), &format!("the value of `{key}`"));
        let value = match right {
            Right::Text(text) => Typed::Text(text),
            Right::Json(text) => Typed::Raw(json(text)?),
            Right::File(path) => Typed::File { path, text: files.text(key, path)? },
            Right::JsonFile(path) => Typed::Raw(json(files.text(key, path)?)?),
        };
        Ok(Self { key, value })
    }
}

// === impl Typed ===

impl Typed<'_> {
    /// The value as JSON; `convert` converts a text, and returns `None` if it does not fit.
    fn convert(
        self,
        key: &str,
        schema: Schema<'_>,
        convert: impl Fn(&str) -> Option<Json>,
    ) -> Result<Json, ArgumentError> {
        match self {
            Self::Raw(json) => Ok(json),
            Self::Text(text) => convert(text).ok_or_else(|| bad_value(key, text, schema)),
            // A file ends with a line break even if it holds a number. The text is not shown: a
            // file may hold secrets.
            Self::File { path, text } => convert(text)
                .or_else(|| convert(text.trim_end()))
                .ok_or_else(|| bad_value(key, &format!("@{path}"), schema)),
        }
    }
}
