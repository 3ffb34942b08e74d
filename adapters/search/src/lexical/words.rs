//! Splits texts and identifiers into terms: words in lower case, stemmed, without stop words.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// A longer word is cut: nobody searches for it.
const MAX_WORD_CHARS: usize = 40;

/// Words that say nothing about a tool. Besides the common words of English these are the words of
/// every request ("can you please help me") and of every tool ("tool", "server").
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "but", "by",
    "can", "could", "d", "did", "do", "does", "each", "for", "from", "had", "has", "have", "he",
    "help", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like",
    "ll", "m", "may", "mcp", "me", "more", "most", "my", "need", "not", "of", "on", "one", "or",
    "our", "out", "please", "re", "s", "server", "she", "should", "so", "some", "such", "t",
    "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those",
    "to", "tool", "tools", "up", "us", "use", "used", "using", "ve", "via", "want", "was", "we",
    "were", "what", "when", "where", "whether", "which", "who", "will", "with", "would", "you",
    "your",
];

/// Makes terms out of texts.
pub(crate) struct Words {
    stemmer: Stemmer,
}

// === impl Words ===

impl Words {
    pub(crate) fn new() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }

    /// Calls `each` with every term of a text, in order.
    pub(crate) fn terms(&self, text: &str, mut each: impl FnMut(&str)) {
        split(text, |word| {
            if !is_stop_word(word) {
                each(&self.stem(word));
            }
        });
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        self.stemmer.stem(word)
    }
}

pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Calls `each` with every word of a text, in lower case. Identifiers are split where their case
/// changes; ideographs, which are written without spaces, are words of their own.
pub(crate) fn split(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut length = 0;
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let starts = c.is_uppercase()
            && (before.is_lowercase()
                || before.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase()));
        if (starts || !c.is_alphanumeric() || is_ideograph(c)) && !word.is_empty() {
            each(&word);
            word.clear();
            length = 0;
        }
        if is_ideograph(c) {
            each(c.encode_utf8(&mut [0; 4]));
        } else if c.is_alphanumeric() && length < MAX_WORD_CHARS {
            word.extend(c.to_lowercase());
            length += 1;
        }
        before = c;
    }
    if !word.is_empty() {
        each(&word);
    }
}

/// True for characters of scripts that are written without spaces.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut all = Vec::new();
        split(text, |word| all.push(word.to_owned()));
        all
    }

    #[test]
    fn identifiers_are_split_into_words() {
        for (text, expected) in [
            ("list_open_issues", vec!["list", "open", "issues"]),
            ("getHTTPResponseCode", vec!["get", "http", "response", "code"]),
            ("web-search.v2", vec!["web", "search", "v2"]),
            ("//button[@id='go']", vec!["button", "id", "go"]),
            ("", vec![]),
            ("…", vec![]),
            ("必应search结果", vec!["必", "应", "search", "结", "果"]),
            ("Größe ÄRGER", vec!["größe", "ärger"]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn terms_are_stems_without_stop_words() {
        let mut terms = Vec::new();
        Words::new().terms("Can you list the repositories of my servers?", |term| {
            terms.push(term.to_owned());
        });
        assert_eq!(terms, ["list", "repositori", "server"]);
    }

    #[test]
    fn stop_words_are_sorted_for_the_binary_search() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn a_word_without_end_is_cut() {
        assert_eq!(words(&"x".repeat(1 << 20)), ["x".repeat(MAX_WORD_CHARS)]);
    }
}
