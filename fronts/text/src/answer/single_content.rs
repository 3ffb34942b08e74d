//! The raw content of a resource that has only one part, and the bytes in the answer of a tool.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use capstan_wire::{Json, object};

use super::word;

/// The content of a resource that has one part.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// Bytes in the answer of a tool: an image, a sound, or an embedded resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The type that the server gives, in one line.
    pub mime: String,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Base64 with optional padding, because some servers leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The only part of a `resources/read` result; `None` if there are several or none, or if it cannot
/// be decoded.
pub fn sole_part(result: &Json) -> Option<Part> {
    let contents = object::items(&object::get(result, "contents")?).ok()?;
    let [part] = contents.as_slice() else { return None };
    if let Some(text) = object::get_string(part, "text") {
        return Some(Part::Text(text));
    }
    decoded(object::get_string(part, "blob")?).map(Part::Binary)
}

/// The bytes in a `tools/call` result, in their order, without those that cannot be decoded.
pub fn attachments(result: &Json) -> Vec<Attachment> {
    let blocks = object::get(result, "content").and_then(|content| object::items(&content).ok());
    let attachment = |block: Json| {
        let part = object::get(&block, "resource").unwrap_or(block);
        let data = object::get_string(&part, "data").or_else(|| object::get_string(&part, "blob"));
        let mime = word(&part, "mimeType").unwrap_or_else(|| "unknown type".to_owned());
        Some(Attachment { mime, bytes: decoded(data?)? })
    };
    blocks.unwrap_or_default().into_iter().filter_map(attachment).collect()
}

fn decoded(mut base64: String) -> Option<Vec<u8>> {
    base64.retain(|c| !c.is_ascii_whitespace());
    BASE64.decode(base64).ok()
}

// === impl Part ===

impl Part {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sole(contents: &str) -> Option<Part> {
        sole_part(&Json::parse(format!(r#"{{"contents":{contents}}}"#)).unwrap())
    }

    #[test]
    fn one_text_or_one_blob_is_taken_as_it_is() {
        let text = sole(r#"[{"uri":"x:","text":"\u001b[31m\r\n"}]"#);
        assert_eq!(text, Some(Part::Text("\u{1b}[31m\r\n".to_owned())));
        for blob in ["AAEC/w==", "AAEC/w", "AAEC\\n/w=="] {
            let binary = sole(&format!(r#"[{{"uri":"x:","blob":"{blob}"}}]"#));
            assert_eq!(binary, Some(Part::Binary(vec![0, 1, 2, 255])), "{blob}");
        }
    }

    #[test]
    fn bytes_in_an_answer_are_taken_with_their_type() {
        let found = |content: &str| {
            let json = Json::parse(format!(r#"{{"content":[{content}]}}"#)).unwrap();
            let all = attachments(&json).into_iter();
            all.map(|one| (one.mime, one.bytes)).collect::<Vec<_>>()
        };
        let all = found(
            r#"{"type":"text","text":"t"},{"type":"image","mimeType":"image/png","data":"AAEC"},
               {"type":"resource","resource":{"uri":"x:","blob":"AA=="}},{"type":"audio","data":"*"}"#,
        );
        let expected = [("image/png", vec![0, 1, 2]), ("unknown type", vec![0])];
        assert_eq!(all, expected.map(|(mime, bytes)| (mime.to_owned(), bytes)));
        assert_eq!(found(r#"{"type":"text","text":"t"}"#), []);
    }

    #[test]
    fn several_none_or_odd_parts_are_no_part() {
        for odd in [
            "[]",
            "{}",
            "null",
            r#"[{"uri":"x:"}]"#,
            r#"[{"uri":"x:","text":1}]"#,
            r#"[{"uri":"x:","blob":"A*"}]"#,
            r#"[{"uri":"x:","text":"a"},{"uri":"y:","text":"b"}]"#,
        ] {
            assert_eq!(sole(odd), None, "{odd}");
        }
    }
}
