//! Puts JSON on one line, for transports in which a line is a message.
//!
//! JSON allows line breaks between values. If messages are separated by lines, a sender who can
//! choose the line breaks could put a message of their own on a separate line, where it would
//! bypass every check. So everything that is written as a line passes through here.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// Returns the JSON on one line. Line breaks in JSON are only white space, so they become spaces.
pub fn one_line(json: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &json).is_none() {
        return json;
    }
    let mut json = BytesMut::from(json);
    flatten(&mut json);
    json.freeze()
}

/// Puts JSON on one line in place.
pub fn flatten(json: &mut [u8]) {
    let Some(first) = memchr2(b'\n', b'\r', json) else { return };
    for byte in json.iter_mut().skip(first) {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_several_lines_is_the_same_on_one() {
        for (before, after) in [
            ("{\"a\":\r\n[1,\n2]}", "{\"a\":  [1, 2]}"),
            ("\n\n{}\n", "  {} "),
            (r#"{"a":"\n"}"#, r#"{"a":"\n"}"#),
            ("", ""),
        ] {
            assert_eq!(one_line(Bytes::from_static(before.as_bytes())), after);
        }
    }
}
