//! Tests of the ranking, with an index whose scores are given.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_model::{Effect, ItemId};
use capstan_wire::Json;
use futures::FutureExt;

use super::*;
use crate::ports::{BoxFuture, Scores};

/// Scores by query and name of the tool; two tools are alike if their descriptions begin alike.
#[derive(Default)]
struct GivenScores {
    of: HashMap<(&'static str, &'static str), f32>,
    names: std::sync::Mutex<Vec<(String, String)>>,
}

impl ToolIndex for GivenScores {
    fn add(&self, tools: &[SearchedTool<'_>]) -> IndexedTools {
        let mut names = self.names.lock().unwrap();
        let slots = tools.iter().map(|tool| {
            names.push((tool.name.to_owned(), tool.description.to_owned()));
            Slot(u32::try_from(names.len() - 1).unwrap())
        });
        IndexedTools::new(slots.collect(), Arc::new(()))
    }

    fn score<'a>(
        &'a self,
        query: &'a str,
        among: &'a [Slot],
        wanted: Wanted,
    ) -> BoxFuture<'a, Scores> {
        let names = self.names.lock().unwrap();
        let score = |(position, slot): (usize, &Slot)| {
            let name = &names[slot.0 as usize].0;
            let given = self.of.iter().find(|((q, n), _)| *q == query && n == name);
            let score = *given?.1;
            Some(Score { position, score, similarity: score })
        };
        let mut best: Vec<Score> = among.iter().enumerate().filter_map(score).collect();
        drop(names);
        best.sort_by(|one, other| other.score.total_cmp(&one.score));
        best.truncate(wanted.limit);
        std::future::ready(Scores { best, pending: 0 }).boxed()
    }

    fn likeness(&self, one: Slot, other: Slot) -> Option<f32> {
        let names = self.names.lock().unwrap();
        let first = |slot: Slot| names[slot.0 as usize].1.chars().next();
        Some(if first(one) == first(other) { 0.97 } else { 0.2 })
    }
}

fn tool(id: &str, description: &str) -> ToolView {
    let (server, name) = id.split_once("__").unwrap();
    ToolView {
        id: ItemId { server: server.parse().unwrap(), item: name.to_owned() },
        name: name.to_owned(),
        description: description.to_owned(),
        effect: Effect::Read,
        tokens: 1,
        definition: Json::empty_object(),
    }
}

/// The ids that a search finds, with their alternatives.
fn found(
    tools: &[(&str, &str)],
    scores: &[(&'static str, &'static str, f32)],
    queries: &[&str],
    limit: usize,
) -> Vec<String> {
    let of = scores.iter().map(|(query, name, score)| ((*query, *name), *score)).collect();
    let index = GivenScores { of, ..GivenScores::default() };
    let tools = tools.iter().map(|(id, description)| tool(id, description)).collect();
    let pool = ToolPool::with_about(&index, tools, &|_| String::new(), &str::to_owned);
    let search = Search {
        queries: queries.iter().map(ToString::to_string).collect(),
        limit,
        min_similarity: 0.3,
        wait: Duration::ZERO,
    };
    let found = pool.search(&index, &search).now_or_never().unwrap();
    let id = |position: &usize| pool.tools()[*position].id.to_string();
    let all = |tool: &FoundTool| {
        let ids = std::iter::once(&tool.position).chain(&tool.alternatives).map(id);
        ids.collect::<Vec<_>>().join(" = ")
    };
    found.tools.iter().map(all).collect()
}

#[test]
fn tools_below_the_minimum_do_not_fit() {
    let tools = [("s__a", ""), ("s__b", "")];
    let scores = [("q", "a", 0.29), ("q", "b", 0.31)];
    assert_eq!(found(&tools, &scores, &["q"], 10), ["s__b"]);
    assert_eq!(found(&tools, &scores[..1], &["q"], 10), [""; 0], "nothing fits");
    assert_eq!(found(&tools, &scores, &["", " "], 10), [""; 0]);
    assert_eq!(found(&[], &scores, &["q"], 10), [""; 0]);
}

#[test]
fn each_query_gets_a_tool_although_others_have_better_ones() {
    let tools = [("s__a", ""), ("s__b", ""), ("s__c", ""), ("s__d", "")];
    let scores = [("one", "a", 0.9), ("one", "b", 0.8), ("one", "c", 0.7), ("two", "d", 0.4)];
    assert_eq!(found(&tools, &scores, &["one", "two"], 2), ["s__a", "s__d"]);
    assert_eq!(found(&tools, &scores, &["one", "two"], 3), ["s__a", "s__b", "s__d"]);
    assert_eq!(found(&tools, &scores, &["one", "two"], 1), ["s__a", "s__d"], "one for each");
}

#[test]
fn a_tool_that_several_queries_find_is_there_once() {
    let tools = [("s__a", ""), ("s__b", "")];
    let scores = [("one", "a", 0.5), ("two", "a", 0.9), ("two", "b", 0.6)];
    assert_eq!(found(&tools, &scores, &["one", "two"], 5), ["s__a", "s__b"]);
}

#[test]
fn the_same_tool_of_other_servers_is_an_alternative() {
    let tools = [
        ("one__read_file", "Reads a file"),
        ("two__readFile", "Reads some file"),
        ("three__read_file", "Opens a valve"),
        ("one__read_files", "Reads files"),
    ];
    let scores = [("q", "read_file", 0.9), ("q", "readFile", 0.8), ("q", "read_files", 0.7)];
    let expected = ["one__read_file = two__readFile", "three__read_file", "one__read_files"];
    assert_eq!(found(&tools, &scores, &["q"], 10), expected);
}

#[test]
fn queries_beyond_the_maximum_are_ignored() {
    let queries = vec!["q"; 1_000];
    assert_eq!(found(&[("s__a", "")], &[("q", "a", 0.9)], &queries, 10), ["s__a"]);
}
