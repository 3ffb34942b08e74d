//! Reads refusals: the header `WWW-Authenticate` (RFC 9110, RFC 6750, RFC 9728).

use capstan_http::header::{HeaderMap, WWW_AUTHENTICATE};

/// The longest header that is read, in bytes.
const MAX_HEADER: usize = 8 * 1024;

/// The parts of a `Bearer` challenge that matter for a login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BearerChallenge {
    /// The address of the server's metadata.
    pub(crate) resource_metadata: Option<String>,
    /// The scopes that are needed.
    pub(crate) scopes: Option<Vec<String>>,
    /// The error code.
    pub(crate) error: Option<String>,
}

// === impl BearerChallenge ===

impl BearerChallenge {
    /// Reads the `Bearer` challenge of an answer; `None` if there is none.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut texts = values.filter_map(|value| value.to_str().ok());
        texts.find_map(|text| Self::parse(text.get(..MAX_HEADER).unwrap_or(text)))
    }

    /// True if the server wants more scopes than the token has.
    pub(crate) fn wants_more(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut rest = text;
        while let Some((word, after)) = word(rest) {
            rest = match value(after) {
                Some((value, after)) => {
                    if let Some(challenge) = &mut found {
                        challenge.put(word, value);
                    }
                    after
                }
                // A word without a value is the next scheme.
                None if found.is_some() => break,
                None => {
                    if word.eq_ignore_ascii_case("bearer") {
                        found = Some(Self::default());
                    }
                    after
                }
            };
        }
        found
    }

    fn put(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => self.resource_metadata = Some(value),
            "scope" => {
                self.scopes = Some(value.split_whitespace().map(ToOwned::to_owned).collect());
            }
            "error" => self.error = Some(value),
            _ => {}
        }
    }
}

/// The next word, and the text after it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let end = text.find([' ', '\t', ',', '=']).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end)?;
    // A text that begins with `=` has no word; nothing after it can be understood.
    (!word.is_empty()).then_some((word, rest))
}

/// The value after a word, and the text after it; `None` if the word has none.
fn value(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start().strip_prefix('=')?.trim_start();
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, rest) = text.split_at_checked(end)?;
        return Some((value.to_owned(), rest));
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.extend(chars.next()),
            c => value.push(c),
        }
    }
    Some((value, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(
        metadata: Option<&str>,
        scopes: Option<&[&str]>,
        error: Option<&str>,
    ) -> BearerChallenge {
        let owned = |text: &str| text.to_owned();
        BearerChallenge {
            resource_metadata: metadata.map(owned),
            scopes: scopes.map(|scopes| scopes.iter().map(|scope| owned(scope)).collect()),
            error: error.map(owned),
        }
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let cases = [
            ("Bearer", Some(challenge(None, None, None))),
            ("bearer scope=a", Some(challenge(None, Some(&["a"]), None))),
            (
                r#"Bearer resource_metadata="https://h/x", scope="a b""#,
                Some(challenge(Some("https://h/x"), Some(&["a", "b"]), None)),
            ),
            (
                r#"Basic realm="a, b", Bearer error="insufficient_scope",scope="c" , Digest realm=x"#,
                Some(challenge(None, Some(&["c"]), Some("insufficient_scope"))),
            ),
            (
                r#"Bearer realm="say \"scope=x\"", scope = "y""#,
                Some(challenge(None, Some(&["y"]), None)),
            ),
            (r#"Bearer scope="unclosed"#, Some(challenge(None, Some(&["unclosed"]), None))),
            (r#"Bearer scope="""#, Some(challenge(None, Some(&[]), None))),
            ("Basic realm=\"x\"", None),
            ("Negotiate", None),
            ("", None),
            ("= , =", None),
        ];
        for (text, expected) in cases {
            assert_eq!(BearerChallenge::parse(text), expected, "{text}");
        }
    }
}
