//! Masks known secrets.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use capstan_model::Secret;
use capstan_model::secret::{MASK, is_secret_name};
use serde_json::Value;

use crate::clean::visible;
use crate::mask::json::mask_json;
use crate::mask::ordinary::is_ordinary;

/// Shorter values are not masked: they would mask parts of ordinary words.
const MIN_SECRET: usize = 4;

/// Shorter values are masked only if their names indicate a secret.
const MIN_UNNAMED: usize = 8;

/// Values that are never secrets.
const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "null", "none"];

/// Secrets that a masker learns at most; the oldest are forgotten.
const MAX_LEARNED: usize = 64;

/// Masks the secrets of one server.
#[derive(Default)]
pub struct Masker {
    secrets: Vec<String>,
    /// Secrets that became known at run time, such as the tokens of a login.
    learned: Mutex<VecDeque<String>>,
    has_learned: AtomicBool,
}

// === impl Masker ===

impl Masker {
    /// Creates a masker for the secrets of a program with this environment.
    pub fn beside(
        secrets: impl IntoIterator<Item = String>,
        environment: &BTreeMap<String, Secret<String>>,
    ) -> Self {
        Self::new(secrets.into_iter().filter(|value| !is_harmless(value, environment)))
    }

    /// Creates a masker for these values, except those that are too short to be told from words.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET).collect();
        // Longest first, so that a secret that contains another is masked completely.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets, ..Self::default() }
    }

    /// Also masks a secret that became known at run time.
    pub fn learn(&self, secret: &str) {
        if secret.len() < MIN_SECRET {
            return;
        }
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        if learned.iter().any(|known| known == secret) {
            return;
        }
        if learned.len() == MAX_LEARNED {
            learned.pop_front();
        }
        learned.push_back(secret.to_owned());
        drop(learned);
        self.has_learned.store(true, Ordering::Release);
    }

    /// Masks the secrets in `text`.
    pub fn mask(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MASK);
            }
        }
        if self.has_learned.load(Ordering::Acquire) {
            let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            for secret in learned
                .iter()
                .filter(|secret| text.contains(secret.as_str()))
                .cloned()
                .collect::<Vec<_>>()
            {
                text = text.replace(&secret, MASK);
            }
        }
        text
    }

    /// Masks a protocol message for the debug log.
    ///
    /// It masks known values, and the values of names such as `password`.
    pub fn mask_message(&self, line: &[u8]) -> String {
        match serde_json::from_slice::<Value>(line) {
            Ok(mut message) => {
                mask_json(&mut message);
                self.mask_strings(&mut message);
                // Names of members may contain secrets too.
                visible(&self.mask(&message.to_string()))
            }
            Err(_) => visible(&self.mask(&String::from_utf8_lossy(line))),
        }
    }

    /// Masks the strings themselves: in serialized text, quotes and backslashes are escaped.
    fn mask_strings(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|v| self.mask_strings(v)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_strings(item)),
            Value::String(text) => *text = self.mask(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Masker").finish_non_exhaustive()
    }
}

/// True if a value of the server's environment is not a secret.
///
/// For example, `DEBUG=true` must not mask every `true`.
fn is_harmless(value: &str, environment: &BTreeMap<String, Secret<String>>) -> bool {
    if WORDS.iter().any(|word| word.eq_ignore_ascii_case(value)) {
        return true;
    }
    let names = || environment.iter().filter(|(_, of)| of.reveal() == value).map(|(name, _)| name);
    // A value without a name came from elsewhere and counts as a secret.
    let is_named = names().next().is_some();
    if is_named && names().all(|name| is_ordinary(name, value)) {
        return true;
    }
    let named_harmless = is_named && !names().any(|name| is_secret_name(name));
    named_harmless && (value.len() < MIN_UNNAMED || value.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_masked(variables: &[(&str, &str)], value: &str) -> bool {
        let variable =
            |(name, value): &(&str, &str)| ((*name).to_owned(), Secret::new((*value).to_owned()));
        !is_harmless(value, &variables.iter().map(variable).collect())
    }

    #[test]
    fn usual_words_numbers_and_short_settings_are_no_secrets() {
        for value in ["true", "False", "YES", "off", "null", "3000", "12345678.5", "en_US"] {
            assert!(!is_masked(&[("SETTING", value)], value), "{value}");
        }
        assert!(!is_masked(&[("API_KEY", "true")], "true"));
        let folder = "/srv/data/documents";
        assert!(!is_masked(&[("DATA_DIR", folder)], folder));
        assert!(!is_masked(&[("PWD", folder), ("DATA_DIR", folder)], folder));
    }

    #[test]
    fn what_is_long_or_has_a_telling_name_or_none_is_masked() {
        for (name, value) in [
            ("API_KEY", "12345678"),
            ("DB_PASSWORD", "hunter2"),
            ("SETTING", "production"),
            ("SETTING", "sk-live-0123456789"),
        ] {
            assert!(is_masked(&[(name, value)], value), "{name}={value}");
        }
        assert!(is_masked(&[], "hunter2"), "an argument, perhaps");
        assert!(is_masked(&[("DATA_DIR", "/a/b"), ("DB_PASSWORD", "/a/b")], "/a/b"));
        assert!(is_masked(&[("API_KEY", "/a/b")], "/a/b"));
        let both = [("SETTING", "hunter2"), ("DB_PASSWORD", "hunter2")];
        assert!(is_masked(&both, "hunter2"));
    }

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
