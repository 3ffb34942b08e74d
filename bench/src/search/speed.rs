//! How long searches and changes take, and what a tool costs in memory.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use capstan_hub::ports::{IndexedTools, SearchedTool, Slot, ToolIndex, Wanted};
use capstan_search::SearchIndex;
use serde::Serialize;
use tokio::runtime::Runtime;

use super::data::Corpus;

/// Number of searches that are timed.
const SEARCHES: usize = 400;

/// Number of searches with the model that are timed.
const MODEL_SEARCHES: usize = 200;

/// Number of changes that are timed.
const CHANGES: usize = 50;

/// Number of tools of a change.
const CHANGED: usize = 50;

const TOP: usize = 10;

#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) tools: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// Private memory of the process (`RssAnon`), in bytes.
#[derive(Serialize)]
pub(crate) struct Memory {
    /// What each tool adds, without its vector.
    bytes_a_tool: u64,
    /// What each tool costs with its vector.
    bytes_a_tool_with_vector: u64,
    /// What the index of all tools adds without the model.
    before_first_search: u64,
    /// What the model adds.
    model: u64,
}

// === impl Memory ===

impl Memory {
    pub(crate) fn measure(corpus: &Corpus, runtime: &Runtime) -> anyhow::Result<Self> {
        let tools = corpus.tools.len() as u64;
        let empty = private()?;
        let index = SearchIndex::new(None);
        let held = corpus.add_to(&index);
        let filled = private()?;
        let small = SearchIndex::new(None);
        let one = corpus.tools.first().map(|tool| small.add(&[tool.searched()]));
        let wanted = Wanted { limit: 1, wait: Duration::from_mins(1) };
        let slots = one.as_ref().map(IndexedTools::slots).unwrap_or_default();
        runtime.block_on(small.score("a query", slots, wanted));
        let modelled = private()?;
        drop(held);
        let per_tool = filled.saturating_sub(empty) / tools.max(1);
        Ok(Self {
            bytes_a_tool: per_tool,
            // 384 bytes and a scale.
            bytes_a_tool_with_vector: per_tool + 388,
            before_first_search: filled.saturating_sub(empty),
            model: modelled.saturating_sub(filled),
        })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes >> 20;
        write!(
            f,
            "private memory: {} bytes a tool with its vector ({} without); all tools {} MiB before \
             the first search, the model {} MiB more after it",
            self.bytes_a_tool_with_vector,
            self.bytes_a_tool,
            mebibytes(self.before_first_search),
            mebibytes(self.model)
        )
    }
}

pub(crate) fn rows(corpus: &Corpus, vectors: &Path, runtime: &Runtime) -> Vec<Row> {
    let mut rows = Vec::new();
    for tools in [1_000, 10_000, 100_000] {
        let index = SearchIndex::lexical();
        let (held, built) = fill(corpus, &index, tools);
        rows.push(Row { name: "build".to_owned(), tools, p50_ms: ms(built), p99_ms: ms(built) });
        let slots: Vec<Slot> = held.iter().flat_map(|held| held.slots().to_vec()).collect();
        let wanted = Wanted { limit: TOP, wait: Duration::ZERO };
        rows.push(timed("search by words", tools, corpus, SEARCHES, |query| {
            runtime.block_on(index.score(query, &slots, wanted));
        }));
        if tools == 10_000 {
            rows.push(changes(corpus, &index, &slots, runtime));
        }
    }
    let index = SearchIndex::new(Some(vectors.to_owned()));
    let (held, _) = fill(corpus, &index, 10_000);
    let slots: Vec<Slot> = held.iter().flat_map(|held| held.slots().to_vec()).collect();
    let wanted = Wanted { limit: TOP, wait: Duration::from_hours(1) };
    runtime.block_on(index.score("warm up", &slots, wanted));
    rows.push(timed("search with the model", 10_000, corpus, MODEL_SEARCHES, |query| {
        runtime.block_on(index.score(query, &slots, wanted));
    }));
    rows
}

/// Adds tools of the corpus, again with other names if there are not enough, a server at a time.
fn fill(corpus: &Corpus, index: &SearchIndex, tools: usize) -> (Vec<IndexedTools>, Duration) {
    let rounds: Vec<String> =
        (0..=tools / corpus.tools.len()).map(|n| format!("copy{n}")).collect();
    let all = rounds.iter().enumerate().flat_map(|(round, name)| {
        corpus.tools.iter().map(move |tool| {
            let tool = tool.searched();
            if round == 0 { tool } else { SearchedTool { server: name, ..tool } }
        })
    });
    let all: Vec<SearchedTool<'_>> = all.take(tools).collect();
    let begun = Instant::now();
    let held = all.chunks(CHANGED).map(|server| index.add(server)).collect();
    (held, begun.elapsed())
}

/// From a changed list of 50 tools to the first search that finds them.
fn changes(corpus: &Corpus, index: &SearchIndex, slots: &[Slot], runtime: &Runtime) -> Row {
    let mut times = Vec::new();
    for round in 0..CHANGES {
        let name = format!("changed{round}");
        let new = corpus.tools.iter().skip(round * CHANGED).take(CHANGED);
        let new: Vec<SearchedTool<'_>> =
            new.map(|tool| SearchedTool { server: &name, ..tool.searched() }).collect();
        let begun = Instant::now();
        let held = index.add(&new);
        let slots: Vec<Slot> = slots.iter().chain(held.slots()).copied().collect();
        let wanted = Wanted { limit: TOP, wait: Duration::ZERO };
        runtime.block_on(index.score(&name, &slots, wanted));
        times.push(begun.elapsed());
    }
    row("50 tools change, then a search", slots.len(), times)
}

fn timed(name: &str, tools: usize, corpus: &Corpus, count: usize, run: impl Fn(&str)) -> Row {
    let step = (corpus.queries.len() / count).max(1);
    let queries = corpus.queries.iter().step_by(step).take(count);
    let time = |query: &super::data::Query| {
        let begun = Instant::now();
        run(&query.text);
        begun.elapsed()
    };
    row(name, tools, queries.map(time).collect())
}

fn row(name: &str, tools: usize, mut times: Vec<Duration>) -> Row {
    times.sort_unstable();
    let at = |share: usize| times.get((times.len() - 1) * share / 100).copied().unwrap_or_default();
    Row { name: name.to_owned(), tools, p50_ms: ms(at(50)), p99_ms: ms(at(99)) }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The private memory of this process.
fn private() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("cannot read the memory")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.map(|kibibytes| kibibytes << 10).context("the system does not tell private memory")
}
