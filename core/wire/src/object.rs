//! Looks into an object, or replaces a member of it, without touching the rest.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{BadJson, Json, compose};

/// The members of an object, in order, each value as it was written.
///
/// # Errors
/// When `json` is not an object.
pub fn members(json: &Json) -> Result<Vec<(String, Json)>, BadJson> {
    let raw: Members<'_> = serde_json::from_slice(json.as_bytes())?;
    let own = |(key, value): (Cow<'_, str>, &RawValue)| {
        (key.into_owned(), Json::piece(json.bytes(), value))
    };
    Ok(raw.0.into_iter().map(own).collect())
}

/// The first member called `key`, as it was written; `None` also when `json` is no object.
pub fn get(json: &Json, key: &str) -> Option<Json> {
    let raw: Members<'_> = serde_json::from_slice(json.as_bytes()).ok()?;
    let (_, value) = raw.0.into_iter().find(|(name, _)| name == key)?;
    Some(Json::piece(json.bytes(), value))
}

/// The first members of these names, as they were written, in one pass; none when `json` is no
/// object.
pub fn peek<const N: usize>(json: &Json, keys: [&str; N]) -> [Option<Json>; N] {
    let mut found = [const { None }; N];
    let Ok(raw) = serde_json::from_slice::<Members<'_>>(json.as_bytes()) else { return found };
    for (name, value) in raw.0 {
        let place = keys.iter().zip(&mut found).find(|(key, _)| **key == name);
        if let Some((_, place @ None)) = place {
            *place = Some(Json::piece(json.bytes(), value));
        }
    }
    found
}

/// The member called `key`, when it is a string.
pub fn get_string(json: &Json, key: &str) -> Option<String> {
    get(json, key)?.read().ok()
}

/// What stands at a dotted path such as `issue.repo`, when one reading is as good as another.
///
/// Whoever judges by it takes [`all_at_path`].
pub fn at_path(json: &Json, path: &str) -> Option<Json> {
    all_at_path(json, path).ok()?.into_iter().next()
}

/// Everything that a dotted path such as `issue.repo` can mean, in the order it was written.
///
/// The dots may lead into an object or belong to the name of a member. Both are readings, because
/// a sender who can choose which one is looked at can hide the other behind it.
///
/// # Errors
/// When `json`, or an object on the way, is not an object whose names can all be read.
pub fn all_at_path(json: &Json, path: &str) -> Result<Vec<Json>, BadJson> {
    let mut found = Vec::new();
    for (name, value) in members(json)? {
        if name == path {
            found.push(value);
        } else if let Some(rest) = path.strip_prefix(&name).and_then(|rest| rest.strip_prefix('.'))
            && value.as_bytes().starts_with(b"{")
        {
            found.extend(all_at_path(&value, rest)?);
        }
    }
    Ok(found)
}

/// The items of a list, each as it was written.
///
/// # Errors
/// When `json` is not a list.
pub fn items(json: &Json) -> Result<Vec<Json>, BadJson> {
    let raw: Vec<&RawValue> = serde_json::from_slice(json.as_bytes())?;
    Ok(raw.into_iter().map(|value| Json::piece(json.bytes(), value)).collect())
}

/// `json` with the member `key` set to `value`: in its place where it stands, else at the end.
///
/// # Errors
/// When `json` is not an object.
pub fn with_member(json: &Json, key: &str, value: &Json) -> Result<Json, BadJson> {
    let mut members = members(json)?;
    match members.iter_mut().find(|(name, _)| name == key) {
        Some((_, old)) => *old = value.clone(),
        None => members.push((key.to_owned(), value.clone())),
    }
    let borrowed: Vec<(&str, &Json)> = members.iter().map(|(k, v)| (k.as_str(), v)).collect();
    Ok(compose::object(&borrowed))
}

/// `json` without the member `key`.
///
/// # Errors
/// When `json` is not an object.
pub fn without_member(json: &Json, key: &str) -> Result<Json, BadJson> {
    let members = members(json)?;
    let kept = members.iter().filter(|(name, _)| name != key);
    let kept: Vec<(&str, &Json)> = kept.map(|(k, v)| (k.as_str(), v)).collect();
    Ok(compose::object(&kept))
}

/// The members of an object in the order they were written.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((key, value)) = map.next_entry::<Key<'de>, &RawValue>()? {
                    members.push((key.0, value));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}

/// A member's name, borrowed unless it has escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(Key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn replacing_a_member_leaves_every_other_byte_of_the_values() {
        let before = json(r#"{"z": 1.000, "name":"a", "u":{"x": [1 ,2]}}"#);
        let after = with_member(&before, "name", &compose::string("b")).unwrap();
        assert_eq!(after.as_str(), r#"{"z":1.000,"name":"b","u":{"x": [1 ,2]}}"#);
    }

    #[test]
    fn a_member_that_is_not_there_is_added_at_the_end() {
        let after = with_member(&json(r#"{"a":1}"#), "b", &json("2")).unwrap();
        assert_eq!(after.as_str(), r#"{"a":1,"b":2}"#);
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
