//! Keeps secrets out of what is shown.

use capstan_model::secret::MASK;
use capstan_policy::redact::redact;
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
                redact(&mut message);
                self.mask_strings(&mut message);
                // Names of members may hold secrets too.
                self.mask(&message.to_string())
            }
            Err(_) => self.mask(&String::from_utf8_lossy(line)),
        }
    }

    /// Masks the strings themselves: in the written text quotes and backslashes are escaped.
    fn mask_strings(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|v| self.mask_strings(v)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_strings(item)),
            Value::String(text) => *text = self.mask(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
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
        let expected = r#"{"params":{"arguments":{"api_key":"***","n":1,"q":"***"}}}"#;
        assert_eq!(masker.mask_message(line), expected);
    }

    #[test]
    fn a_secret_is_masked_however_json_writes_it() {
        let masker = Masker::new(["p\"ss\\wd".to_owned()]);
        let line = br#"{"a":["p\"ss\\wd","x p\u0022ss\\wd"]}"#;
        assert_eq!(masker.mask_message(line), r#"{"a":["***","x ***"]}"#);
    }
}
