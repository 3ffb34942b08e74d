//! Finds the request id in the two ends of a message that is too long to be kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

/// The members found at the beginning of a message.
#[derive(Default)]
struct Beginning {
    id: Option<u64>,
    has_result: bool,
    has_method: bool,
}

/// The id of the request that the message with these ends replies to. `None` if the id is in the
/// middle, or in a batch.
///
/// A request of the server has an id as well, which is not an id of our requests.
pub(crate) fn replied(beginning: &[u8], end: &[u8]) -> Option<u64> {
    let mut found = Beginning::default();
    // The beginning is cut off, so parsing ends with an error.
    drop(serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut found));
    if !found.has_result || found.has_method {
        return None;
    }
    found.id.or_else(|| last_id(end))
}

/// The id at the end of a message, where many servers put it. A member directly before the last
/// bracket belongs to the message itself, not to a nested object.
fn last_id(end: &[u8]) -> Option<u64> {
    let end = String::from_utf8_lossy(end);
    let mut members = end.trim_end().strip_suffix('}')?.trim_end();
    if let Some((before, version)) = members.rsplit_once("\"jsonrpc\"")
        && version.trim_start().strip_prefix(':').is_some_and(|version| version.trim() == "\"2.0\"")
    {
        members = before.trim_end().strip_suffix(',')?.trim_end();
    }
    let (before, id) = members.rsplit_once(':')?;
    let before = before.trim_end().strip_suffix("\"id\"")?;
    id.trim().parse().ok().filter(|_| before.trim_end().ends_with(','))
}

// === impl Beginning ===

impl<'de> Visitor<'de> for &mut Beginning {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut id = None;
        loop {
            let name = members.next_key::<Cow<'_, str>>()?;
            // Set only after the next key: a number at the very end may be cut off.
            self.id = self.id.or(id);
            match name.as_deref() {
                Some("id") => id = Some(members.next_value()?),
                Some(name) => {
                    self.has_result |= matches!(name, "result" | "error");
                    self.has_method |= name == "method";
                    members.next_value::<IgnoredAny>()?;
                }
                None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_is_told_by_the_id_of_the_envelope_and_by_nothing_else() {
        for (beginning, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, Some(7)),
            (r#" {"id" : 7, "jsonrpc":"2.0","error":{"code":1,"message":"xx"#, Some(7)),
            (r#"{"jsonrpc":"2.0","result":{},"id":7}        "#, Some(7)),
            (r#"{"jsonrpc":"2.0","result":{},"id":7,"x":"xx"#, Some(7)),
            (r#"{"jsonrpc":"2.0","result":{},"id":7"#, None),
            (r#"{"jsonrpc":"2.0","result":{"id":7,"text":"xx"#, None),
            (r#"{"jsonrpc":"2.0","result":{"id":7},"x":{"id":8,"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"result":{"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"params":{"result":{"x"#, None),
            (r#"{"jsonrpc":"2.0","id":"7","result":{"#, None),
            (r#"{"jsonrpc":"2.0","id":-7,"result":{"#, None),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"#, None),
            (r#"[{"jsonrpc":"2.0","id":7,"result":{"#, None),
            ("xxxxxxxx", None),
            ("", None),
        ] {
            assert_eq!(replied(beginning.as_bytes(), b""), expected, "{beginning}");
        }
    }

    #[test]
    fn an_id_that_comes_last_is_found_too() {
        let begin = br#"{"result":{"content":[{"te"#;
        for (end, expected) in [
            (r#"xx"}]},"jsonrpc":"2.0","id":7}"#, Some(7)),
            (r#"xx"}]}, "id" : 7 , "jsonrpc" : "2.0" } "#, Some(7)),
            (r#"xx"}]},"id":7}"#, Some(7)),
            (r#"xx"}]},"jsonrpc":"2.0","id":"7"}"#, None),
            (r#"xx"}]},"jsonrpc":"2.0"}"#, None),
            (r#"xx","id":7}}"#, None),
            (r#"xx","id":7},"jsonrpc":"2.0"}"#, None),
            (r#"xx,\"id\":7"}]}"#, None),
            (r#"xx":1,"other_id":7}"#, None),
            (r#"xx"}]},"id":7"#, None),
            ("", None),
        ] {
            assert_eq!(replied(begin, end.as_bytes()), expected, "{end}");
        }
        let end = br#"xx"},"jsonrpc":"2.0","id":7}"#;
        assert_eq!(replied(br#"{"method":"sampling/createMessage","params":{"x":"#, end), None);
        assert_eq!(replied(br#"{"params":{"x":"#, end), None);
        assert_eq!(replied(br#"{"id":8,"result":{"x":"#, end), Some(8));
    }
}
