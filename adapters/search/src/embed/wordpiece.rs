//! Splits text into the word pieces that the model knows, as BERT's uncased tokenizer does.

use icu_normalizer::DecomposingNormalizerBorrowed;
use icu_normalizer::properties::CanonicalCombiningClassMapBorrowed;
use rustc_hash::FxHashMap;

/// Maximum number of tokens of a text, with the two that mark its ends. The model has learned on
/// texts of this length; the rest of a longer text is not read.
pub(crate) const MAX_TOKENS: usize = 128;

/// A longer word is unknown as a whole.
const MAX_WORD_CHARS: usize = 100;

/// Texts are cut here before they are normalized: more characters cannot matter, since a token has
/// at least one and the limit of tokens is far lower.
const MAX_TEXT_BYTES: usize = 16 * 1024;

const UNKNOWN: i32 = 100;
const START: i32 = 101;
const END: i32 = 102;

/// The word pieces that the model knows.
pub(crate) struct WordPieces {
    /// Pieces at the beginning of a word.
    first: FxHashMap<&'static str, i32>,
    /// Pieces within a word.
    inner: FxHashMap<&'static str, i32>,
}

// === impl WordPieces ===

impl WordPieces {
    /// Reads a vocabulary: one piece a line, whose number is its id.
    pub(crate) fn new(vocabulary: &'static str) -> Self {
        let (mut first, mut inner) = (FxHashMap::default(), FxHashMap::default());
        for (piece, id) in vocabulary.lines().zip(0..) {
            match piece.strip_prefix("##") {
                Some(rest) => inner.insert(rest, id),
                None => first.insert(piece, id),
            };
        }
        Self { first, inner }
    }

    /// The ids of a text's tokens, with those that mark its ends; at most [`MAX_TOKENS`].
    pub(crate) fn ids(&self, text: &str) -> Vec<i32> {
        let mut ids = vec![START];
        let mut word = String::new();
        let text = text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default();
        let accents = CanonicalCombiningClassMapBorrowed::new();
        let lower = text.chars().flat_map(char::to_lowercase);
        for c in DecomposingNormalizerBorrowed::new_nfd().normalize_iter(lower) {
            if ids.len() >= MAX_TOKENS {
                break;
            }
            if c.is_whitespace() || c.is_control() {
                self.add_word(&mut word, &mut ids);
            } else if accents.get_u8(c) != 0 {
                // Accents are dropped.
            } else if c.is_alphanumeric() && !is_ideograph(c) {
                word.push(c);
            } else {
                self.add_word(&mut word, &mut ids);
                word.push(c);
                self.add_word(&mut word, &mut ids);
            }
        }
        self.add_word(&mut word, &mut ids);
        ids.truncate(MAX_TOKENS - 1);
        ids.push(END);
        ids
    }

    /// Adds the pieces of a word, the longest first, and empties it.
    fn add_word(&self, word: &mut String, ids: &mut Vec<i32>) {
        let before = ids.len();
        let mut rest = word.as_str();
        let mut known = &self.first;
        if word.chars().count() > MAX_WORD_CHARS {
            ids.push(UNKNOWN);
            rest = "";
        }
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(start, c)| start + c.len_utf8()).rev();
            let longest = ends.filter_map(|end| rest.split_at_checked(end));
            let mut found = longest.filter_map(|(piece, left)| Some((known.get(piece)?, left)));
            let Some((id, left)) = found.next() else {
                ids.truncate(before);
                ids.push(UNKNOWN);
                break;
            };
            ids.push(*id);
            (rest, known) = (left, &self.inner);
        }
        word.clear();
    }
}

/// True if each such character is a word of its own.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2ebef}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<i32> {
        WordPieces::new(crate::embed::VOCABULARY).ids(text)
    }

    #[test]
    fn words_are_split_into_the_longest_known_pieces() {
        // The ids are those of the original tokenizer for these texts.
        for (text, expected) in [
            ("", vec![101, 102]),
            ("Hello, world!", vec![101, 7592, 1010, 2088, 999, 102]),
            ("Café", vec![101, 7668, 102]),
            ("unaffable", vec![101, 14477, 20961, 3468, 102]),
        ] {
            assert_eq!(ids(text), expected, "{text}");
        }
    }

    #[test]
    fn any_text_has_tokens_and_not_too_many() {
        let long = "é\u{301}한국어 日本 🎉 İ ﬁ \u{0} \u{fffd}".repeat(5_000);
        for text in [&long, &"x".repeat(1 << 20), &"\u{301}".repeat(9_999), "🎉", "\u{200d}"] {
            let ids = ids(text);
            assert!((2..=MAX_TOKENS).contains(&ids.len()), "{}", ids.len());
            assert_eq!((ids.first(), ids.last()), (Some(&START), Some(&END)));
        }
    }
}
