//! Masks secrets in JSON before it is stored or shown.

use std::borrow::Cow;

use capstan_model::secret::{MASK, is_secret_name};
use serde_json::Value;

use crate::mask::text::mask_prose;

/// Masks the values of members whose names indicate a secret, and strings that look like one.
///
/// Members are masked at any depth, lists and objects as a whole. In all other strings, the parts
/// that look like a secret are masked.
///
/// True, false and null reveal nothing and stay.
pub fn mask_json(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let tells = !member.is_null() && !member.is_boolean();
                if tells && is_secret_name(name) {
                    *member = Value::from(MASK);
                } else {
                    mask_json(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_json),
        Value::String(text) => {
            if let Cow::Owned(shown) = mask_prose(text) {
                *text = shown;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(mut value: Value, expected: &Value) {
        mask_json(&mut value);
        assert_eq!(&value, expected);
    }

    #[test]
    fn texts_under_telling_names_are_masked_at_any_depth() {
        check(
            json!({"a": [{"api_key": "x", "n": 1}], "password": "y", "max_tokens": 5}),
            &json!({"a": [{"api_key": "***", "n": 1}], "password": "***", "max_tokens": 5}),
        );
    }

    #[test]
    fn whatever_stands_under_a_telling_name_is_masked_whole() {
        for hidden in [
            json!(["a", "b"]),
            json!({"value": "x", "n": 1}),
            json!([{"deep": ["x"]}]),
            json!(1234),
            json!([]),
        ] {
            check(json!({"in": {"passwords": hidden}}), &json!({"in": {"passwords": "***"}}));
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_masked_under_any_name() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3\n-----END OPENSSH PRIVATE KEY-----";
        check(
            json!({"q": ["use ghp_0123456789abcdef now"], "url": "https://u:p@h/", "file": key}),
            &json!({"q": ["use *** now"], "url": "https://***@h/", "file": "***"}),
        );
    }

    #[test]
    fn what_tells_nothing_stays() {
        let plain = json!({"private": true, "token": null, "author": ["x"], "inputTokens": [1, 2]});
        check(plain.clone(), &plain);
    }
}
