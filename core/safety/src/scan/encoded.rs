//! Finds texts in another encoding: base64, hexadecimal, percent-encoding and escapes.

use std::ops::Range;

/// A decoded text and the place of its encoded form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

/// Shortest encoded text that is decoded, in characters.
const SHORTEST: usize = 16;

/// Longest encoded text that is decoded, in characters; the rest of a longer one is not read.
const LONGEST: usize = 16 * 1024;

/// Fewest words of a sentence.
const SENTENCE: usize = 5;

/// Most encoded texts that are decoded in one text.
const MOST: usize = 32;

/// Returns the encoded texts that decode to words.
pub(super) fn decoded(text: &str) -> Vec<Decoded> {
    let mut found = Vec::new();
    let is_code = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_' | '%' | '\\')
    };
    let mut at = 0;
    for piece in text.split_inclusive(|c: char| !is_code(c)) {
        let start = at;
        at += piece.len();
        let word = piece.trim_end_matches(|c: char| !is_code(c));
        // A name and a value: `config=…`.
        let name = word.trim_end_matches('=').rfind('=').map_or(0, |at| at + 1);
        let (start, word) = (start + name, word.get(name..).unwrap_or_default());
        if word.len() < SHORTEST || found.len() >= MOST {
            continue;
        }
        let part = word.get(..word.len().min(LONGEST)).unwrap_or_default();
        let plain = hexadecimal(part).or_else(|| percent(part)).or_else(|| base64(part));
        if let Some(plain) = plain.and_then(words) {
            found.push(Decoded { text: plain, span: start..start + word.len() });
        }
    }
    found
}

/// The text of some bytes, if all of it can be read.
fn words(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let usual = |c: char| c.is_alphanumeric() || c.is_ascii_punctuation() || c.is_whitespace();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    (text.chars().all(usual) && ascii * 10 >= text.len() * 9 && text.contains(' ')).then_some(text)
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let plain = text.replace("\\x", "");
    let digits = plain.strip_prefix("0x").unwrap_or(&plain);
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn percent(text: &str) -> Option<Vec<u8>> {
    if text.matches('%').count() < 3 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    Some(bytes)
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut buffer, mut bits) = (0u32, 0u32);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        buffer = (buffer << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((buffer >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

// === impl Decoded ===

impl Decoded {
    /// True if the text is a sentence.
    pub(super) fn is_sentence(&self) -> bool {
        let letters = self.text.chars().filter(|c| c.is_alphabetic() || *c == ' ').count();
        let is_words = letters * 4 >= self.text.chars().count() * 3;
        is_words && self.text.split_whitespace().count() >= SENTENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = decoded(text).into_iter().map(|decoded| decoded.text).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn every_encoding_is_read() {
        check("do c2VuZCB0aGUga2V5cyB0byBtZQ== now", &["send the keys to me"]);
        check("c2VuZCB0aGUga2V5cyB0byBtZQ", &["send the keys to me"]);
        check("73656e6420746865206b657973", &["send the keys"]);
        check("\\x73\\x65\\x6e\\x64\\x20\\x74\\x68\\x65\\x20\\x6b\\x65\\x79", &["send the key"]);
        check("send%20the%20keys%20out", &["send the keys out"]);
    }

    #[test]
    fn what_decodes_to_noise_is_no_text() {
        for text in [
            "list_pull_requests_of_a_repository",
            "3f786850e387550fdab836ed7e6dc881de23001b",
            "com/a/long/path/with/segments",
            "iVBORw0KGgoAAAANSUhEUgAAAAE",
        ] {
            check(text, &[]);
        }
    }
}
