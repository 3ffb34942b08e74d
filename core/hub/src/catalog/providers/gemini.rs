//! Converts schemas for Gemini: only OpenAPI's keywords, references expanded, cycles cut.
//!
//! Gemini refuses the whole request because of a single unknown keyword, so everything that it is
//! not known to accept is left out. Values that stay keep the server's bytes and order.

use capstan_wire::{Json, compose, object};

use super::{MAX_DEPTH, MAX_SCHEMA, Unfit};

/// Members that are copied unchanged.
const KEPT: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "minItems",
    "maxItems",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "propertyOrdering",
    "minimum",
    "maximum",
];

/// The only formats that Gemini accepts.
const FORMATS: [&str; 6] = ["enum", "date-time", "int32", "int64", "float", "double"];

/// Cost of a schema besides its text, so that the budget also bounds many small schemas.
const NODE: usize = 16;

/// Converts a schema for Gemini.
pub(super) fn fit(schema: &Json) -> Result<Json, Unfit> {
    let mut walk = Walk { document: schema, open: Vec::new(), budget: MAX_SCHEMA, depth: 0 };
    if !is_object(schema) {
        return Err(Unfit::NotObject);
    }
    let mut root = walk.members(schema, Defaults::Keep)?;
    match root.get("type") {
        Some(kind) if kind.as_str() == r#""object""# => {}
        Some(_) => return Err(Unfit::NotObject),
        None => root.0.insert(0, ("type".to_owned(), compose::string("object"))),
    }
    Ok(root.json())
}

/// Keeps or drops `default` members; schemas within `anyOf` must not have one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Defaults {
    Keep,
    Drop,
}

/// The members of a schema that is being built.
#[derive(Default)]
struct Members(Vec<(String, Json)>);

/// A conversion of one schema; depth and budget guarantee that it ends.
struct Walk<'a> {
    document: &'a Json,
    /// The references that are being expanded, outermost first.
    open: Vec<String>,
    /// The number of bytes that may still be written.
    budget: usize,
    depth: usize,
}

// === impl Members ===

impl Members {
    fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn put(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Adds the members of another schema that this one does not have; joins properties and
    /// `required`.
    fn merge(&mut self, other: Self) {
        for (key, value) in other.0 {
            let joined = match (key.as_str(), self.get(&key)) {
                (_, None) => Some(value),
                ("properties", Some(own)) => Some(joined(own, &value)),
                ("required", Some(own)) => Some(concatenated(own, &value)),
                (_, Some(_)) => None,
            };
            if let Some(joined) = joined {
                self.put(&key, joined);
            }
        }
    }

    /// Removes names from `required` that are not properties; Gemini refuses them.
    fn tidy(&mut self) {
        let Some(required) = self.get("required") else { return };
        let properties = self.get("properties").cloned().unwrap_or_else(Json::empty_object);
        let known = |name: &Json| {
            name.read::<String>().is_ok_and(|name| object::get(&properties, &name).is_some())
        };
        let items = object::items(required).unwrap_or_default();
        let left: Vec<Json> = items.iter().filter(|name| known(name)).cloned().collect();
        if left.is_empty() {
            self.0.retain(|(key, _)| key != "required");
        } else if left.len() < items.len() {
            self.put("required", compose::array(&left));
        }
    }

    fn json(&self) -> Json {
        let members: Vec<(&str, &Json)> =
            self.0.iter().map(|(key, value)| (key.as_str(), value)).collect();
        compose::object(&members)
    }
}

// === impl Walk ===

impl Walk<'_> {
    fn schema(&mut self, schema: &Json, defaults: Defaults) -> Result<Json, Unfit> {
        match schema.as_bytes() {
            b"true" => Ok(Json::empty_object()),
            _ if is_object(schema) => Ok(self.members(schema, defaults)?.json()),
            _ => Err(Unfit::Odd(short(schema))),
        }
    }

    fn members(&mut self, schema: &Json, defaults: Defaults) -> Result<Members, Unfit> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unfit::TooDeep);
        }
        self.spend(NODE)?;
        let raw = object::members(schema).map_err(|_| Unfit::Odd(short(schema)))?;
        let is_choice = raw.iter().any(|(key, _)| key == "anyOf" || key == "oneOf");
        let defaults = if is_choice { Defaults::Drop } else { defaults };
        let mut members = Members::default();
        for (key, value) in &raw {
            self.member(&mut members, key, value, defaults)?;
        }
        members.tidy();
        self.depth -= 1;
        Ok(members)
    }

    fn member(
        &mut self,
        members: &mut Members,
        key: &str,
        value: &Json,
        defaults: Defaults,
    ) -> Result<(), Unfit> {
        let odd = |_| Unfit::Odd(key.to_owned());
        match key {
            "type" => types(members, value),
            "const" if is_string(value) => members.put("enum", compose::array([value])),
            "enum" if object::items(value).is_ok_and(|all| all.iter().all(is_string)) => {
                self.keep(members, key, value)?;
            }
            "format" if value.read::<String>().is_ok_and(|f| FORMATS.contains(&f.as_str())) => {
                self.keep(members, key, value)?;
            }
            "default" if defaults == Defaults::Keep => self.keep(members, key, value)?,
            "properties" => {
                let given = object::members(value).map_err(odd)?;
                // A property with the schema `false` can have no value and is left out.
                let given = given.iter().filter(|(_, schema)| schema.as_bytes() != b"false");
                let mut properties = Members::default();
                for (name, schema) in given {
                    self.spend(name.len())?;
                    properties.0.push((name.clone(), self.schema(schema, defaults)?));
                }
                members.merge(Members(vec![(key.to_owned(), properties.json())]));
            }
            "items" if value.as_bytes().starts_with(b"[") => {
                let choices = self.all(value, Defaults::Drop)?;
                members.put(key, compose::object(&[("anyOf", &compose::array(&choices))]));
            }
            "items" if value.as_bytes() != b"false" => {
                let items = self.schema(value, defaults)?;
                members.put(key, items);
            }
            "anyOf" | "oneOf" => {
                let choices = self.all(value, Defaults::Drop)?;
                members.put("anyOf", compose::array(&choices));
            }
            "allOf" => {
                for part in object::items(value).map_err(odd)?.iter().filter(|part| is_object(part))
                {
                    let part = self.members(part, defaults)?;
                    members.merge(part);
                }
            }
            "$ref" => {
                let target = value.read::<String>().map_err(odd)?;
                let target = self.follow(&target, defaults)?;
                members.merge(target);
            }
            key if KEPT.contains(&key) => self.keep(members, key, value)?,
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, members: &mut Members, key: &str, value: &Json) -> Result<(), Unfit> {
        self.spend(key.len() + value.len())?;
        if key == "required" {
            members.merge(Members(vec![(key.to_owned(), value.clone())]));
        } else {
            // A member beside a reference or an `allOf` overrides the same member within it.
            members.put(key, value.clone());
        }
        Ok(())
    }

    fn all(&mut self, list: &Json, defaults: Defaults) -> Result<Vec<Json>, Unfit> {
        let items = object::items(list).map_err(|_| Unfit::Odd(short(list)))?;
        items.iter().map(|item| self.schema(item, defaults)).collect()
    }

    /// Expands a reference. A recursive one is cut to its type and description.
    fn follow(&mut self, reference: &str, defaults: Defaults) -> Result<Members, Unfit> {
        let nowhere = || Unfit::Reference(short_text(reference));
        let target = lookup(self.document, reference).ok_or_else(nowhere)?;
        if self.open.iter().any(|open| open == reference) || reference == "#" {
            let kind = object::get(&target, "type").filter(is_string);
            let mut cut = Members::default();
            cut.put("type", kind.unwrap_or_else(|| compose::string("object")));
            if let Some(text) = object::get(&target, "description") {
                self.keep(&mut cut, "description", &text)?;
            }
            return Ok(cut);
        }
        if target.as_bytes() == b"true" {
            return Ok(Members::default());
        }
        self.open.push(reference.to_owned());
        let members = self.members(&target, defaults);
        self.open.pop();
        members
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Unfit> {
        self.budget = self.budget.checked_sub(bytes).ok_or(Unfit::TooLarge)?;
        Ok(())
    }
}

/// Writes the type. With several types, `null` becomes `nullable`, and the rest become `anyOf`.
fn types(members: &mut Members, value: &Json) {
    let Ok(several) = object::items(value) else {
        members.put("type", value.clone());
        return;
    };
    let (null, others): (Vec<Json>, Vec<Json>) =
        several.into_iter().partition(|kind| kind.as_str() == r#""null""#);
    match others.as_slice() {
        [only] => members.put("type", only.clone()),
        [] => {}
        several => {
            let choice = |kind: &Json| compose::object(&[("type", kind)]);
            let choices: Vec<Json> = several.iter().map(choice).collect();
            members.put("anyOf", compose::array(&choices));
        }
    }
    if !null.is_empty()
        && let Ok(yes) = Json::from_value(&true)
    {
        members.put("nullable", yes);
    }
}

/// Resolves a reference within the document: `#` and a JSON pointer.
fn lookup(document: &Json, reference: &str) -> Option<Json> {
    let pointer = reference.strip_prefix('#')?;
    let mut parts = pointer.split('/');
    if parts.next() != Some("") {
        return None;
    }
    let mut found = document.clone();
    for part in parts.take(MAX_DEPTH * 2) {
        let key = part.replace("~1", "/").replace("~0", "~");
        found = match object::items(&found) {
            Ok(items) => items.get(key.parse::<usize>().ok()?)?.clone(),
            Err(_) => object::get(&found, &key)?,
        };
    }
    Some(found)
}

/// Merges the members of two objects. If both have a member, the first one wins.
fn joined(one: &Json, other: &Json) -> Json {
    let mut all = object::members(one).unwrap_or_default();
    for (key, value) in object::members(other).unwrap_or_default() {
        if all.iter().all(|(known, _)| *known != key) {
            all.push((key, value));
        }
    }
    Members(all).json()
}

/// Concatenates two lists without duplicates.
fn concatenated(one: &Json, other: &Json) -> Json {
    let mut all = object::items(one).unwrap_or_default();
    for item in object::items(other).unwrap_or_default() {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    compose::array(&all)
}

fn is_object(json: &Json) -> bool {
    json.as_bytes().starts_with(b"{")
}

fn is_string(json: &Json) -> bool {
    json.as_bytes().starts_with(b"\"")
}

fn short(json: &Json) -> String {
    short_text(json.as_str())
}

/// Returns the beginning of a text, for a message.
fn short_text(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
