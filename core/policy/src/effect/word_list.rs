//! Lists of words and phrases, prepared at their first use.
//!
//! Lists of tools are classified as a whole, and most of that time is spent here.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use rustc_hash::FxHashSet;

/// Words, separated by spaces.
pub(crate) struct WordList {
    words: &'static str,
    set: OnceLock<FxHashSet<&'static str>>,
}

/// Phrases that are searched for in one pass. Without valid phrases, none is found.
pub(super) type Phrases = LazyLock<Option<AhoCorasick>>;

// === impl WordList ===

impl WordList {
    pub(crate) const fn new(words: &'static str) -> Self {
        Self { words, set: OnceLock::new() }
    }

    /// True if the list has this word.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.set.get_or_init(|| self.words.split_ascii_whitespace().collect()).contains(word)
    }
}

/// True if a text contains one of the phrases.
pub(super) fn mentions(text: &str, phrases: &Phrases) -> bool {
    phrases.as_ref().is_some_and(|phrases| phrases.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_words_and_nothing_else() {
        static LIST: WordList = WordList::new(
            "get list \
            search",
        );
        assert!(["get", "list", "search"].iter().all(|word| LIST.has(word)));
        assert!(["", " ", "ge", "gets", "get list"].iter().all(|word| !LIST.has(word)));
    }

    #[test]
    fn phrases_are_found_anywhere_in_a_text() {
        static PHRASES: Phrases = LazyLock::new(|| AhoCorasick::new(["sql", "read only"]).ok());
        assert!(mentions("a postgresql table", &PHRASES) && mentions("read only", &PHRASES));
        assert!(!mentions("", &PHRASES) && !mentions("read it only", &PHRASES));
    }
}
