//! Puts JSON on one line, where a line is a message.
//!
//! Between the values of JSON a line may end anywhere. Where messages are told apart by their lines,
//! somebody who can choose where it does could put a message of his own on a line of its own, and
//! nobody would have looked at it. So whatever is written as a line passes through here.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// The same JSON on one line: where a line may end in JSON, a space is as good.
pub fn one_line(json: Bytes) -> Bytes {
    if memchr2(b'\n', b'\r', &json).is_none() {
        return json;
    }
    let mut json = BytesMut::from(json);
    flatten(&mut json);
    json.freeze()
}

/// Puts JSON on one line where it stands.
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
