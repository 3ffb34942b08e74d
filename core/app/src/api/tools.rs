//! Lists the tools of servers, also in the format of a model provider.

use std::sync::Arc;

use capstan_hub::Hub;
use capstan_hub::catalog::{Provider, ToolView};
use capstan_hub::ports::{BoxFuture, Listing};
use capstan_model::{CallError, Effect, ItemId, Kind, ServerName, Target};
use capstan_wire::Json;
use serde::{Deserialize, Serialize};

use super::items::Missing;
use super::reading::{Provenance, ReadLists, Reading};
use super::{Interact, Local, NoServers, Operation, operator};
use crate::{AppError, HubPurpose};

/// Lists tools; the name of a tool shows only that one.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListTools {
    /// A server or a tool; `None` for all tools.
    pub name: Option<String>,
    /// The model provider whose names and schemas are used.
    pub provider: Option<Provider>,
    /// How the lists are read.
    pub reading: Reading,
}

/// The result of [`ListTools`].
#[derive(Debug, Serialize, Deserialize)]
pub struct Tools {
    /// The tools, in the order of the configuration.
    pub tools: Vec<ToolRow>,
    /// True if one tool was requested by name.
    pub named: bool,
    /// Errors of tools that are hidden because their schemas cannot be used.
    pub hidden: Vec<String>,
    /// Servers that are missing from the list.
    pub missing: Missing,
    /// The reason why there are no tools; set only if all servers were queried and there are none.
    pub none: Option<NoServers>,
    /// A required server that failed.
    pub required: Option<ServerName>,
}

/// One tool, as `--json` prints it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ToolRow {
    /// The id to call it by.
    pub id: String,
    /// The server.
    pub server: ServerName,
    /// The name.
    pub name: String,
    /// The server's own name, if the operator chose another; rules refer to the tool by it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub own_name: Option<String>,
    /// The description.
    pub description: String,
    /// The effect of the tool.
    pub effect: Effect,
    /// Approximate number of tokens that its definition costs a model.
    pub tokens: usize,
    /// The schema of its arguments.
    #[serde(rename = "inputSchema")]
    pub input_schema: Json,
    /// The name for a model provider, if one was requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub public_name: Option<String>,
    /// Where it comes from.
    #[serde(flatten)]
    pub provenance: Provenance,
}

/// The tools that are listed for a provider.
enum Wanted {
    All,
    Of(ServerName),
    One(ItemId),
}

impl Operation for ListTools {
    const NAME: &'static str = "tools/list";
    const PURPOSE: HubPurpose = HubPurpose::Lists;
    type Output = Tools;

    fn run<'a>(
        &'a self,
        local: &'a Local,
        front: &'a Arc<dyn Interact>,
    ) -> BoxFuture<'a, Result<Tools, AppError>> {
        Box::pin(async move {
            let front = &**front;
            local.tell_problems_of_list(front);
            match (self.provider, &self.name) {
                (Some(provider), name) => {
                    for_provider(local, front, provider, name.as_deref(), self.reading).await
                }
                (None, None) => {
                    let read = local.gather(front, Listing::Tools, self.reading).await;
                    local.remember(Kind::Tool, &read);
                    Ok(Tools { none: local.none(), ..Tools::of(local, &read) })
                }
                (None, Some(name)) if local.names_item(name) => {
                    let (tool, provenance) = find_tool(local, front, name, self.reading).await?;
                    let tools = vec![ToolRow::new(&tool, tool.input_schema(), provenance)];
                    Ok(Tools { tools, named: true, ..Tools::of(local, &ReadLists::default()) })
                }
                (None, Some(name)) => {
                    let reading = self.reading;
                    let read = local.gather_one(front, Listing::Tools, name, reading).await?;
                    local.remember(Kind::Tool, &read);
                    Ok(Tools::of(local, &read))
                }
            }
        })
    }
}

/// The tools in a provider's format. All servers are queried, because the name of a tool depends on
/// the tools of all of them.
async fn for_provider(
    local: &Local,
    front: &dyn Interact,
    provider: Provider,
    name: Option<&str>,
    reading: Reading,
) -> Result<Tools, AppError> {
    let hub = &*local.hub;
    let wanted = Wanted::new(local, front, name, reading).await?;
    let mut read = local.gather(front, Listing::Tools, reading).await;
    hub.name_tools(&read.gathered, provider.alphabet());
    local.remember(Kind::Tool, &read);
    read.gathered.lists.retain(|server, _| wanted.is_of(server));
    let mut hidden = hub.hidden_tools(&read.gathered, &operator());
    let mut tools = Vec::new();
    let visible = hub.visible_tools(&read.gathered, &operator());
    for tool in visible.iter().filter(|tool| wanted.has(&tool.id)) {
        match offer(hub, tool, provider, read.provenance(&tool.id.server)) {
            Ok(row) => tools.push(row),
            Err(error) => hidden.push(error),
        }
    }
    let found = Tools::of(local, &read);
    if let Wanted::One(id) = wanted {
        let is_it = |error: &CallError| matches!(error, CallError::Hidden { item, .. } if *item == id.to_string());
        return match (tools.is_empty(), hidden.into_iter().find(is_it)) {
            (false, _) => Ok(Tools { tools, named: true, ..found }),
            (true, Some(error)) => Err(error.into()),
            (true, None) => Err(AppError::not_found(format!("no tool named `{id}`"))),
        };
    }
    Ok(Tools { tools, hidden: texts(&hidden), ..found })
}

/// Finds a tool in a saved list if there is one, else in that of its server.
async fn find_tool(
    local: &Local,
    front: &dyn Interact,
    name: &str,
    reading: Reading,
) -> Result<(ToolView, Provenance), AppError> {
    let target = Target::tool(name);
    for id in local.hub.ids_of(&target) {
        if let Some(read) = local.saved_list(Listing::Tools, &id.server, reading).await {
            let visible = local.hub.visible_tools(&read.gathered, &operator()).into_iter();
            let is_it = |tool: &ToolView| tool.id == id || tool.shown_id() == id;
            if let Some(tool) = visible.into_iter().find(is_it) {
                return Ok((tool, read.provenance(&id.server)));
            }
        }
    }
    front.status(&format!("looking for `{name}`"));
    Ok((local.hub.find_tool(&operator(), name).await?, Provenance::default()))
}

fn offer(
    hub: &Hub,
    tool: &ToolView,
    provider: Provider,
    provenance: Provenance,
) -> Result<ToolRow, CallError> {
    let hidden = |reason: String| CallError::Hidden { item: tool.id.to_string(), reason };
    let schema = provider.fit(&tool.input_schema()).map_err(|unfit| hidden(unfit.to_string()))?;
    let name = hub.catalog().names.public(Kind::Tool, provider.alphabet(), &tool.id);
    let name = name.ok_or_else(|| hidden("it has no name".to_owned()))?;
    let row = ToolRow::new(tool, schema, provenance);
    Ok(ToolRow { public_name: Some(name.to_string()), ..row })
}

fn texts(errors: &[CallError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

// === impl Tools ===

impl Tools {
    fn of(local: &Local, read: &ReadLists) -> Self {
        let gathered = &read.gathered;
        let (visible, hidden) = local.hub.visible_and_hidden_tools(gathered, &operator());
        let row = |tool: &ToolView| {
            ToolRow::new(tool, tool.input_schema(), read.provenance(&tool.id.server))
        };
        Self {
            tools: visible.iter().map(row).collect(),
            named: false,
            hidden: texts(&hidden),
            missing: Missing::of(&local.hub, gathered),
            none: None,
            required: local.required(gathered.failed.keys()),
        }
    }
}

// === impl ToolRow ===

impl ToolRow {
    fn new(tool: &ToolView, input_schema: Json, provenance: Provenance) -> Self {
        Self {
            id: tool.shown_id().to_string(),
            server: tool.id.server.clone(),
            name: tool.name.clone(),
            own_name: (tool.name != tool.id.item).then(|| tool.id.item.clone()),
            description: tool.description.clone(),
            effect: tool.effect,
            tokens: tool.tokens,
            input_schema,
            public_name: None,
            provenance,
        }
    }

    /// The id by which rules refer to the tool.
    pub fn own_id(&self) -> ItemId {
        let item = self.own_name.as_ref().unwrap_or(&self.name).clone();
        ItemId { server: self.server.clone(), item }
    }
}

// === impl Wanted ===

impl Wanted {
    async fn new(
        local: &Local,
        front: &dyn Interact,
        name: Option<&str>,
        reading: Reading,
    ) -> Result<Self, AppError> {
        let Some(name) = name else { return Ok(Self::All) };
        if local.names_item(name) {
            let (tool, _) = find_tool(local, front, name, reading).await?;
            return Ok(Self::One(tool.id));
        }
        Ok(Self::Of(local.setup.server(name)?.name.clone()))
    }

    fn is_of(&self, server: &ServerName) -> bool {
        match self {
            Self::All => true,
            Self::Of(one) | Self::One(ItemId { server: one, .. }) => server == one,
        }
    }

    fn has(&self, id: &ItemId) -> bool {
        match self {
            Self::All => true,
            Self::Of(server) => id.server == *server,
            Self::One(one) => id == one,
        }
    }
}
