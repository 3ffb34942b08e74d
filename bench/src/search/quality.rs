//! How often the needed tools are found.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use capstan_hub::ports::{IndexedTools, Score, Slot, ToolIndex, Wanted};
use capstan_hub::search::combine;
use capstan_search::SearchIndex;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::data::{Corpus, Query};

/// Longer than all tools take to be embedded.
const WAIT: Duration = Duration::from_hours(1);

/// Tools that are looked at for each query.
const DEPTH: usize = 100;

/// The minimum similarity of the configuration's default.
const MIN_SIMILARITY: f32 = 0.3;

/// Queries that no tool of the corpus fits.
const ABOUT_NOTHING: &[&str] = &[
    "asdf qwer zxcv",
    "lorem ipsum dolor sit amet",
    "xyzzy plugh",
    "the of and to",
    "blorft the snizzle with a quonk",
];

/// The figures of some queries among some tools.
#[derive(Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) tools: usize,
    pub(crate) queries: usize,
    pub(crate) recall_1: f64,
    pub(crate) recall_5: f64,
    pub(crate) recall_10: f64,
    pub(crate) mrr: f64,
    pub(crate) ndcg_5: f64,
    pub(crate) ndcg_10: f64,
}

/// recall@5 of five disjoint parts of the queries, to show how far chance reaches.
#[derive(Serialize)]
pub(crate) struct Folds {
    pub(crate) name: String,
    pub(crate) parts: Vec<f64>,
}

/// The searches of an agent, repeated.
#[derive(Serialize)]
pub(crate) struct Replay {
    pub(crate) name: String,
    pub(crate) k: usize,
    pub(crate) recall: f64,
    /// Share of tasks all of whose tools were found.
    pub(crate) complete: f64,
    pub(crate) tools: f64,
}

/// What the minimum similarity costs and gives.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Fit {
    pub(crate) relevant_lost: f64,
    pub(crate) foreign_empty: f64,
}

/// The corpus in an index.
pub(crate) struct Searched<'a> {
    corpus: &'a Corpus,
    runtime: &'a Runtime,
    index: SearchIndex,
    tools: IndexedTools,
}

/// Some queries, and the tools they are searched among.
struct Set {
    name: &'static str,
    queries: fn(&Query) -> bool,
    tools: fn(&super::data::Tool) -> bool,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    OneQuery,
    Steps,
}

const LIVE: fn(&Query) -> bool = |query| query.source == "LiveMCPBench";
const LIVE_TOOLS: fn(&super::data::Tool) -> bool = |tool| tool.source == "LiveMCPBench";
const MCP_TOOLS: fn(&super::data::Tool) -> bool = |tool| tool.corpus == "mcp";
const METATOOLS: fn(&super::data::Tool) -> bool = |tool| tool.corpus == "metatool";

const SETS: &[Set] = &[
    Set { name: "LiveMCPBench", queries: LIVE, tools: LIVE_TOOLS, form: Form::OneQuery },
    Set { name: "LiveMCPBench, steps", queries: LIVE, tools: LIVE_TOOLS, form: Form::Steps },
    Set { name: "LiveMCPBench, all MCP", queries: LIVE, tools: MCP_TOOLS, form: Form::OneQuery },
    Set {
        name: "MCP-Bench",
        queries: |query| query.source == "MCP-Bench",
        tools: MCP_TOOLS,
        form: Form::OneQuery,
    },
    Set {
        name: "authored needles",
        queries: |query| query.source == "authored-needle",
        tools: MCP_TOOLS,
        form: Form::OneQuery,
    },
    Set {
        name: "MetaTool",
        queries: |query| query.source == "MetaTool-single",
        tools: METATOOLS,
        form: Form::OneQuery,
    },
    Set {
        name: "MetaTool, several tools",
        queries: |query| query.source == "MetaTool-multi",
        tools: METATOOLS,
        form: Form::OneQuery,
    },
    Set {
        name: "BFCL",
        queries: |query| query.source.starts_with("BFCL"),
        tools: |tool| tool.corpus == "bfcl",
        form: Form::OneQuery,
    },
];

// === impl Searched ===

impl<'a> Searched<'a> {
    pub(crate) fn new(corpus: &'a Corpus, vectors: &Path, runtime: &'a Runtime) -> Self {
        let index = SearchIndex::new(Some(vectors.to_owned()));
        let tools = corpus.add_to(&index);
        let wanted = Wanted { limit: 1, wait: WAIT };
        runtime.block_on(index.score("all tools", tools.slots(), wanted));
        Self { corpus, runtime, index, tools }
    }

    /// The positions and slots of some tools.
    fn pool(&self, wanted: fn(&super::data::Tool) -> bool) -> (Vec<usize>, Vec<Slot>) {
        let all = self.corpus.tools.iter().zip(self.tools.slots()).enumerate();
        all.filter(|(_, (tool, _))| wanted(tool)).map(|(at, (_, slot))| (at, *slot)).unzip()
    }

    fn scores(&self, query: &str, pool: &[Slot]) -> Vec<Score> {
        let wanted = Wanted { limit: DEPTH, wait: WAIT };
        self.runtime.block_on(self.index.score(query, pool, wanted)).best
    }

    /// The positions in the corpus of the tools that a search returns, best first.
    fn found(
        &self,
        queries: &[String],
        pool: &(Vec<usize>, Vec<Slot>),
        limit: usize,
    ) -> Vec<usize> {
        let scores: Vec<(usize, Vec<Score>)> =
            queries.iter().map(|query| self.scores(query, &pool.1)).enumerate().collect();
        let found = combine(&scores, 0.0, limit, &|_, _| false);
        found.iter().filter_map(|tool| pool.0.get(tool.position).copied()).collect()
    }

    /// The figures of each set, and those of five parts of it.
    pub(crate) fn rows(&self) -> (Vec<Row>, Vec<Folds>) {
        let figures = |set: &Set| {
            let each = self.each(set);
            let part = |fold: usize| {
                let part: Vec<Row> = each.iter().skip(fold).step_by(5).cloned().collect();
                mean(set.name, &part).recall_5
            };
            let parts = (0..5).map(part).collect();
            (mean(set.name, &each), Folds { name: set.name.to_owned(), parts })
        };
        SETS.iter().map(figures).unzip()
    }

    /// The figures of each query of a set.
    fn each(&self, set: &Set) -> Vec<Row> {
        let pool = self.pool(set.tools);
        let queries = self.corpus.queries.iter().filter(|query| (set.queries)(query));
        let row = |query: &Query| {
            let mut texts = vec![query.text.clone()];
            if set.form == Form::Steps {
                texts.extend(query.steps());
            }
            // The ranking of ten is that of a search for ten tools.
            let found = self.found(&texts, &pool, 10.max(texts.len()));
            let relevant = self.corpus.relevant(query);
            Row { tools: pool.0.len(), ..Row::new(set.name, &found, &relevant) }
        };
        queries.map(row).collect()
    }

    pub(crate) fn replays(&self) -> Vec<Replay> {
        let sets = [("LiveMCPBench", LIVE_TOOLS, 3), ("LiveMCPBench", LIVE_TOOLS, 5)];
        let all = [("LiveMCPBench, all MCP", MCP_TOOLS, 3)];
        sets.into_iter().chain(all).map(|(name, tools, k)| self.replay(name, tools, k)).collect()
    }

    fn replay(&self, name: &str, tools: fn(&super::data::Tool) -> bool, k: usize) -> Replay {
        let pool = self.pool(tools);
        let (mut recall, mut complete, mut number, mut tasks) = (0.0, 0.0, 0.0, 0.0);
        for query in self.corpus.queries.iter().filter(|query| LIVE(query)) {
            let searches = query.agent_queries();
            if searches.is_empty() {
                continue;
            }
            let found: HashSet<usize> = searches
                .iter()
                .flat_map(|search| self.found(std::slice::from_ref(search), &pool, k))
                .collect();
            let relevant = self.corpus.relevant(query);
            let hits = relevant.iter().filter(|group| group.iter().any(|id| found.contains(id)));
            let share = ratio(hits.count(), relevant.len());
            recall += share;
            complete += if share >= 1.0 { 1.0 } else { 0.0 };
            number += ratio(found.len(), 1);
            tasks += 1.0;
        }
        let (recall, complete, tools) = (recall / tasks, complete / tasks, number / tasks);
        Replay { name: name.to_owned(), k, recall, complete, tools }
    }

    /// Counts the relevant tools among the first ten that the minimum similarity removes.
    pub(crate) fn fit(&self) -> Fit {
        let (mut lost, mut all) = (0, 0);
        for set in SETS.iter().filter(|set| set.form == Form::OneQuery) {
            let pool = self.pool(set.tools);
            for query in self.corpus.queries.iter().filter(|query| (set.queries)(query)) {
                let relevant: HashSet<usize> =
                    self.corpus.relevant(query).into_iter().flatten().collect();
                let scores = self.scores(&query.text, &pool.1);
                for score in scores.iter().take(10) {
                    if pool.0.get(score.position).is_some_and(|at| relevant.contains(at)) {
                        all += 1;
                        lost += usize::from(score.similarity < MIN_SIMILARITY);
                    }
                }
            }
        }
        let pool = self.pool(MCP_TOOLS);
        let is_empty = |query: &&&str| {
            self.scores(query, &pool.1).iter().all(|score| score.similarity < MIN_SIMILARITY)
        };
        let empty = ABOUT_NOTHING.iter().filter(is_empty).count();
        let foreign_empty = ratio(empty, ABOUT_NOTHING.len());
        Fit { relevant_lost: ratio(lost, all), foreign_empty }
    }
}

// === impl Row ===

impl Row {
    /// The figures of one query.
    fn new(name: &str, found: &[usize], relevant: &[Vec<usize>]) -> Self {
        let recall = |k: usize| {
            let first = found.get(..k.min(found.len())).unwrap_or_default();
            let hit = |group: &&Vec<usize>| first.iter().any(|id| group.contains(id));
            ratio(relevant.iter().filter(hit).count(), relevant.len())
        };
        let is_relevant = |id: &usize| relevant.iter().any(|group| group.contains(id));
        let rank = found.iter().take(10).position(is_relevant);
        Self {
            name: name.to_owned(),
            tools: 0,
            queries: 1,
            recall_1: recall(1),
            recall_5: recall(5),
            recall_10: recall(10),
            mrr: rank.map_or(0.0, |rank| ratio(1, rank + 1)),
            ndcg_5: ndcg(found, relevant, 5),
            ndcg_10: ndcg(found, relevant, 10),
        }
    }
}

/// The mean of the figures of single queries.
fn mean(name: &str, rows: &[Row]) -> Row {
    let mean = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / ratio(rows.len().max(1), 1);
    Row {
        name: name.to_owned(),
        tools: rows.first().map_or(0, |row| row.tools),
        queries: rows.len(),
        recall_1: mean(|row| row.recall_1),
        recall_5: mean(|row| row.recall_5),
        recall_10: mean(|row| row.recall_10),
        mrr: mean(|row| row.mrr),
        ndcg_5: mean(|row| row.ndcg_5),
        ndcg_10: mean(|row| row.ndcg_10),
    }
}

/// Each group counts once, at the first of its tools.
fn ndcg(found: &[usize], relevant: &[Vec<usize>], k: usize) -> f64 {
    let gain = |rank: usize| 1.0 / (ratio(rank, 1) + 2.0).log2();
    let mut open: Vec<&Vec<usize>> = relevant.iter().collect();
    let mut sum = 0.0;
    for (rank, id) in found.iter().take(k).enumerate() {
        if let Some(group) = open.iter().position(|group| group.contains(id)) {
            open.swap_remove(group);
            sum += gain(rank);
        }
    }
    sum / (0..relevant.len().min(k)).map(gain).sum::<f64>()
}

#[expect(clippy::cast_precision_loss, reason = "no corpus is so large")]
fn ratio(part: usize, of: usize) -> f64 {
    part as f64 / of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_definitions() {
        let relevant = [vec![1], vec![2, 3]];
        let row = Row::new("x", &[9, 3, 2, 8, 7, 1], &relevant);
        assert_eq!((row.recall_1, row.recall_5, row.recall_10), (0.0, 0.5, 1.0));
        assert!((row.mrr - 0.5).abs() < 1e-9);
        let best = Row::new("x", &[1, 2], &relevant);
        assert!((best.ndcg_5 - 1.0).abs() < 1e-9 && (best.ndcg_10 - 1.0).abs() < 1e-9);
        assert!(Row::new("x", &[], &relevant).ndcg_10.abs() < 1e-9);
    }
}
