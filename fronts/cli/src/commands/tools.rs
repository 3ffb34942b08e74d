//! `capstan tools`: the tools of all servers, or one of them in full.

use capstan_app::{AppError, Setup};
use capstan_hub::catalog::{Gathered, ToolView};
use capstan_hub::ports::Listing;
use capstan_hub::{Freshness, Hub};
use capstan_model::{CallError, Caller, Front, Kind, ServerName, ServerState};
use capstan_text::table::table;
use capstan_wire::Json;
use serde::Serialize;
use serde_json::value::RawValue;

use super::offers::remember;
use super::tools_for;
use crate::args::ToolsArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::waiting::Waiting;

/// One tool, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    id: String,
    server: &'a ServerName,
    name: &'a str,
    /// What its server calls it and rules mean it by, where that is another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    own_name: Option<&'a str>,
    description: &'a str,
    effect: &'static str,
    tokens: usize,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Box<RawValue>>,
    /// What a model API calls it, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_name: Option<&'a str>,
}

/// Most hidden tools that are named.
const MAX_TOLD: usize = 10;

pub(crate) async fn run(context: &Context, args: &ToolsArgs) -> Result<Exit, AppError> {
    let setup = context.setup()?;
    let hub = context.hub(&setup)?;
    if let Some(provider) = args.provider {
        return tools_for::run(context, &setup, hub, args, provider.into()).await;
    }
    match &args.name {
        None => all(context, &setup, hub, args).await,
        Some(name) if names_item(&setup, hub, name) => one(context, hub, name).await,
        Some(name) => of_server(context, &setup, hub, name).await,
    }
}

/// Whether a word stands for a tool or prompt and not for a server.
pub(super) fn names_item(setup: &Setup, hub: &Hub, name: &str) -> bool {
    let is_public = || setup.server(name).is_err() && hub.may_be_public(name);
    hub.id_of(name).is_some() || is_public()
}

async fn all(
    context: &Context,
    setup: &Setup,
    hub: &Hub,
    args: &ToolsArgs,
) -> Result<Exit, AppError> {
    let waiting = Waiting::new(&context.print, "waiting for the servers");
    let total = hub.servers().len();
    let mut answered = 0;
    let gathered = hub
        .gather(Listing::Tools, Context::patience(&args.wait), &mut |_| {
            answered += 1;
            waiting.say(&format!("waiting for the servers ({answered} of {total} have answered)"));
        })
        .await;
    drop(waiting);
    remember(context, Kind::Tool, &gathered);
    let tools = hub.visible_tools(&gathered, &Caller::operator(Front::Cli));
    show(context, &tools);
    tell_hidden(context, &hub.hidden_tools(&gathered, &Caller::operator(Front::Cli)));
    tell_missing(context, hub, &gathered);
    if hub.servers().len() == 0 {
        context.say_no_servers(setup);
    } else if context.selection.demo {
        let program = context.host.program();
        context.print.note("\nnext, call one of them:");
        context.print.note(&format!("  {program} call --demo time__now zone=Europe/Berlin"));
    }
    Ok(context.exit_without(setup, gathered.failed.keys()))
}

async fn of_server(
    context: &Context,
    setup: &Setup,
    hub: &Hub,
    name: &str,
) -> Result<Exit, AppError> {
    let entry = setup.server(name)?;
    if !hub.has(&entry.name) {
        return Err(AppError::not_found(format!("server `{name}` is not in use")));
    }
    let waiting = Waiting::new(&context.print, &format!("starting `{name}`"));
    let items = hub.list(&entry.name, Listing::Tools, Freshness::Known).await?;
    drop(waiting);
    let mut gathered = Gathered::default();
    gathered.lists.insert(entry.name.clone(), items);
    remember(context, Kind::Tool, &gathered);
    show(context, &hub.visible_tools(&gathered, &Caller::operator(Front::Cli)));
    tell_hidden(context, &hub.hidden_tools(&gathered, &Caller::operator(Front::Cli)));
    Ok(Exit::Ok)
}

async fn one(context: &Context, hub: &Hub, name: &str) -> Result<Exit, AppError> {
    let waiting = Waiting::new(&context.print, &format!("looking for `{name}`"));
    let view = hub.find_tool(&Caller::operator(Front::Cli), name).await?;
    drop(waiting);
    if context.print.wants_json() {
        context.print.json(&Row::new(&view, &view.input_schema()));
        return Ok(Exit::Ok);
    }
    let schema: serde_json::Value = view.input_schema().read().unwrap_or_default();
    let pretty = serde_json::to_string_pretty(&schema).unwrap_or_default();
    context.print.data(&format!(
        "{}\n\n{}\n\n{}effect: {}   tokens: about {}\n\narguments:\n{}",
        view.shown_id(),
        view.description,
        own_name(&view),
        view.effect.as_str(),
        view.tokens,
        pretty
    ));
    Ok(Exit::Ok)
}

fn show(context: &Context, tools: &[ToolView]) {
    if context.print.wants_json() {
        let row = |tool| Row::new(tool, &ToolView::input_schema(tool));
        context.print.json(&tools.iter().map(row).collect::<Vec<_>>());
        return;
    }
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let first = tool.description.lines().next().unwrap_or_default();
            vec![
                tool.shown_id().to_string(),
                tool.effect.as_str().to_owned(),
                tool.tokens.to_string(),
                first.to_owned(),
            ]
        })
        .collect();
    if !cells.is_empty() {
        let headers = ["TOOL", "EFFECT", "TOKENS", "DESCRIPTION"];
        context.print.data(&table(&headers, &cells, context.print.width()));
    }
}

// === impl Row ===

impl<'a> Row<'a> {
    /// A tool with this schema.
    pub(super) fn new(tool: &'a ToolView, schema: &Json) -> Self {
        Self {
            id: tool.shown_id().to_string(),
            server: &tool.id.server,
            name: &tool.name,
            own_name: (tool.name != tool.id.item).then_some(tool.id.item.as_str()),
            description: &tool.description,
            effect: tool.effect.as_str(),
            tokens: tool.tokens,
            input_schema: RawValue::from_string(schema.as_str().to_owned()).ok(),
            public_name: None,
        }
    }

    /// The same with what a model API calls it.
    pub(super) fn called(self, public_name: &'a str) -> Self {
        Self { public_name: Some(public_name), ..self }
    }
}

/// What rules know a tool by, where that is not what it is called.
fn own_name(tool: &ToolView) -> String {
    if tool.name == tool.id.item {
        String::new()
    } else {
        format!("rules mean it as `{}`\n", tool.id)
    }
}

/// Says which tools are not shown because of their schemas, and why.
pub(super) fn tell_hidden(context: &Context, hidden: &[CallError]) {
    for error in hidden.iter().take(MAX_TOLD) {
        context.print.warning(&error.to_string());
    }
    if let Some(more) = hidden.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        context.print.warning(&format!("{more} more tools are hidden"));
    }
}

/// Says which servers are missing from the list, and why.
pub(super) fn tell_missing(context: &Context, hub: &Hub, gathered: &Gathered) {
    for (server, error) in &gathered.failed {
        if hub.state(server) != Some(ServerState::Disabled) {
            context.print.warning(&error.to_string());
        }
    }
    if !gathered.pending.is_empty() {
        let names: Vec<String> = gathered.pending.iter().map(|name| format!("`{name}`")).collect();
        let list = names.join(", ");
        context.print.warning(&format!("no answer yet from {list}"));
        context.print.hint("`--wait 30s` waits longer; `capstan doctor` says what is wrong");
    }
}
