//! Finds the tools that fit a request.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::ToolView;
use capstan_hub::ports::{BoxFuture, Listing};
use capstan_hub::search::{Found, FoundTool, MAX_FOUND, MAX_QUERIES, Search, ToolPool};
use capstan_model::{Kind, ServerName};
use serde::{Deserialize, Serialize};

use super::items::Missing;
use super::reading::{Provenance, ReadLists, Reading};
use super::{Interact, Local, NoServers, Operation, operator};
use crate::{AppError, HubPurpose};

/// How long a search waits for the embeddings of tools that were never searched before. What is
/// computed until then is kept.
const WAIT: Duration = Duration::from_secs(5);

/// Finds tools by what they do.
#[derive(Debug, Serialize, Deserialize)]
pub struct SearchTools {
    /// The queries: one for each part of a task.
    pub queries: Vec<String>,
    /// Maximum number of tools; `None` for that of the configuration.
    pub limit: Option<u32>,
    /// Only the tools of this server.
    pub server: Option<String>,
    /// How the lists are read.
    pub reading: Reading,
}

/// The result of [`SearchTools`].
#[derive(Debug, Serialize, Deserialize)]
pub struct FoundTools {
    /// The tools that fit, best first.
    pub tools: Vec<FoundRow>,
    /// Number of tools that were searched.
    pub searched: usize,
    /// Number of tools that were searched by their words only.
    pub pending: usize,
    /// Servers that are missing from the search.
    pub missing: Missing,
    /// The reason why there are no tools; set only if all servers were searched and there are none.
    pub none: Option<NoServers>,
}

/// One tool, as `--json` prints it.
#[derive(Debug, Serialize, Deserialize)]
pub struct FoundRow {
    /// The id to call it by.
    pub id: String,
    /// The server.
    pub server: ServerName,
    /// The name.
    pub name: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// The description.
    pub description: String,
    /// The ids of equivalent tools of other servers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub alternatives: Vec<String>,
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
}

impl Operation for SearchTools {
    const NAME: &'static str = "tools/search";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = FoundTools;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<FoundTools, AppError>> {
        Box::pin(async move {
            let front = &**front;
            self.check()?;
            local.tell_problems_of_list(front);
            let (listing, reading) = (Listing::Tools, self.reading);
            let read = match &self.server {
                Some(server) => local.gather_one(front, listing, server, reading).await?,
                None => local.gather(front, listing, reading).await,
            };
            local.remember(Kind::Tool, &read);
            front.status("searching");
            Ok(self.search(local, &read).await)
        })
    }
}

// === impl SearchTools ===

impl SearchTools {
    fn check(&self) -> Result<(), AppError> {
        if self.queries.iter().all(|query| query.trim().is_empty()) {
            return Err(AppError::usage("the query is empty").hint("say what the tool should do"));
        }
        if self.queries.len() > MAX_QUERIES {
            let hint = "search again for the rest";
            return Err(AppError::usage(format!("more than {MAX_QUERIES} queries")).hint(hint));
        }
        Ok(())
    }

    /// Searches only the tools that the operator may see.
    async fn search(&self, local: &Local, read: &ReadLists) -> FoundTools {
        let settings = &local.setup.loaded.config.search;
        let limit = self.limit.unwrap_or(settings.top_k);
        #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
        let min_similarity = settings.min_similarity as f32;
        let search = Search {
            queries: self.queries.clone(),
            limit: usize::try_from(limit).unwrap_or(MAX_FOUND),
            min_similarity,
            wait: WAIT,
        };
        let visible = local.hub.visible_tools(&read.gathered, &operator());
        let pool = ToolPool::new(&local.hub, &*local.index, visible);
        let Found { tools, pending } = pool.search(&*local.index, &search).await;
        FoundTools {
            tools: tools.iter().filter_map(|found| FoundRow::new(&pool, found, read)).collect(),
            searched: pool.tools().len(),
            pending,
            missing: Missing::of(&local.hub, &read.gathered),
            none: local.none(),
        }
    }
}

// === impl FoundRow ===

impl FoundRow {
    fn new(pool: &ToolPool, found: &FoundTool, read: &ReadLists) -> Option<Self> {
        let tool = pool.tools().get(found.position)?;
        let others = found.alternatives.iter().filter_map(|other| pool.tools().get(*other));
        let id = |tool: &ToolView| tool.shown_id().to_string();
        Some(Self {
            id: id(tool),
            server: tool.id.server.clone(),
            name: tool.name.clone(),
            score: (f64::from(found.score) * 1000.0).round() / 1000.0,
            description: tool.description.clone(),
            alternatives: others.map(id).collect(),
            provenance: read.provenance(&tool.id.server),
        })
    }
}
