//! Understands `key=value` and `key:=json`, with dots for members of members.

use capstan_model::secret::{MASK, is_secret_name};
use capstan_wire::{Json, compose};

use super::schema::{Others, Schema};
use super::value::{convert, convert_items, guess};
use super::{ArgumentError, object_of, parse, refuse_missing};
use crate::clean::one_line;

/// Longest piece of a value that a message repeats.
const MAX_SHOWN: usize = 60;

/// One word.
struct Pair<'a> {
    /// The key, or what of it is left within the objects around.
    key: &'a str,
    value: Typed<'a>,
}

/// The right side of a word.
enum Typed<'a> {
    /// After `=`: to be understood with the schema.
    Text(&'a str),
    /// After `:=`: JSON already.
    Raw(Json),
}

/// All words that say something about one member.
struct Group<'a> {
    name: &'a str,
    /// Words that end here.
    values: Vec<Pair<'a>>,
    /// Words that go on into the member's own members.
    inner: Vec<Pair<'a>>,
}

/// The object that `words` spell.
pub(super) fn build(words: &[String], schema: Schema<'_>) -> Result<Json, ArgumentError> {
    let pairs = words.iter().map(|word| Pair::parse(word)).collect::<Result<Vec<_>, _>>()?;
    object(pairs, schema, "")
}

/// The object of these pairs. `place` is its own path with a dot at the end, for messages.
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

/// Puts together what belongs to one member, in the order of the first word about each.
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

/// The member that `path` begins with, and what follows it: `a.b` is `b` within `a` only if the
/// schema knows no `a.b` and `a` is an object.
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

/// What the schema says about a key that it does not name: refused, a schema, or nothing.
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

/// The key that `name` is most likely a slip of.
fn nearest<'a>(name: &str, keys: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |key: &str| strsim::damerau_levenshtein(&name, &key.to_lowercase());
    // One slip in three letters; a short key is rarely a slip of another.
    let is_near = |distance: usize| distance * 3 <= name.chars().count();
    let near = keys.iter().map(|key| (distance(key), *key)).filter(|(d, _)| is_near(*d));
    near.min_by_key(|(distance, _)| *distance).map(|(_, key)| key)
}

/// The member that the words of a group make, under its schema.
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

/// The list that a repeated key makes: each word is one item.
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

/// The member that the words of a group make where no schema says.
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
