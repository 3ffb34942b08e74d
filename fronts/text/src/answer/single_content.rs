//! The raw content of a resource that has only one part.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use capstan_wire::{Json, object};

/// The content of a resource that has one part.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
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
    let mut blob = object::get_string(part, "blob")?;
    blob.retain(|c| !c.is_ascii_whitespace());
    BASE64.decode(blob).ok().map(Part::Binary)
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
