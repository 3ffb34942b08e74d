//! Tests of the index, with a model that knows two meanings.

use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_wire::Json;

use super::*;
use crate::embed::DIMENSIONS;
use crate::embed::worker::{Embedder, Unavailable};

const WAIT: Duration = Duration::from_mins(1);

/// Counts the texts that were embedded, for one test each.
macro_rules! counting_model {
    ($load:ident, $count:ident) => {
        static $count: AtomicUsize = AtomicUsize::new(0);
        fn $load() -> Option<Box<dyn Embedder>> {
            Some(Box::new(Each(|text| {
                $count.fetch_add(1, Ordering::SeqCst);
                two_meanings(text)
            })))
        }
    };
}

/// Embeds one text after another.
struct Each(fn(&str) -> Option<Vector>);

impl Embedder for Each {
    fn batch(&self) -> usize {
        1
    }

    fn embed(&mut self, texts: &[&str]) -> Result<Vec<Option<Vector>>, Unavailable> {
        Ok(texts.iter().map(|text| self.0(text)).collect())
    }
}

/// Texts about water are alike, and all other texts.
#[expect(clippy::unnecessary_wraps, reason = "it is an `Embed`")]
fn two_meanings(text: &str) -> Option<Vector> {
    let mut exact = [0.0; DIMENSIONS];
    let wet = ["rain", "river", "ocean"].iter().any(|word| text.contains(word));
    exact[usize::from(wet)] = 1.0;
    Some(Vector::quantize(&exact))
}

#[expect(clippy::unnecessary_wraps, reason = "it is a `Load`")]
fn model() -> Option<Box<dyn Embedder>> {
    Some(Box::new(Each(two_meanings)))
}

/// An index with this model.
fn index(load: fn() -> Option<Box<dyn Embedder>>, vectors: Option<PathBuf>) -> SearchIndex {
    SearchIndex::with_model(Some(Arc::new(load)), vectors)
}

fn add(index: &SearchIndex, tools: &[(&str, &str)]) -> IndexedTools {
    let schema = &Json::empty_object();
    let (server, about) = ("s", "");
    let tools = tools.iter().copied();
    let tools =
        tools.map(|(name, description)| SearchedTool { server, about, name, description, schema });
    index.add(&tools.collect::<Vec<_>>())
}

async fn found(index: &SearchIndex, query: &str, tools: &IndexedTools) -> Vec<usize> {
    let wanted = Wanted { limit: 10, wait: WAIT };
    let scores = index.score(query, tools.slots(), wanted).await;
    scores.best.iter().filter(|score| score.similarity > 0.3).map(|score| score.position).collect()
}

#[tokio::test]
async fn tools_are_found_by_words_without_a_model() {
    let index = SearchIndex::lexical();
    let tools = add(&index, &[("send_mail", "Sends a mail"), ("list_files", "Lists files")]);
    assert_eq!(found(&index, "list the files", &tools).await, [1]);
    assert_eq!(found(&index, "paint a wall", &tools).await, [0_usize; 0]);
}

#[tokio::test]
async fn tools_are_found_by_meaning_without_a_common_word() {
    let index = index(model, None);
    let tools = add(&index, &[("river_level", ""), ("list_files", "")]);
    assert_eq!(found(&index, "ocean", &tools).await, [0]);
}

#[tokio::test]
async fn tools_outside_of_the_searched_ones_are_never_found() {
    let index = index(model, None);
    let all = add(&index, &[("river_level", "rain"), ("rain", "rain"), ("list_files", "")]);
    let wanted = Wanted { limit: 10, wait: WAIT };
    let scores = index.score("rain", &all.slots()[..1], wanted).await;
    assert_eq!(scores.best.len(), 1);
    assert_eq!(scores.best[0].position, 0);
    assert!(scores.best[0].score > 0.99, "it is the best of those: {scores:?}");
    assert!(index.score("rain", &[], wanted).await.best.is_empty());
}

#[tokio::test]
async fn a_search_that_does_not_wait_is_answered_by_words() {
    let index = index(model, None);
    let tools = add(&index, &[("river_level", ""), ("list_files", "")]);
    let wanted = Wanted { limit: 10, wait: Duration::ZERO };
    let scores = index.score("files", tools.slots(), wanted).await;
    assert_eq!((scores.best.len(), scores.pending), (1, 2));
    assert_eq!(found(&index, "ocean", &tools).await, [0], "it embeds in the background");
}

counting_model!(counts_changes, CHANGES);

#[tokio::test]
async fn a_changed_list_costs_only_its_changes() {
    let index = index(counts_changes, None);
    let first = add(&index, &[("a", "rain"), ("b", "files")]);
    assert_eq!(CHANGES.load(Ordering::SeqCst), 0, "nothing is embedded before the first search");
    assert_eq!(found(&index, "ocean", &first).await, [0]);
    assert_eq!(CHANGES.load(Ordering::SeqCst), 3, "two tools and the query");
    let second = add(&index, &[("a", "rain"), ("b", "river")]);
    assert_eq!(first.slots()[0], second.slots()[0]);
    assert_eq!(found(&index, "ocean", &second).await, [0, 1]);
    assert_eq!(CHANGES.load(Ordering::SeqCst), 5, "one tool and the query");
}

counting_model!(counts_file, FILE);

#[tokio::test]
async fn vectors_are_computed_once_for_all_processes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vectors");
    let tools = [("a", "rain"), ("b", "files")];
    for (expected, damage) in [(3, false), (4, true), (7, false)] {
        let index = index(counts_file, Some(path.clone()));
        let added = add(&index, &tools);
        assert_eq!(found(&index, "ocean", &added).await, [0]);
        assert_eq!(FILE.load(Ordering::SeqCst), expected);
        drop(index);
        if damage {
            std::fs::write(&path, "damaged").unwrap();
        }
    }
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_leaves_the_words() {
    let index = index(|| None, None);
    let tools = add(&index, &[("send_mail", ""), ("list_files", "")]);
    for _ in 0..2 {
        assert_eq!(found(&index, "files", &tools).await, [1]);
    }
}

#[tokio::test]
async fn lists_that_nobody_holds_leave_the_index() {
    let index = SearchIndex::lexical();
    let kept = add(&index, &[("kept", "")]);
    for round in 0..20 {
        let names: Vec<String> = (0..SWEEP_FROM).map(|i| format!("tool{round}x{i}")).collect();
        let tools: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        drop(add(&index, &tools));
    }
    assert!(index.read().holders.len() < 5 * SWEEP_FROM, "slots are used again");
    assert_eq!(found(&index, "kept", &kept).await, [0]);
}

#[tokio::test]
async fn any_query_is_answered() {
    let index = index(model, None);
    let long = "description ".repeat(90_000);
    let tools = add(&index, &[("a", &long), ("日本", "検索"), ("b", "\u{0}\u{202e}")]);
    let megabyte = "x y".repeat(350_000);
    for query in ["", " ", "🎉🎉", "' OR 1=1 --", "\u{0}", &"mail ".repeat(2_000), &megabyte, "検"]
    {
        let wanted = Wanted { limit: 10, wait: WAIT };
        let scores = index.score(query, tools.slots(), wanted).await;
        for score in scores.best {
            assert!(score.score.is_finite() && (0.0..=1.0).contains(&score.similarity), "{query}");
        }
    }
    assert_eq!(found(&index, "検", &tools).await.first(), Some(&1));
}
