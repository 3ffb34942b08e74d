//! Parses the messages of clients: single ones, and the batches of 2025-03-26.

use bytes::Bytes;
use capstan_model::rpc_code::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR};
use capstan_wire::duplicate::refuse_duplicates;
use capstan_wire::{EnvelopeError, Json, Message, RequestId, object};

use crate::protocol::fault::Fault;
use crate::{Answer, Revision};

/// Maximum number of messages in a batch.
const MAX: usize = 256;

/// Maximum nesting of a message. Policy rules inspect at most `duplicate::MAX_DEPTH` levels.
const MAX_DEPTH: usize = 1000;

/// True if the text is a batch.
pub(crate) fn is_batch(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// Parses a message or a batch. The error for a malformed message is the answer to it.
pub(crate) fn messages(
    text: &Bytes,
    revision: Option<Revision>,
) -> Result<Vec<Result<Message, Answer>>, Answer> {
    if !is_batch(text) {
        return one(text).map(|message| vec![Ok(message)]);
    }
    check_depth(text)?;
    let list = Json::parse(text.clone());
    let items = list.and_then(|list| object::items(&list));
    let items = items.map_err(|_| Answer::error(None, PARSE_ERROR, "not valid JSON"))?;
    if !revision.is_some_and(Revision::has_batches) {
        let words = "batches are accepted only from clients of 2025-03-26";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    if items.is_empty() || items.len() > MAX {
        let words = "a batch must have between 1 and 256 messages";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    Ok(items.iter().map(|item| one(item.bytes())).collect())
}

/// Parses one message; an error is the answer to a malformed one.
pub(crate) fn one(text: &Bytes) -> Result<Message, Answer> {
    check_depth(text)?;
    let message = Message::parse(text).map_err(|error| bad(text, &error))?;
    if let Message::Request { id, params, .. } = &message {
        let is_object = match params {
            Some(params) => params.as_str().starts_with('{'),
            None => !has_null_params(text),
        };
        if !is_object {
            return Err(Answer::error(Some(id), INVALID_PARAMS, "`params` must be an object"));
        }
    }
    Ok(message)
}

/// True if a message that was parsed without params contains `"params": null`.
fn has_null_params(text: &Bytes) -> bool {
    memchr::memmem::find(text, b"\"params\"").is_some()
        && Json::parse(text.clone()).is_ok_and(|json| object::get(&json, "params").is_some())
}

/// Refuses text that is nested too deep for the parsers of clients and servers.
pub(crate) fn check_depth(text: &[u8]) -> Result<(), Answer> {
    // Most messages are too short to be that deep.
    if text.len() <= MAX_DEPTH || depth(text) <= MAX_DEPTH {
        return Ok(());
    }
    let words = format!("the message is nested more than {MAX_DEPTH} levels deep");
    Err(Answer::error(None, PARSE_ERROR, &words))
}

/// The nesting depth of JSON, computed in one pass over its brackets and strings.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0_usize);
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => rest = behind_string(behind),
            _ => {}
        }
    }
    most
}

/// The text after the string that begins here.
fn behind_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        let escaped = usize::from(text.get(at) == Some(&b'\\'));
        text = text.get(at + 1 + escaped..).unwrap_or_default();
        if escaped == 0 {
            return text;
        }
    }
    &[]
}

/// Refuses params that a server could parse differently; see [`refuse_duplicates`].
pub(crate) fn refuse_ambiguous(
    params: &Json,
    protected: &'static [&'static str],
) -> Result<(), Fault> {
    refuse_duplicates(params, protected)
        .map_err(|problem| Fault::invalid(format!("the params are ambiguous: {problem}")))
}

/// Parses the id of a request, if it is valid.
pub(crate) fn id(value: &Json) -> Option<RequestId> {
    let number = value.read().map(RequestId::Number);
    number.or_else(|_| value.read().map(RequestId::Text)).ok()
}

/// The id of the request that a `notifications/cancelled` refers to.
pub(crate) fn cancelled(method: &str, params: Option<&Json>) -> Option<RequestId> {
    let params = params.filter(|_| method == "notifications/cancelled")?;
    id(&object::get(params, "requestId")?)
}

/// The answer to text that is not JSON, or not a message.
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
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, Some(INVALID_PARAMS)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, Some(INVALID_PARAMS)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[{}]}"#, Some(INVALID_PARAMS)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params": {}}"#, None),
        ];
        for (text, expected) in cases {
            assert_eq!(code(text, Revision::V2025_03_26), expected, "{text}");
        }
        let many = |count: usize| format!("[{}]", vec![ping; count].join(","));
        assert_eq!(code(&many(MAX), Revision::V2025_03_26), None);
        assert_eq!(code(&many(MAX + 1), Revision::V2025_03_26), Some(INVALID_REQUEST));
        assert_eq!(code(&many(1), Revision::V2025_06_18), Some(INVALID_REQUEST));
    }

    /// Holes 10.
    #[test]
    fn a_message_that_is_nested_too_deep_cannot_be_parsed() {
        let nested = |levels: usize, open: &str, close: &str| {
            let (open, close) = (open.repeat(levels), close.repeat(levels));
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{open}1{close}}}}}"#)
        };
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"["]\"\\",{"b":"#, "}]")] {
            let step = open.matches(['[', '{']).count();
            let most = (MAX_DEPTH - 2) / step;
            for (levels, expected) in [
                (1, None),
                (most, None),
                (most + 1, Some(PARSE_ERROR)),
                (200_000, Some(PARSE_ERROR)),
            ] {
                let text = nested(levels, open, close);
                assert_eq!(code(&text, Revision::V2025_03_26), expected, "{levels} {open}");
            }
            assert_eq!(code(&open.repeat(200_000), Revision::V2025_03_26), Some(PARSE_ERROR));
        }
        // Brackets inside a string do not count.
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "[".repeat(5000));
        assert_eq!(code(&text, Revision::V2025_03_26), None);
        assert_eq!(code(&"[".repeat(200_000), Revision::V2025_11_25), Some(PARSE_ERROR));
    }
}
