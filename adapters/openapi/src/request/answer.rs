//! Converts a response into an answer.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_http::PlainResponse;
use capstan_model::Secret;
use capstan_safety::mask::Masker;
use capstan_wire::{Json, compose};
use serde_json::{Value, json};

use crate::operation::Operation;

/// The shortest secret that is masked: shorter ones would mask ordinary words.
const MIN_SECRET: usize = 8;

/// The longest part of a refusal that is passed on, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

/// Composes the answer to a call of this operation; `hint` is added to a refusal.
pub(crate) fn answer(
    operation: &Operation,
    response: &PlainResponse,
    secrets: &[Secret<String>],
    hint: Option<&str>,
) -> Json {
    let media = response.content_type.as_deref().unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let text = std::str::from_utf8(&response.body).ok().map(|text| masked(text, secrets));
    if response.status >= 400 {
        let words = text.as_deref().unwrap_or("its body is not text");
        return refusal(response.status, words, hint);
    }
    let is_json = media == "application/json" || media.ends_with("+json");
    let structure = text.clone().filter(|_| is_json || media.is_empty());
    let structure = structure.and_then(|text| Json::parse(text).ok());
    let structure = structure.filter(|json| json.as_bytes().starts_with(b"{"));
    let content = match text {
        Some(text) if text.is_empty() => told(&format!("HTTP status {}", response.status)),
        Some(text) if is_text(&media) || is_json => told(&text),
        text => {
            blob(operation, &media, text.as_ref().map_or(&response.body, |text| text.as_bytes()))
        }
    };
    let content = compose::array([&written(&content)]);
    // If the tool declares an object as output, an empty object satisfies the declaration.
    let promised = || operation.output.as_ref().map(|_| Json::empty_object());
    let (structure, is_error) = (structure.or_else(promised), written(&json!(false)));
    match &structure {
        // As received: long numbers keep their digits.
        Some(structure) => compose::object(&[
            ("content", &content),
            ("structuredContent", structure),
            ("isError", &is_error),
        ]),
        None => compose::object(&[("content", &content), ("isError", &is_error)]),
    }
}

/// Composes the answer for an error status, with the hint.
pub(crate) fn refusal(status: u16, words: &str, hint: Option<&str>) -> Json {
    let cut = words.get(..words.floor_char_boundary(MAX_REFUSAL)).unwrap_or_default();
    let more = if cut.len() < words.len() { "\n[the rest was cut]" } else { "" };
    let hint = hint.map(|hint| format!(": {hint}")).unwrap_or_default();
    let text = format!("HTTP status {status}{hint}\n\n{cut}{more}");
    written(&json!({ "content": [told(text.trim_end())], "isError": true }))
}

fn written(value: &Value) -> Json {
    Json::from_value(value).unwrap_or_else(|_| Json::empty_object())
}

/// Masks the secrets in `text`.
pub(crate) fn masked(text: &str, secrets: &[Secret<String>]) -> String {
    let secrets = secrets.iter().map(Secret::reveal).filter(|secret| secret.len() >= MIN_SECRET);
    Masker::new(secrets.cloned()).mask(text)
}

fn told(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn is_text(media: &str) -> bool {
    let words = ["xml", "javascript", "yaml", "x-www-form-urlencoded", "graphql"];
    media.is_empty() || media.starts_with("text/") || words.iter().any(|word| media.ends_with(word))
}

/// Content that is not text: an image, audio, or a resource that is named after its operation.
fn blob(operation: &Operation, media: &str, bytes: &[u8]) -> Value {
    let media = if media.is_empty() { "application/octet-stream" } else { media };
    let data = BASE64_STANDARD.encode(bytes);
    match media.split('/').next() {
        Some("image") => json!({ "type": "image", "data": data, "mimeType": media }),
        Some("audio") => json!({ "type": "audio", "data": data, "mimeType": media }),
        _ => {
            let uri = format!("openapi:{}", operation.name);
            json!({ "type": "resource", "resource": { "uri": uri, "mimeType": media, "blob": data } })
        }
    }
}
