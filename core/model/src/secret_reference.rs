//! References to secrets in the strings of a configuration: `keyring:NAME` and `command:PROGRAM …`.
//!
//! A reference is the whole string, or a part of it in braces: `Bearer ${keyring:NAME}`.

use std::fmt;

/// Longest name of a secret.
const MAX_NAME: usize = 128;

/// The words that references start with.
const KEYRING: &str = "keyring:";
const COMMAND: &str = "command:";

/// A reference to a secret. It is not secret itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretReference {
    /// A secret that was stored with `capstan secret set`.
    Keyring(SecretName),
    /// The output of a program, given as its command line.
    Command(String),
}

/// The name of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretName(String);

/// A name that no secret can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the name of a secret; use up to {MAX_NAME} letters, digits and the characters \
     `-`, `_`, `.`, `/`"
)]
pub struct BadSecretName(pub String);

/// A part of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// A reference, which its secret replaces.
    Reference(SecretReference),
}

// === impl SecretName ===

impl SecretName {
    /// Checks a name.
    ///
    /// # Errors
    /// If no secret can have it.
    pub fn parse(name: &str) -> Result<Self, BadSecretName> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(fits) {
            return Err(BadSecretName(name.chars().take(MAX_NAME).collect()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl SecretReference ===

impl SecretReference {
    /// Splits a string into text and references.
    ///
    /// # Errors
    /// If a reference has a name that no secret can have.
    pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, BadSecretName> {
        if let Some(reference) = Self::parse(text)? {
            return Ok(vec![Piece::Reference(reference)]);
        }
        let (mut pieces, mut plain, mut from) = (Vec::new(), 0, 0);
        while let Some(at) = text.get(from..).and_then(|rest| rest.find("${")) {
            let (start, inside) = (from + at, from + at + "${".len());
            let end = text.get(inside..).and_then(|rest| rest.find('}')).map(|at| inside + at);
            let Some(end) = end else { break };
            let inner = text.get(inside..end).unwrap_or_default();
            from = inside;
            if let Some(reference) = Self::parse(inner)? {
                pieces.push(Piece::Text(text.get(plain..start).unwrap_or_default()));
                pieces.push(Piece::Reference(reference));
                (plain, from) = (end + 1, end + 1);
            }
        }
        pieces.push(Piece::Text(text.get(plain..).unwrap_or_default()));
        pieces.retain(|piece| *piece != Piece::Text(""));
        Ok(pieces)
    }

    /// The references of a string; none if it is malformed.
    pub fn all(text: &str) -> Vec<Self> {
        let pieces = Self::pieces(text).unwrap_or_default();
        let reference = |piece| match piece {
            Piece::Reference(reference) => Some(reference),
            Piece::Text(_) => None,
        };
        pieces.into_iter().filter_map(reference).collect()
    }

    fn parse(text: &str) -> Result<Option<Self>, BadSecretName> {
        if let Some(name) = text.strip_prefix(KEYRING) {
            return Ok(Some(Self::Keyring(SecretName::parse(name)?)));
        }
        Ok(text.strip_prefix(COMMAND).map(|line| Self::Command(line.trim().to_owned())))
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyring(name) => write!(f, "{KEYRING}{name}"),
            Self::Command(line) => write!(f, "{COMMAND}{line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyring(name: &str) -> Piece<'static> {
        Piece::Reference(SecretReference::Keyring(SecretName::parse(name).unwrap()))
    }

    #[test]
    fn a_reference_is_the_whole_string_or_stands_in_braces() {
        let command = Piece::Reference(SecretReference::Command("op read x".to_owned()));
        for (text, expected) in [
            ("", vec![]),
            ("plain", vec![Piece::Text("plain")]),
            ("keyring:a/b.c-d_1", vec![keyring("a/b.c-d_1")]),
            ("command: op read x", vec![command.clone()]),
            ("Bearer ${keyring:a}", vec![Piece::Text("Bearer "), keyring("a")]),
            ("${keyring:a}:${keyring:b}", vec![keyring("a"), Piece::Text(":"), keyring("b")]),
            ("x${command:op read x}y", vec![Piece::Text("x"), command, Piece::Text("y")]),
            ("${HOME}/${keyring:a}", vec![Piece::Text("${HOME}/"), keyring("a")]),
            ("${A:-${keyring:a}}", vec![Piece::Text("${A:-"), keyring("a"), Piece::Text("}")]),
            ("a keyring:b", vec![Piece::Text("a keyring:b")]),
            ("${keyring:a", vec![Piece::Text("${keyring:a")]),
            ("ü${ü}", vec![Piece::Text("ü${ü}")]),
        ] {
            assert_eq!(SecretReference::pieces(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_name_that_no_secret_can_have_is_refused() {
        for text in ["keyring:", "keyring:a b", "x${keyring:}", "${keyring:a$b}", "keyring://a?b"] {
            assert!(SecretReference::pieces(text).is_err(), "{text}");
        }
        assert!(SecretName::parse(&"n".repeat(MAX_NAME + 1)).is_err());
    }
}
