//! Keeps secrets out of what is shown.

use capstan_model::secret::{MASK, is_secret_name};
use serde_json::Value;

/// Shorter values are not masked: they would turn every second word into stars.
const MIN_SECRET: usize = 4;

/// Knows the secrets of one server.
#[derive(Debug, Default)]
pub(crate) struct Masker(Vec<String>);

// === impl Masker ===

impl Masker {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET).collect();
        // Longest first, so that a secret which contains another is masked whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// `text` without the secrets.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        text
    }

    /// A protocol message without the secrets, for the debug log: known values, and whatever
    /// stands under a name such as `password`.
    pub(crate) fn mask_message(&self, line: &[u8]) -> String {
        match serde_json::from_slice::<Value>(line) {
            Ok(mut message) => {
                mask_members(&mut message);
                self.mask(&message.to_string())
            }
            Err(_) => self.mask(&String::from_utf8_lossy(line)),
        }
    }
}

fn mask_members(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if member.is_string() && is_secret_name(name) {
                    *member = Value::from(MASK);
                } else {
                    mask_members(member);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_and_telling_names_are_masked() {
        let masker = Masker::new(["s3cr3t".to_owned(), "s3cr3t-long".to_owned(), "a".to_owned()]);
        assert_eq!(masker.mask("x s3cr3t-long y s3cr3t a"), "x *** y *** a");
        let line = br#"{"params":{"arguments":{"api_key":"zzz","n":1,"q":"s3cr3t"}}}"#;
        let masked = r#"{"params":{"arguments":{"api_key":"***","n":1,"q":"***"}}}"#;
        assert_eq!(masker.mask_message(line), masked);
    }
}
