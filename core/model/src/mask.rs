//! What of a text may be shown.
//!
//! Better one harmless value hidden than one secret shown: whatever looks like a secret is one.

use std::borrow::Cow;

use crate::secret::{MASK, is_secret_name, is_token_of_a_service, looks_like_token};

/// How a private key in text begins and ends, without the kind of key between the words.
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const KEY_MARK: &str = "PRIVATE KEY-----";

/// Words that stand before what is to be hidden, where a header is quoted.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// What a word is hidden by.
type IsToken = fn(&str) -> bool;

/// A word of a command line as it may be shown.
pub fn mask_argument(argument: &str) -> String {
    argument_by(argument, looks_like_token)
}

/// A URL as it may be shown: without password, and without secrets in its path and query.
pub fn mask_url(url: &str) -> String {
    url_by(url, looks_like_token)
}

/// What somebody wrote, as it may be kept and shown: without the tokens of well-known services,
/// private keys, passwords in addresses, and what is given to a name that tells of a secret.
///
/// Long numbers and names stay: who decides on a call must see which commit it is about.
pub fn mask_prose(text: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, key)) = rest.split_once(KEY_BEGINS) {
        words_into(&mut shown, before);
        let (kind, inside) = key.split_once(KEY_MARK).unwrap_or((key, ""));
        if kind.contains('\n') || !key.contains(KEY_MARK) {
            shown.push_str(KEY_BEGINS);
            rest = key;
            continue;
        }
        shown.push_str(MASK);
        // One that does not end is hidden to the end.
        let end = inside.split_once(KEY_ENDS).and_then(|(_, end)| end.split_once(KEY_MARK));
        rest = end.map_or("", |(_, rest)| rest);
    }
    words_into(&mut shown, rest);
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// Adds the words of a text, each as it may be shown.
fn words_into(shown: &mut String, text: &str) {
    let parts = |c: char| c.is_whitespace() || "\"'`,;()<>[]{}|".contains(c);
    let mut after_scheme = false;
    // Whether the last word was a name that tells of a secret, and whether its value comes now.
    let (mut is_name, mut is_value) = (false, false);
    for part in text.split_inclusive(parts) {
        let (word, end) = match part.char_indices().next_back() {
            Some((at, last)) if parts(last) => part.split_at_checked(at).unwrap_or((part, "")),
            Some(_) | None => (part, ""),
        };
        if word.is_empty() {
            shown.push_str(end);
            continue;
        }
        let name = word.trim_end_matches([':', '=']);
        let is_scheme = SCHEMES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme));
        if after_scheme || (is_value && !name.is_empty() && !is_scheme) {
            shown.push_str(MASK);
        } else {
            shown.push_str(&argument_by(word, is_token_of_a_service));
        }
        shown.push_str(end);
        let last = word.rsplit(['=', ':']).next().unwrap_or_default();
        after_scheme =
            end == " " && (last.eq_ignore_ascii_case("bearer") || (is_value && is_scheme));
        let tells = !is_value && is_secret_name(name);
        is_value = if name.is_empty() { is_name } else { tells && name != word };
        is_name = tells && name == word;
    }
}

fn argument_by(argument: &str, is_token: IsToken) -> String {
    if argument.contains("://") {
        return url_by(argument, is_token);
    }
    for separator in ['=', ':'] {
        if let Some((name, value)) = argument.split_once(separator)
            && !value.is_empty()
            && !name.contains(['/', '\\'])
        {
            let space = if value.starts_with(' ') { " " } else { "" };
            if is_secret_name(name) {
                return format!("{name}{separator}{space}{MASK}");
            }
            return format!("{name}{separator}{}", argument_by(value, is_token));
        }
    }
    if is_token(argument) { MASK.to_owned() } else { argument.to_owned() }
}

fn url_by(url: &str, is_token: IsToken) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return argument_by(url, is_token) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}"),
        None => authority.to_owned(),
    };
    let mut shown = format!("{scheme}://{host}");
    for part in path.split_inclusive(['/', '?', '&', '#']) {
        let (part, separator) = match part.char_indices().next_back() {
            Some((at, '/' | '?' | '&' | '#')) => part.split_at_checked(at).unwrap_or((part, "")),
            Some(_) | None => (part, ""),
        };
        match part.split_once('=') {
            Some((name, _)) if is_secret_name(name) => {
                shown.push_str(name);
                shown.push('=');
                shown.push_str(MASK);
            }
            Some((_, value)) if is_token(value) => shown.push_str(MASK),
            None if is_token(part) => shown.push_str(MASK),
            Some(_) | None => shown.push_str(part),
        }
        shown.push_str(separator);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_taken_out_of_a_text() {
        for (text, shown) in [
            ("use sk-proj-0123456789ab, please", "use ***, please"),
            ("ghp_0123456789abcdef", "***"),
            ("github_pat_0123456789", "***"),
            ("id AKIAIOSFODNN7EXAMPLE!", "id ***"),
            ("xoxe-0123456789-abc xoxb-012345678901", "*** ***"),
            ("Authorization: Bearer abc", "Authorization: Bearer ***"),
            ("Authorization: Basic abc", "Authorization: Basic ***"),
            ("-H 'authorization:Bearer abc'", "-H 'authorization:*** ***'"),
            ("eyJhbGciOi.eyJzdWIiOi.c2ln", "***"),
            ("see https://me:pw@host/x.", "see https://***@host/x."),
            ("postgres://u:p@h/db?sslmode=on", "postgres://***@h/db?sslmode=on"),
            ("PASSWORD=hunter2 make", "PASSWORD=*** make"),
            (r#"{"token":"x"} {"a": "ghp_0123456789abcdef"}"#, r#"{"token":"***"} {"a": "***"}"#),
            ("password: hunter2 and more", "password: *** and more"),
            (r#"{"password": "hunter2", "b": "c"}"#, r#"{"password": "***", "b": "c"}"#),
            ("api_key = abc123abc;", "api_key = ***;"),
            ("a secret: 'abc' is out", "a secret: '***' is out"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb",
                "a\n***\nb",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII", "***"),
        ] {
            assert_eq!(mask_prose(text), shown);
        }
    }

    #[test]
    fn what_only_looks_odd_stays() {
        for text in [
            "",
            "a plain  sentence,\twith: marks; and (brackets)\n",
            "3f786850e387550fdab836ed7e6dc881de23001b",
            "c9bf9e57-1685-4c89-bafb-ff5af830be8a",
            "https://github.com/a/b/commit/3f786850e387550fdab836ed7e6dc881de23001b",
            "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            "the bearers of news",
            "sk-1",
        ] {
            assert_eq!(mask_prose(text), text);
        }
    }
}
