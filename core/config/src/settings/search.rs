//! The keys of `[search]`.

use serde::Serialize;

use super::define::keys;
use super::form::{OneOf, Share};
use crate::fields::Words;

keys! {
    /// Tool search: `capstan search`, and the tools that a model is offered.
    pub merged Search
    keys {
        /// How the tools for a model are selected: `"embedding"` offers those that fit the conversation, `"none"` offers all.
        strategy: Strategy = Strategy::Embedding, nearest;
        /// The number of tools that a search returns, and that a model is offered in addition at each turn.
        top_k: u32 = 10, nearest;
        /// Tools that are less similar to a query do not fit it; from 0 to 1.
        min_similarity: f64 as Share = 0.3, nearest;
        /// Tools that a model is always offered: `read_file` of any server, or `server__read_file` of one.
        always_include: Vec<String> = Vec::new(), nearest;
        /// Servers with fewer tools are offered whole.
        min_tools_to_filter: u32 = 5, nearest;
    }
}

/// How the tools for a model are selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// By search.
    #[default]
    Embedding,
    /// Not at all: all tools are offered.
    None,
}

impl OneOf for Strategy {
    const WORDS: Words<Self> = &[("embedding", Self::Embedding), ("none", Self::None)];
}
