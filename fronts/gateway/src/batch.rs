//! What a client sends, taken apart: one message, or several at once, which 2025-03-26 has and no other
//! revision.

use bytes::Bytes;
use capstan_wire::{EnvelopeError, Json, Message, RequestId, object};

use crate::{Answer, Revision};

/// Most messages of a batch.
const MAX: usize = 256;

/// JSON-RPC: not JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: JSON, and no message.
pub(crate) const INVALID_REQUEST: i64 = -32600;

/// Whether this is a list and not a message.
pub(crate) fn is_batch(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// The one message, or the messages of a batch, each with the answer when it is none.
pub(crate) fn messages(
    text: &Bytes,
    revision: Option<Revision>,
) -> Result<Vec<Result<Message, Answer>>, Answer> {
    if !is_batch(text) {
        return one(text).map(|message| vec![Ok(message)]);
    }
    let list = Json::parse(text.clone());
    let items = list.and_then(|list| object::items(&list));
    let items = items.map_err(|_| Answer::error(None, PARSE_ERROR, "not valid JSON"))?;
    if !revision.is_some_and(Revision::has_batches) {
        let words = "a list of messages is only taken from clients of 2025-03-26";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    if items.is_empty() || items.len() > MAX {
        let words = "a list of messages has between 1 and 256 of them";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    Ok(items.iter().map(|item| one(item.bytes())).collect())
}

/// One message, or the answer when it is none.
pub(crate) fn one(text: &Bytes) -> Result<Message, Answer> {
    Message::parse(text).map_err(|error| bad(text, &error))
}

/// The id of a request, where it is one.
pub(crate) fn id(value: &Json) -> Option<RequestId> {
    let number = value.read().map(RequestId::Number);
    number.or_else(|_| value.read().map(RequestId::Text)).ok()
}

/// The id of the request that is cancelled.
pub(crate) fn cancelled(params: &Json) -> Option<RequestId> {
    id(&object::get(params, "requestId")?)
}

/// Tells what is not JSON from what is no message.
fn bad(text: &Bytes, error: &EnvelopeError) -> Answer {
    match Json::parse(text.clone()) {
        Ok(json) => {
            let id = object::get(&json, "id").as_ref().and_then(id);
            Answer::error(id.as_ref(), INVALID_REQUEST, &error.to_string())
        }
        Err(error) => Answer::error(None, PARSE_ERROR, &error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str, revision: Revision) -> Option<i64> {
        let text = Bytes::copy_from_slice(text.as_bytes());
        messages(&text, Some(revision)).err().and_then(|answer| answer.error_code())
    }

    #[test]
    fn what_is_no_message_is_told_from_what_is_no_json() {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let cases = [
            (ping, None),
            ("", Some(PARSE_ERROR)),
            ("{", Some(PARSE_ERROR)),
            ("[1,", Some(PARSE_ERROR)),
            ("\u{feff}{}", Some(PARSE_ERROR)),
            ("[]", Some(INVALID_REQUEST)),
            ("{}", Some(INVALID_REQUEST)),
            ("7", Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, Some(INVALID_REQUEST)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, Some(INVALID_REQUEST)),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text, Revision::V2025_03_26), expected, "{text}");
        }
        let many = |count: usize| format!("[{}]", vec![ping; count].join(","));
        assert_eq!(code(&many(MAX), Revision::V2025_03_26), None);
        assert_eq!(code(&many(MAX + 1), Revision::V2025_03_26), Some(INVALID_REQUEST));
        assert_eq!(code(&many(1), Revision::V2025_06_18), Some(INVALID_REQUEST));
    }
}
