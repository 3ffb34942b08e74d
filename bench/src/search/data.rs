//! The corpus of tools and queries.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use capstan_hub::ports::{IndexedTools, SearchedTool, ToolIndex};
use capstan_wire::Json;
use serde::Deserialize;

/// Tools and queries.
pub(crate) struct Corpus {
    pub(crate) tools: Vec<Tool>,
    pub(crate) queries: Vec<Query>,
    positions: HashMap<String, usize>,
}

#[derive(Deserialize)]
pub(crate) struct Tool {
    id: String,
    pub(crate) corpus: String,
    pub(crate) source: String,
    server: String,
    #[serde(default)]
    server_description: Option<String>,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Json>,
    #[serde(skip, default = "Json::empty_object")]
    schema: Json,
}

#[derive(Deserialize)]
pub(crate) struct Query {
    #[serde(rename = "query")]
    pub(crate) text: String,
    /// Any tool of a group is as good as another.
    pub(crate) relevant: Vec<Vec<String>>,
    pub(crate) source: String,
    #[serde(default)]
    steps: Option<String>,
    #[serde(default)]
    agent_queries: Option<Vec<String>>,
}

// === impl Corpus ===

impl Corpus {
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let shown = folder.display();
        let missing = || {
            format!("cannot read `{shown}`; set CAPSTAN_BENCH_DATA to the folder that has `tools`")
        };
        let mut text = String::new();
        let file = File::open(folder.join("catalogue.jsonl.gz")).with_context(missing)?;
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).with_context(missing)?;
        let mut tools: Vec<Tool> = lines(&text)?;
        for tool in &mut tools {
            tool.schema = tool.input_schema.take().unwrap_or_else(Json::empty_object);
        }
        let queries =
            std::fs::read_to_string(folder.join("queries.jsonl")).with_context(missing)?;
        let queries = lines(&queries)?;
        let positions = tools.iter().map(|tool| tool.id.clone()).zip(0..).collect();
        Ok(Self { tools, queries, positions })
    }

    /// The positions of the tools of each group that a query needs.
    pub(crate) fn relevant(&self, query: &Query) -> Vec<Vec<usize>> {
        let group = |ids: &Vec<String>| {
            ids.iter().filter_map(|id| self.positions.get(id).copied()).collect()
        };
        query.relevant.iter().map(group).collect()
    }

    /// Adds all tools to an index.
    pub(crate) fn add_to(&self, index: &dyn ToolIndex) -> IndexedTools {
        let tools: Vec<SearchedTool<'_>> = self.tools.iter().map(Tool::searched).collect();
        index.add(&tools)
    }
}

// === impl Tool ===

impl Tool {
    pub(crate) fn searched(&self) -> SearchedTool<'_> {
        SearchedTool {
            server: &self.server,
            about: self.server_description.as_deref().unwrap_or_default(),
            name: &self.name,
            description: self.description.as_deref().unwrap_or_default(),
            schema: &self.schema,
        }
    }
}

// === impl Query ===

impl Query {
    /// The steps of the task, as its annotator wrote them.
    pub(crate) fn steps(&self) -> Vec<String> {
        let lines = self.steps.iter().flat_map(|steps| steps.lines());
        let numbered = |c: char| c.is_ascii_digit() || matches!(c, '.' | ')' | ' ');
        let steps = lines.map(|line| line.trim_start_matches(numbered).trim().to_owned());
        steps.filter(|step| !step.is_empty()).collect()
    }

    /// What an agent has searched for.
    pub(crate) fn agent_queries(&self) -> Vec<String> {
        let queries = self.agent_queries.iter().flatten();
        queries.map(|text| request(text)).filter(|text| !text.is_empty()).collect()
    }
}

/// The text of an agent's request, which names a kind of server and of tool.
fn request(text: &str) -> String {
    let part =
        |key: &str| text.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::trim);
    match (part("server:"), part("tool:")) {
        (Some(server), Some(tool)) => format!("{server}: {tool}"),
        (one, other) => one.or(other).unwrap_or(text.trim()).to_owned(),
    }
}

fn lines<T: serde::de::DeserializeOwned>(text: &str) -> anyhow::Result<Vec<T>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(serde_json::from_str).collect::<Result<Vec<T>, _>>()?)
}
