//! JSON text that is known to be well-formed and is never rewritten.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::members::Raw;
use crate::scan::Quoted;

/// Well-formed JSON text that is cheap to clone and to slice.
///
/// Invariant: the bytes are exactly one JSON value in UTF-8, without surrounding white space.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Bytes);

/// Why some bytes are not a [`Json`].
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON")]
pub struct BadJson(#[from] serde_json::Error);

// === impl Json ===

impl Json {
    /// Checks that `text` is exactly one JSON value and keeps its bytes.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, BadJson> {
        let bytes: Bytes = text.into();
        let raw: &RawValue = serde_json::from_slice(&bytes)?;
        let value = raw.get().as_bytes();
        Ok(Self(bytes.slice_ref(value)))
    }

    /// Serializes a value.
    pub fn from_value(value: &impl Serialize) -> Result<Self, BadJson> {
        Ok(Self(serde_json::to_vec(value)?.into()))
    }

    /// The empty object.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// A slice of `whole` that the parser has already checked.
    pub(crate) fn piece(whole: &Bytes, value: Raw<'_>) -> Self {
        Self(whole.slice_ref(value.0.as_bytes()))
    }

    /// A slice of this text that is a complete value.
    pub(crate) fn slice(&self, value: &[u8]) -> Self {
        Self(self.0.slice_ref(value))
    }

    /// Returns the range of a slice within this text.
    pub(crate) fn place_of(&self, piece: &[u8]) -> Option<Range<usize>> {
        let start = piece.as_ptr().addr().checked_sub(self.0.as_ptr().addr())?;
        let place = start..start + piece.len();
        (place.end <= self.0.len()).then_some(place)
    }

    /// Overwrites a value in place with one that is not longer, and fills the rest with spaces.
    ///
    /// If the text is shared, it comes back unchanged as the error.
    pub(crate) fn overwritten(self, place: Range<usize>, value: &Self) -> Result<Self, Self> {
        let mut text = self.0.try_into_mut().map_err(Self)?;
        if let Some(old) = text.get_mut(place)
            && let Some((new, rest)) = old.split_at_mut_checked(value.len())
        {
            new.copy_from_slice(value.as_bytes());
            rest.fill(b' ');
        }
        Ok(Self(text.freeze()))
    }

    /// Text that the caller has composed from checked parts.
    pub(crate) fn composed(text: Vec<u8>) -> Self {
        Self(text.into())
    }

    /// The text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as shared bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // The invariant guarantees UTF-8; if it were ever broken, an empty text does no harm.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never true: the shortest JSON value has one byte.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text of a string; `None` for another value, or if an escape stands for no
    /// character.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        self.0.starts_with(b"\"").then(|| Quoted::at(&self.0, 0).decode()).flatten()
    }

    /// Returns a copy that shares no memory with the text that it is a part of.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// Deserializes the text. The type may ignore members.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, BadJson> {
        Ok(serde_json::from_slice(&self.0)?)
    }
}

/// Writes the text as it is; works only with JSON serializers.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Keeps the text as it is; works only with JSON deserializers.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(String::from(Box::<str>::from(raw)).into()))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_bytes() {
        let text = r#"{"z":1.0000000000000000000001,"a":[1e0, 2 ]}"#;
        assert_eq!(Json::parse(format!(" {text} \n")).unwrap().as_str(), text);
    }

    #[test]
    fn only_a_string_has_a_text() {
        let text = |json: &str| Json::parse(json.to_owned()).unwrap().text().map(Cow::into_owned);
        assert_eq!(text(r#""a\u00e9\n""#).as_deref(), Some("a\u{e9}\n"));
        assert_eq!(text(r#""""#).as_deref(), Some(""));
        for none in [r#""\ud800""#, "1", "null", r#"["a"]"#, r#"{"a":"b"}"#] {
            assert_eq!(text(none), None, "{none}");
        }
    }

    #[test]
    fn broken_or_trailing_text_is_refused() {
        for bad in ["", "{", "{} {}", "nul", "\u{feff}{}", "[1,]"] {
            assert!(Json::parse(bad.to_owned()).is_err(), "{bad:?} was accepted");
        }
        assert!(Json::parse(&b"\"\xff\""[..]).is_err());
    }
}
