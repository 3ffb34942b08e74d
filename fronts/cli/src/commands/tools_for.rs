//! `capstan tools --for`: the tools as a maker of models takes them.

use std::sync::Arc;

use capstan_app::{AppError, Setup};
use capstan_hub::Hub;
use capstan_hub::catalog::{Provider, ToolView};
use capstan_hub::ports::Listing;
use capstan_model::{CallError, Caller, Front, ItemId, Kind, ServerName};
use capstan_text::table::table;
use capstan_wire::Json;

use super::offers::{of_all, remember};
use super::tools::{Row, names_item, tell_hidden, tell_missing};
use crate::args::{ProviderArg, ToolsArgs};
use crate::context::Context;
use crate::exit::Exit;

/// Which tools are shown.
enum Wanted {
    All,
    Of(ServerName),
    One(ItemId),
}

/// A tool as it is offered.
struct Offered {
    tool: ToolView,
    name: Arc<str>,
    schema: Json,
}

/// Shows tools as `provider` takes them. All servers are asked whatever is shown: what a tool is
/// called depends on all of them.
pub(super) async fn run(
    context: &Context,
    setup: &Setup,
    hub: &Hub,
    args: &ToolsArgs,
    provider: Provider,
) -> Result<Exit, AppError> {
    let wanted = Wanted::new(setup, hub, args.name.as_deref()).await?;
    let mut gathered = of_all(context, hub, Listing::Tools, &args.wait).await;
    remember(context, Kind::Tool, &gathered);
    hub.name_tools(&gathered, provider.alphabet());
    gathered.lists.retain(|server, _| wanted.is_of(server));
    let tools = hub.visible_tools(&gathered, &Caller::operator(Front::Cli));
    let mut hidden = hub.hidden_tools(&gathered, &Caller::operator(Front::Cli));
    let mut offered = Vec::new();
    for tool in tools.into_iter().filter(|tool| wanted.has(&tool.id)) {
        match offer(hub, tool, provider) {
            Ok(tool) => offered.push(tool),
            Err(error) => hidden.push(error),
        }
    }
    if let Wanted::One(id) = wanted {
        let is_it = |error: &CallError| matches!(error, CallError::Hidden { item, .. } if *item == id.to_string());
        return match (offered.first(), hidden.into_iter().find(is_it)) {
            (Some(tool), _) => Ok(one(context, tool)),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(AppError::not_found(format!("no tool named `{id}`"))),
        };
    }
    all(context, &offered);
    tell_hidden(context, &hidden);
    tell_missing(context, hub, &gathered);
    Ok(context.exit_without(setup, gathered.failed.keys()))
}

fn offer(hub: &Hub, tool: ToolView, provider: Provider) -> Result<Offered, CallError> {
    let hidden = |reason: String| CallError::Hidden { item: tool.id.to_string(), reason };
    let schema = provider.fit(&tool.input_schema()).map_err(|unfit| hidden(unfit.to_string()))?;
    let name = hub.catalog().names.public(Kind::Tool, provider.alphabet(), &tool.id);
    let name = name.ok_or_else(|| hidden("it has no name".to_owned()))?;
    Ok(Offered { tool, name, schema })
}

fn all(context: &Context, offered: &[Offered]) {
    if context.print.wants_json() {
        context.print.json(&offered.iter().map(Offered::row).collect::<Vec<_>>());
        return;
    }
    let cells: Vec<Vec<String>> = offered
        .iter()
        .map(|Offered { tool, name, schema }| {
            vec![name.to_string(), tool.id.to_string(), schema.to_string()]
        })
        .collect();
    if !cells.is_empty() {
        context.print.data(&table(&["NAME", "TOOL", "SCHEMA"], &cells, context.print.width()));
    }
}

fn one(context: &Context, offered: &Offered) -> Exit {
    if context.print.wants_json() {
        context.print.json(&offered.row());
    } else {
        let Offered { tool, name, schema } = offered;
        context.print.data(&format!("{name}\n\n{}\n\narguments:\n{schema}", tool.description));
    }
    Exit::Ok
}

// === impl Wanted ===

impl Wanted {
    async fn new(setup: &Setup, hub: &Hub, name: Option<&str>) -> Result<Self, AppError> {
        let Some(name) = name else { return Ok(Self::All) };
        if names_item(setup, hub, name) {
            let tool = hub.find_tool(&Caller::operator(Front::Cli), name).await?;
            return Ok(Self::One(tool.id));
        }
        Ok(Self::Of(setup.server(name)?.name.clone()))
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

// === impl Offered ===

impl Offered {
    fn row(&self) -> Row<'_> {
        Row::new(&self.tool, &self.schema).called(&self.name)
    }
}

// === impl ProviderArg ===

impl From<ProviderArg> for Provider {
    fn from(typed: ProviderArg) -> Self {
        match typed {
            ProviderArg::Gemini => Self::Gemini,
            ProviderArg::OpenAi => Self::OpenAi,
            ProviderArg::Anthropic => Self::Anthropic,
        }
    }
}
