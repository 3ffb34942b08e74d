//! Tool search: ranks the tools that a caller may see by how well they fit its queries.
//!
//! The index scores (port `ToolIndex`), this module decides. The tools of a [`ToolPool`] were
//! filtered before: by permissions, trust, exposure, pins and schemas ([`Hub::visible_tools`]), so a
//! caller finds no tool that it may not call.

mod signature;

use std::time::Duration;

use capstan_model::ServerName;

use crate::catalog::ToolView;
use crate::hub::Hub;
use crate::ports::{IndexedTools, Score, SearchedTool, Slot, ToolIndex, Wanted};

pub use signature::signature;

/// Maximum number of queries in one search; further ones are ignored.
pub const MAX_QUERIES: usize = 8;

/// Maximum number of tools in a result.
pub const MAX_FOUND: usize = 100;

/// Tools of different servers with one name are duplicates from this similarity on.
const DUPLICATE: f32 = 0.95;

/// Maximum number of alternatives that are named for one tool.
const MAX_ALTERNATIVES: usize = 5;

/// Further tools that are scored for each query, because some of them may be duplicates.
const SPARE: usize = 20;

/// Tools that can be found, prepared for search. Prepare it once for a list, and keep it with that.
pub struct ToolPool {
    tools: Vec<ToolView>,
    slots: Vec<Slot>,
    /// Keeps the tools in the index.
    _kept: Vec<IndexedTools>,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// What is searched for: one short query for each part of a task. At most [`MAX_QUERIES`].
    pub queries: Vec<String>,
    /// Maximum number of tools; at least one for each query is returned if one fits it.
    pub limit: usize,
    /// Tools that are less similar to a query do not fit it; from 0 to 1.
    pub min_similarity: f32,
    /// How long to wait for embeddings. Without them, tools are found by their words.
    pub wait: Duration,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The tools that fit, best first; empty if nothing fits.
    pub tools: Vec<FoundTool>,
    /// Number of tools that were scored by their words only, because they are not embedded yet.
    pub pending: usize,
}

/// A tool that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTool {
    /// Its position in the pool.
    pub position: usize,
    /// Its score from 0 to 1.
    pub score: f32,
    /// The number of the query that it fits best.
    pub query: usize,
    /// The positions of equivalent tools of other servers.
    pub alternatives: Vec<usize>,
}

// === impl ToolPool ===

impl ToolPool {
    /// Prepares tools for search. The cost is that of the tools that the index does not have yet.
    pub fn new(hub: &Hub, index: &dyn ToolIndex, tools: Vec<ToolView>) -> Self {
        let screens = &hub.catalog().screens;
        let short = |text: &str| screens.description(text).into_owned();
        Self::with_about(index, tools, &|server| about(hub, server), &short)
    }

    /// Prepares tools, with the texts of their servers about themselves.
    fn with_about(
        index: &dyn ToolIndex,
        tools: Vec<ToolView>,
        about: &dyn Fn(&ServerName) -> String,
        short: &dyn Fn(&str) -> String,
    ) -> Self {
        let short: Vec<String> = tools.iter().map(|tool| short(&tool.description)).collect();
        let schemas: Vec<_> = tools.iter().map(ToolView::input_schema).collect();
        let mut slots = Vec::with_capacity(tools.len());
        let mut kept = Vec::new();
        let mut rest = tools.iter().zip(schemas.iter().zip(&short)).peekable();
        while let Some((first, _)) = rest.peek() {
            let server = first.id.server.clone();
            let about = about(&server);
            let mut searched = Vec::new();
            while let Some((tool, (schema, description))) =
                rest.next_if(|(tool, _)| tool.id.server == server)
            {
                let name = &*tool.name;
                let server = tool.id.server.as_str();
                searched.push(SearchedTool { server, about: &about, name, description, schema });
            }
            let indexed = index.add(&searched);
            slots.extend_from_slice(indexed.slots());
            kept.push(indexed);
        }
        Self { tools, slots, _kept: kept }
    }

    /// The tools, in the order in which they were given.
    pub fn tools(&self) -> &[ToolView] {
        &self.tools
    }

    /// Searches among the tools.
    pub async fn search(&self, index: &dyn ToolIndex, search: &Search) -> Found {
        let queries = search.queries.iter().map(|query| query.trim());
        let queries: Vec<(usize, &str)> =
            queries.enumerate().filter(|(_, query)| !query.is_empty()).take(MAX_QUERIES).collect();
        let limit = search.limit.clamp(1, MAX_FOUND).max(queries.len());
        let wanted = Wanted { limit: limit * 2 + SPARE, wait: search.wait };
        let mut pending = 0;
        let mut ranked = Vec::with_capacity(queries.len());
        for (number, query) in queries {
            let scores = index.score(query, &self.slots, wanted).await;
            pending = scores.pending;
            ranked.push((number, scores.best));
        }
        let same = |one, other| self.are_duplicates(index, one, other);
        Found { tools: combine(&ranked, search.min_similarity, limit, &same), pending }
    }

    /// True if two tools of different servers do the same.
    fn are_duplicates(&self, index: &dyn ToolIndex, one: usize, other: usize) -> bool {
        let (Some(a), Some(b)) = (self.tools.get(one), self.tools.get(other)) else { return false };
        if a.id.server == b.id.server || !is_same_name(&a.name, &b.name) {
            return false;
        }
        if a.description == b.description {
            return true;
        }
        let (Some(a), Some(b)) = (self.slots.get(one), self.slots.get(other)) else { return false };
        index.likeness(*a, *b).is_some_and(|likeness| likeness >= DUPLICATE)
    }
}

/// Combines the scores of several queries, each with its number: at least one tool for each query if
/// one fits it, then the best of all. `same` tells duplicates.
pub fn combine(
    scores: &[(usize, Vec<Score>)],
    min_similarity: f32,
    limit: usize,
    same: &dyn Fn(usize, usize) -> bool,
) -> Vec<FoundTool> {
    let ranked = scores.iter().map(|(query, scores)| Ranked::new(*query, scores, min_similarity));
    let ranked: Vec<Ranked> = ranked.collect();
    let mut picked = Picked { same, tools: Vec::new(), limit };
    picked.best_of_each(&ranked);
    picked.best_of_all(&ranked);
    let mut tools = picked.tools;
    tools.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(one.position.cmp(&other.position))
    });
    tools
}

/// The tools that fit one query, best first.
struct Ranked(Vec<FoundTool>);

// === impl Ranked ===

impl Ranked {
    /// Scores are relative to the best tool of a query. Times the similarity of the most similar
    /// tool they can be compared with those of other queries.
    fn new(query: usize, scores: &[Score], min_similarity: f32) -> Self {
        let most = scores.iter().map(|score| score.similarity).fold(0.0, f32::max);
        let fit = scores.iter().filter(|score| score.similarity >= min_similarity);
        let tool = |score: &Score| FoundTool {
            position: score.position,
            score: score.score * most,
            query,
            alternatives: Vec::new(),
        };
        Self(fit.map(tool).collect())
    }
}

/// The tools of a result, while it is put together.
struct Picked<'a> {
    same: &'a dyn Fn(usize, usize) -> bool,
    tools: Vec<FoundTool>,
    limit: usize,
}

// === impl Picked ===

impl Picked<'_> {
    /// Takes the best tool of each query.
    fn best_of_each(&mut self, ranked: &[Ranked]) {
        for Ranked(tools) in ranked {
            for tool in tools {
                if self.add(tool) {
                    break;
                }
            }
        }
    }

    /// Takes the best of all remaining tools.
    fn best_of_all(&mut self, ranked: &[Ranked]) {
        let mut all: Vec<&FoundTool> = ranked.iter().flat_map(|Ranked(tools)| tools).collect();
        all.sort_by(|one, other| {
            other.score.total_cmp(&one.score).then(one.position.cmp(&other.position))
        });
        for tool in all {
            self.add(tool);
        }
    }

    /// Adds a tool; true if the result has it now. A duplicate becomes an alternative.
    fn add(&mut self, tool: &FoundTool) -> bool {
        let position = tool.position;
        let is_in = |found: &FoundTool| {
            found.position == position || found.alternatives.contains(&position)
        };
        if let Some(found) = self.tools.iter_mut().find(|found| is_in(found)) {
            if found.position == position && found.score < tool.score {
                (found.score, found.query) = (tool.score, tool.query);
            }
            // The query is served by a tool that another one has found before.
            return true;
        }
        let same = self.same;
        let is_same = |found: &&mut FoundTool| same(found.position, position);
        if let Some(found) = self.tools.iter_mut().find(is_same) {
            if found.alternatives.len() < MAX_ALTERNATIVES {
                found.alternatives.push(position);
            }
            return true;
        }
        let has_room = self.tools.len() < self.limit;
        if has_room {
            self.tools.push(tool.clone());
        }
        has_room
    }
}

/// The server's text about itself: title, description and instructions.
fn about(hub: &Hub, server: &ServerName) -> String {
    let Some(about) = hub.about(server) else { return String::new() };
    let description =
        about.info.as_ref().and_then(|info| capstan_wire::object::get_string(info, "description"));
    let parts = [about.title.as_deref(), description.as_deref(), about.instructions.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(". ")
}

/// True if two names differ only in case and separators.
fn is_same_name(one: &str, other: &str) -> bool {
    let plain = |name: &str| {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    one == other || plain(one) == plain(other)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
