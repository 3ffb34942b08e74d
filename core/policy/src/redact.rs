//! Takes what looks like a secret out of JSON that is going to be written down or shown.

use capstan_model::secret::{MASK, is_secret_name};
use serde_json::Value;

/// Replaces every text that stands under a telling name, at any depth.
pub fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if member.is_string() && is_secret_name(name) {
                    *member = Value::from(MASK);
                } else {
                    redact(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_under_telling_names_are_masked_at_any_depth() {
        let mut value = json!({"a": [{"api_key": "x", "n": 1}], "password": "y", "max_tokens": 5});
        redact(&mut value);
        let expected =
            json!({"a": [{"api_key": "***", "n": 1}], "password": "***", "max_tokens": 5});
        assert_eq!(value, expected);
    }
}
