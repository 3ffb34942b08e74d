//! What the beginning of a message tells that is too long to be kept.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

/// What is known of a message by its beginning.
#[derive(Default)]
struct Beginning {
    id: Option<u64>,
    has_result: bool,
    has_method: bool,
}

/// The request that the message with this beginning is the reply to. Where the id comes behind what
/// is too long, or in a batch, nobody can tell.
///
/// A question of the server has an id as well, which says nothing of our requests.
pub(crate) fn replied(beginning: &[u8]) -> Option<u64> {
    let mut found = Beginning::default();
    // It ends in the middle of something, which is an error.
    drop(serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut found));
    found.id.filter(|_| found.has_result && !found.has_method)
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
            // Only now, for a number at the very end may go on.
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
            assert_eq!(replied(beginning.as_bytes()), expected, "{beginning}");
        }
    }
}
