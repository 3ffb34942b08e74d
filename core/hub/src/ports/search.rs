//! Tool search: the port of the index that scores tools.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use capstan_wire::Json;

use super::BoxFuture;

/// Scores tools by how well they fit a query. `core/hub/src/search` ranks by these scores.
///
/// The index knows texts and no permissions. Callers pass the tools that may be found, so that a
/// tool that a caller may not see influences no part of the result.
pub trait ToolIndex: Send + Sync {
    /// Adds tools. Those that are in the index already cost only the digest of their definition.
    fn add(&self, tools: &[SearchedTool<'_>]) -> IndexedTools;

    /// Scores `among` for a query. Starts to embed tools and loads the model when it is first used.
    fn score<'a>(
        &'a self,
        query: &'a str,
        among: &'a [Slot],
        wanted: Wanted,
    ) -> BoxFuture<'a, Scores>;

    /// The similarity of two tools from 0 to 1; `None` if one of them is not embedded.
    fn likeness(&self, one: Slot, other: Slot) -> Option<f32>;
}

/// The texts of a tool that are searched.
#[derive(Clone, Copy, Debug)]
pub struct SearchedTool<'a> {
    /// The name of its server.
    pub server: &'a str,
    /// The server's text about itself; may be empty.
    pub about: &'a str,
    /// The shown name of the tool.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// The schema of its arguments.
    pub schema: &'a Json,
}

/// The place of a tool in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// Tools in the index, in the order in which they were added. They stay there while a clone of this
/// value exists.
#[derive(Clone)]
pub struct IndexedTools {
    slots: Arc<[Slot]>,
    _kept: Arc<dyn Any + Send + Sync>,
}

/// How much a caller wants to know, and how long it waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Maximum number of tools.
    pub limit: usize,
    /// How long to wait for embeddings; without them the score is lexical. Zero never waits.
    pub wait: Duration,
}

/// The best tools for a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// The tools, best first. Equal scores keep the order of the tools.
    pub best: Vec<Score>,
    /// Number of tools that are not embedded yet; they were scored by their words.
    pub pending: usize,
}

/// The score of one tool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Its position in the tools that were searched.
    pub position: usize,
    /// Its score relative to the other tools of this query, at most 1.
    pub score: f32,
    /// Its similarity to the query by itself, from 0 to 1.
    pub similarity: f32,
}

// === impl IndexedTools ===

impl IndexedTools {
    /// Creates the value; the index drops the tools when `kept` is dropped.
    pub fn new(slots: Arc<[Slot]>, kept: Arc<dyn Any + Send + Sync>) -> Self {
        Self { slots, _kept: kept }
    }

    /// The places of the tools.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}

impl std::fmt::Debug for IndexedTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("IndexedTools").field(&self.slots.len()).finish()
    }
}
