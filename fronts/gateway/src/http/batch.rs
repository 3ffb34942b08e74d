//! Several messages at once, which 2025-03-26 has and no other revision.

use bytes::Bytes;
use capstan_wire::{EnvelopeError, Json, Message, object};
use futures::StreamExt as _;
use futures::stream::SelectAll;
use hyper::Response;
use hyper::http::StatusCode;
use hyper::http::request::Parts;

use super::body::{self, Body};
use super::caller;
use super::events::outs;
use super::face::Face;
use super::sessions::Held;
use super::take::Accepts;
use super::trace;
use crate::{Answer, Out, Revision};

/// Most messages of a batch.
const MAX: usize = 256;

/// JSON-RPC: not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;

/// JSON-RPC: JSON, and no message.
pub(super) const INVALID_REQUEST: i64 = -32600;

/// Whether this is a list and not a message.
pub(super) fn is_batch(text: &[u8]) -> bool {
    text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
}

/// The one message, or the messages of a batch, each with the answer when it is none.
pub(super) fn messages(
    text: &Bytes,
    revision: Option<Revision>,
) -> Result<Vec<Result<Message, Answer>>, Answer> {
    if !is_batch(text) {
        return one(text).map(|message| vec![Ok(message)]);
    }
    if !revision.is_some_and(Revision::has_batches) {
        let words = "a list of messages is only taken from clients of 2025-03-26";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    let list = Json::parse(text.clone());
    let items = list.and_then(|list| object::items(&list));
    let items = items.map_err(|_| Answer::error(None, PARSE_ERROR, "not valid JSON"))?;
    if items.is_empty() || items.len() > MAX {
        let words = "a list of messages has between 1 and 256 of them";
        return Err(Answer::error(None, INVALID_REQUEST, words));
    }
    Ok(items.iter().map(|item| one(item.bytes())).collect())
}

/// One message, or the answer when it is none.
pub(super) fn one(text: &Bytes) -> Result<Message, Answer> {
    Message::parse(text).map_err(|error| bad(text, &error))
}

/// Tells what is not JSON from what is no message.
fn bad(text: &Bytes, error: &EnvelopeError) -> Answer {
    match Json::parse(text.clone()) {
        Ok(_) => Answer::error(None, INVALID_REQUEST, &error.to_string()),
        Err(error) => Answer::error(None, PARSE_ERROR, &error.to_string()),
    }
}

/// Takes a batch of a client that has shaken hands.
pub(super) async fn answer(
    face: &Face,
    head: &Parts,
    text: &Bytes,
    accepts: Accepts,
    session: Held,
) -> Response<Body> {
    let messages = match messages(text, Some(session.client().revision())) {
        Ok(messages) => messages,
        Err(answer) => return body::json(StatusCode::BAD_REQUEST, answer),
    };
    let (mut requests, mut answers) = (SelectAll::new(), Vec::new());
    for message in messages {
        match message {
            Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                let words = "`initialize` must not be part of a list";
                answers.push(Answer::error(Some(&id), INVALID_REQUEST, words));
            }
            Ok(Message::Request { id, method, params }) => {
                let params = trace::adopt(&head.headers, params);
                let params = caller::adopt(&head.headers, params);
                requests.push(outs(face.gateway().request(session.client(), id, &method, params)));
            }
            Ok(Message::Notification { method, params }) => {
                face.gateway().notification(session.client(), &method, params.as_ref());
            }
            Ok(Message::Reply { id: Some(id), reply }) => session.client().take_reply(&id, reply),
            Ok(Message::Reply { id: None, .. }) => {}
            Err(answer) => answers.push(answer),
        }
    }
    while let Some(out) = requests.next().await {
        match out {
            Out::Answer(answer) => answers.push(answer),
            Out::Message(message) if !accepts.events() => session.client().unheard(&message),
            Out::Message(message) => {
                let answers = answers.into_iter().map(Out::Answer);
                let first = answers.chain([Out::Message(message)]).collect();
                return face.streamed(first, requests.boxed(), Some(session));
            }
        }
    }
    if answers.is_empty() { body::bare(StatusCode::ACCEPTED) } else { body::batch(answers) }
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
