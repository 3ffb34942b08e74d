//! The lexical half: BM25F over the fields of tools, with weights that do not depend on other tools.
//!
//! `words` splits texts into terms, `synonyms` has the words that mean the same in requests.
//!
//! The lengths of fields are compared with fixed ones instead of the averages of the catalog. A
//! posting is therefore final when it is written: a change costs only the tools that changed, and a
//! tool scores the same in whatever order the tools came.

pub(crate) mod synonyms;
pub(crate) mod words;

use rustc_hash::FxHashMap;

use crate::document::{Document, Field};
use synonyms::Synonyms;
use words::Words;

/// Saturation: how soon more occurrences of a term stop to count.
const K1: f32 = 1.2;

/// Occurrences of a term in one field beyond this number do not count.
const MAX_OCCURRENCES: f32 = 2.0;

/// Maximum number of terms of a field; the length counts on.
const MAX_FIELD_TERMS: usize = 400;

/// Maximum number of different terms of a query; the rarest are used.
const MAX_QUERY_TERMS: usize = 96;

/// The rest of a longer query is not read.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// The weight of a synonym, relative to the word itself.
const SYNONYM: f32 = 0.35;

/// Number of slots that a posting can name.
pub(crate) const MAX_SLOTS: usize = 1 << 24;

/// The weight of a field, how much its length counts, and its usual length.
struct Weight {
    factor: f32,
    by_length: f32,
    usual: f32,
}

/// Knowledge of English.
pub(crate) struct Language {
    pub(crate) words: Words,
    synonyms: Synonyms,
}

/// Postings by term.
#[derive(Default)]
pub(crate) struct Lexical {
    terms: FxHashMap<Box<str>, u32>,
    postings: Vec<Vec<Posting>>,
    /// Number of tools that are indexed, with those that were removed since the last sweep.
    tools: usize,
}

/// A slot in the upper 24 bits, the impact of the term in the lower 8.
#[derive(Clone, Copy)]
struct Posting(u32);

/// A query, as terms of the index with their weights.
pub(crate) struct Query {
    terms: Vec<(u32, f32)>,
    /// The score of a tool that has every term of the query in its best field, also of the terms
    /// that no tool has.
    attainable: f32,
    /// True if the query names something by its identifier, path or address.
    pub(crate) has_identifier: bool,
}

// === impl Field ===

impl Field {
    const fn weight(self) -> Weight {
        match self {
            Self::Name => Weight { factor: 2.0, by_length: 0.5, usual: 3.0 },
            Self::Server => Weight { factor: 1.5, by_length: 0.3, usual: 2.0 },
            Self::Description => Weight { factor: 1.0, by_length: 0.75, usual: 14.0 },
            Self::Arguments => Weight { factor: 0.5, by_length: 0.5, usual: 4.0 },
            Self::Values => Weight { factor: 0.3, by_length: 0.5, usual: 18.0 },
            Self::About => Weight { factor: 0.7, by_length: 0.5, usual: 25.0 },
        }
    }
}

// === impl Language ===

impl Language {
    pub(crate) fn new() -> Self {
        let words = Words::new();
        Self { synonyms: Synonyms::new(&words), words }
    }
}

// === impl Lexical ===

impl Lexical {
    /// Adds a tool at a slot that no posting refers to.
    pub(crate) fn add(&mut self, words: &Words, slot: u32, document: &Document<'_>) {
        self.tools += 1;
        let mut sums: FxHashMap<u32, f32> = FxHashMap::default();
        for (field, text) in document.texts() {
            self.add_field(words, field, text, &mut sums);
        }
        for (term, sum) in sums {
            if let Some(postings) = self.postings.get_mut(term as usize) {
                postings.push(Posting::new(slot, sum / (K1 + sum)));
            }
        }
    }

    fn add_field(
        &mut self,
        words: &Words,
        field: Field,
        text: &str,
        sums: &mut FxHashMap<u32, f32>,
    ) {
        let mut counts: FxHashMap<u32, f32> = FxHashMap::default();
        let mut length = 0_u16;
        words.terms(text, |term| {
            length = length.saturating_add(1);
            if usize::from(length) <= MAX_FIELD_TERMS {
                *counts.entry(self.term(term)).or_default() += 1.0;
            }
        });
        let Weight { factor, by_length, usual } = field.weight();
        let scale = factor / (1.0 - by_length + by_length * f32::from(length) / usual);
        for (term, count) in counts {
            *sums.entry(term).or_default() += scale * count.min(MAX_OCCURRENCES);
        }
    }

    fn term(&mut self, term: &str) -> u32 {
        if let Some(known) = self.terms.get(term) {
            return *known;
        }
        let new = u32::try_from(self.postings.len()).unwrap_or(u32::MAX);
        self.terms.insert(term.into(), new);
        self.postings.push(Vec::new());
        new
    }

    /// Removes the postings of slots that are no longer in use.
    pub(crate) fn sweep(&mut self, in_use: impl Fn(u32) -> bool, tools: usize) {
        for postings in &mut self.postings {
            postings.retain(|posting| in_use(posting.slot()));
            postings.shrink_to_fit();
        }
        self.tools = tools;
    }

    /// Reads a query.
    pub(crate) fn query(&self, language: &Language, text: &str) -> Query {
        let text = text.get(..text.floor_char_boundary(MAX_QUERY_BYTES)).unwrap_or_default();
        let mut counts: FxHashMap<String, f32> = FxHashMap::default();
        language.words.terms(text, |term| match counts.get_mut(term) {
            Some(count) => *count += 1.0,
            None => drop(counts.insert(term.to_owned(), 1.0)),
        });
        let mut terms = Vec::with_capacity(counts.len());
        let mut attainable = 0.0;
        let mut similar: FxHashMap<u32, f32> = FxHashMap::default();
        for (word, count) in &counts {
            let term = self.terms.get(word.as_str()).copied();
            let weight = self.rarity(term) * count.sqrt();
            attainable += weight;
            terms.extend(term.map(|term| (term, weight)));
            let others = language.synonyms.of(word).filter(|other| !counts.contains_key(*other));
            for other in others.filter_map(|other| self.terms.get(other).copied()) {
                similar.insert(other, self.rarity(Some(other)) * SYNONYM);
            }
        }
        // The order is that of the weights, so that equal queries are summed up alike.
        terms.extend(similar);
        terms.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        terms.truncate(MAX_QUERY_TERMS);
        Query { terms, attainable, has_identifier: has_identifier(text) }
    }

    /// How much a term tells: more, the fewer tools have it.
    fn rarity(&self, term: Option<u32>) -> f32 {
        let postings = term.and_then(|term| self.postings.get(term as usize));
        #[expect(clippy::cast_precision_loss, reason = "at most 2^24")]
        let (all, with) = (self.tools as f32, postings.map_or(0, Vec::len) as f32);
        (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// Adds the scores of a query to those of all slots.
    pub(crate) fn score(&self, query: &Query, scores: &mut [f32]) {
        for (term, weight) in &query.terms {
            let Some(postings) = self.postings.get(*term as usize) else { continue };
            let step = weight / 255.0;
            for posting in postings {
                if let Some(score) = scores.get_mut(posting.slot() as usize) {
                    *score += step * posting.impact();
                }
            }
        }
    }
}

// === impl Query ===

impl Query {
    /// The share of the query that a score covers, from 0 to 1.
    pub(crate) fn coverage(&self, score: f32) -> f32 {
        if self.attainable > 0.0 { (score / self.attainable).min(1.0) } else { 0.0 }
    }
}

// === impl Posting ===

impl Posting {
    /// `impact` is between 0 and 1.
    fn new(slot: u32, impact: f32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 255"
        )]
        let impact = (impact * 255.0).round().clamp(1.0, 255.0) as u32;
        Self((slot << 8) | impact)
    }

    fn slot(self) -> u32 {
        self.0 >> 8
    }

    fn impact(self) -> f32 {
        f32::from(self.0.to_le_bytes()[0])
    }
}

/// True if a query names something by its path, address or identifier. Such words match as they are
/// written, and mean little to the model.
fn has_identifier(text: &str) -> bool {
    text.split_whitespace().take(1_000).any(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '_');
        let inner = |mark: char| word.trim_matches(mark).contains(mark);
        inner('_') || inner('/') || word.contains("::") || word.contains("://")
    })
}

#[cfg(test)]
mod tests {
    use capstan_hub::ports::SearchedTool;
    use capstan_wire::Json;

    use super::*;

    fn index(tools: &[(&str, &str)]) -> (Language, Lexical) {
        let language = Language::new();
        let mut lexical = Lexical::default();
        let schema = Json::empty_object();
        for ((name, description), slot) in tools.iter().zip(0..) {
            let (server, about) = ("s", "");
            let tool = SearchedTool { server, about, name, description, schema: &schema };
            lexical.add(&language.words, slot, &Document::new(&tool));
        }
        (language, lexical)
    }

    fn scores(tools: &[(&str, &str)], query: &str) -> Vec<f32> {
        let (language, lexical) = index(tools);
        let mut scores = vec![0.0; tools.len()];
        lexical.score(&lexical.query(&language, query), &mut scores);
        scores
    }

    #[test]
    fn a_word_in_the_name_counts_more_than_one_in_the_description() {
        let tools = [("ping", "tests what mail can reach"), ("mail", "tests what ping can reach")];
        let scores = scores(&tools, "mail");
        assert!(scores[1] > scores[0] && scores[0] > 0.0, "{scores:?}");
    }

    #[test]
    fn a_synonym_counts_less_than_the_word() {
        let tools = [("remove_file", ""), ("delete_file", ""), ("paint_wall", "")];
        let scores = scores(&tools, "delete");
        assert!(scores[1] > scores[0] && scores[0] > scores[2] && scores[2] == 0.0, "{scores:?}");
    }

    #[test]
    fn a_long_list_of_words_scores_less_for_each_of_them() {
        let stuffed = "mail weather github search file send ".repeat(200);
        let tools = [("x", stuffed.as_str()), ("y", "Sends a mail")];
        let scores = scores(&tools, "send mail");
        assert!(scores[1] > 5.0 * scores[0], "{scores:?}");
    }

    #[test]
    fn a_query_without_known_words_scores_nothing() {
        for query in ["", " ", "the of", "🎉", "zzzz", "\u{0}"] {
            assert_eq!(scores(&[("mail", "Sends")], query), [0.0], "{query}");
        }
    }

    #[test]
    fn removed_tools_leave_no_postings() {
        let (language, mut lexical) = index(&[("mail", ""), ("mail", "")]);
        lexical.sweep(|slot| slot == 1, 1);
        let mut scores = [0.0; 2];
        lexical.score(&lexical.query(&language, "mail"), &mut scores);
        assert!(scores[0] == 0.0 && scores[1] > 0.0, "{scores:?}");
    }

    #[test]
    fn identifiers_paths_and_addresses_are_told_from_words() {
        for (text, expected) in [
            ("read src/main.rs", true),
            ("call get_user", true),
            ("open https://example.com", true),
            ("who and what, e.g. this", false),
            ("and / or", false),
            ("", false),
        ] {
            assert_eq!(has_identifier(text), expected, "{text}");
        }
    }
}
