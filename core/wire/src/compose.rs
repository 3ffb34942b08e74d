//! Composes messages around bodies that are already JSON.

use serde::Serialize;

use crate::Json;
use crate::envelope::RequestId;

/// Composes a request with one of our own ids, as one line without its newline.
pub fn request(id: u64, method: &str, params: Option<&Json>) -> Vec<u8> {
    let mut line = Vec::with_capacity(64 + method.len() + params.map_or(0, Json::len));
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    push_number(&mut line, id);
    line.extend_from_slice(br#","method":"#);
    close_with(line, method, params)
}

/// Returns the bytes before and after the params of such a request.
pub fn around_params(id: u64, method: &str) -> (Vec<u8>, &'static [u8]) {
    let empty = request(id, method, None);
    let mut before = empty.strip_suffix(b"}").unwrap_or(&empty).to_vec();
    before.extend_from_slice(br#","params":"#);
    (before, b"}")
}

/// Composes a notification.
pub fn notification(method: &str, params: Option<&Json>) -> Vec<u8> {
    let mut line = Vec::with_capacity(48 + method.len() + params.map_or(0, Json::len));
    line.extend_from_slice(br#"{"jsonrpc":"2.0","method":"#);
    close_with(line, method, params)
}

/// Composes the reply to a request.
pub fn reply(id: &RequestId, result: &Json) -> Vec<u8> {
    let mut line = reply_head(id, result.len());
    line.extend_from_slice(br#","result":"#);
    line.extend_from_slice(result.as_bytes());
    line.push(b'}');
    line
}

/// Composes an error reply to a request.
pub fn error_reply(id: &RequestId, code: i64, message: &str) -> Vec<u8> {
    let mut line = reply_head(id, message.len() + 48);
    line.extend_from_slice(br#","error":{"code":"#);
    push_number(&mut line, code);
    line.extend_from_slice(br#","message":"#);
    push_string(&mut line, message);
    line.extend_from_slice(b"}}");
    line
}

/// Composes an object of members that are already JSON, in the given order.
pub fn object(members: &[(&str, &Json)]) -> Json {
    let size = members.iter().map(|(key, value)| key.len() + value.len() + 4).sum::<usize>();
    let mut text = Vec::with_capacity(size + 2);
    text.push(b'{');
    for (key, value) in members {
        push_member(&mut text, key, value.as_bytes());
    }
    text.push(b'}');
    Json::composed(text)
}

/// Composes a list of values that are already JSON, in the given order.
pub fn array<'a>(items: impl IntoIterator<Item = &'a Json>) -> Json {
    let mut text = vec![b'['];
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item.as_bytes());
    }
    text.push(b']');
    Json::composed(text)
}

/// Composes a string.
pub fn string(text: &str) -> Json {
    let mut json = Vec::with_capacity(text.len() + 2);
    push_string(&mut json, text);
    Json::composed(json)
}

/// Composes an integer.
pub fn number(number: u64) -> Json {
    Json::composed(number.to_string().into_bytes())
}

/// Composes the value `true`.
pub fn truth() -> Json {
    Json::composed(b"true".to_vec())
}

fn reply_head(id: &RequestId, room: usize) -> Vec<u8> {
    let mut line = Vec::with_capacity(48 + room);
    line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    match id {
        RequestId::Number(id) => push_number(&mut line, *id),
        RequestId::Text(id) => push_string(&mut line, id),
    }
    line
}

fn close_with(mut line: Vec<u8>, method: &str, params: Option<&Json>) -> Vec<u8> {
    push_string(&mut line, method);
    if let Some(params) = params {
        line.extend_from_slice(br#","params":"#);
        line.extend_from_slice(params.as_bytes());
    }
    line.push(b'}');
    line
}

/// Appends a member to an open object, with a comma if it is not the first.
pub(crate) fn push_member(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    push_comma(text);
    push_string(text, key);
    text.push(b':');
    text.extend_from_slice(value);
}

/// Like [`push_member`], for a name that needs no escapes.
pub(crate) fn push_plain_member(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    push_comma(text);
    for part in [b"\"", key.as_bytes(), b"\":", value] {
        text.extend_from_slice(part);
    }
}

fn push_comma(text: &mut Vec<u8>) {
    if text.last() != Some(&b'{') {
        text.push(b',');
    }
}

/// Writes an integer.
fn push_number(line: &mut Vec<u8>, number: impl Serialize) {
    // Cannot fail; if it ever did, a zero keeps the message well-formed.
    if serde_json::to_writer(&mut *line, &number).is_err() {
        line.push(b'0');
    }
}

/// Writes `text` as a JSON string.
pub(crate) fn push_string(line: &mut Vec<u8>, text: &str) {
    // Writing a string into memory cannot fail; if it ever did, an empty string keeps the message
    // well-formed.
    if serde_json::to_writer(&mut *line, text).is_err() {
        line.extend_from_slice(b"\"\"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Reply};

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn what_is_composed_parses_back() {
        let params = json(r#"{"a":1.0}"#);
        let line = request(7, "tools/\"call", Some(&params));
        let expected = Message::Request {
            id: RequestId::Number(7),
            method: "tools/\"call".into(),
            params: Some(params),
        };
        assert_eq!(Message::parse(&line.into()).unwrap(), expected);

        let id = RequestId::Text("é\n".into());
        let Message::Reply { id: back, reply: Reply::Error(error) } =
            Message::parse(&error_reply(&id, -32601, "no \"such\"").into()).unwrap()
        else {
            panic!("not an error reply");
        };
        assert_eq!((back, error.message.as_str()), (Some(id), "no \"such\""));
    }

    #[test]
    fn objects_and_lists_keep_order_and_text() {
        let (one, two) = (json("1.00"), json("[]"));
        assert_eq!(object(&[("z", &one), ("a", &two)]).as_str(), r#"{"z":1.00,"a":[]}"#);
        assert_eq!(array([&one, &two]).as_str(), "[1.00,[]]");
        assert_eq!(object(&[]).as_str(), "{}");
    }
}
