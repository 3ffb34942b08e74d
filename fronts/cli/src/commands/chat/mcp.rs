//! `/mcp` as text: the servers with their state, tools, prompts and resources.

use std::fmt::Write as _;

use capstan_app::AppError;
use capstan_app::api::{
    ListPrompts, ListResources, ListServers, ListTools, ListedItem, ServerRow, ToolRow,
};
use capstan_config::{Kind, ServerEntry, show_duration};
use capstan_text::clean::one_line;

use crate::args::ReadingArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

/// Longest line of a list or a description.
const MAX_LINE: usize = 200;

/// How much is shown of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Names,
    Descriptions,
    Schemas,
}

/// The items of all servers.
struct Items {
    tools: Vec<ToolRow>,
    prompts: Vec<ListedItem>,
    resources: Vec<ListedItem>,
}

/// Shows all servers, or one.
pub(super) async fn show(
    context: &Context,
    server: Option<&str>,
    detail: Detail,
    reading: &ReadingArgs,
) -> Result<Exit, AppError> {
    let setup = context.setup_untold()?;
    let only = server.map(|name| setup.server(name)).transpose()?.map(|entry| entry.name.clone());
    let reading = context.reading(reading);
    let person = || Person::watching(&context.print, "waiting for the servers");
    let listed = context.run(ListServers { reading }, person()).await?;
    if let Some(none) = listed.none {
        context.say_no_servers(none);
        return Ok(Exit::Ok);
    }
    let tools = ListTools { name: None, provider: None, reading };
    let tools = context.run(tools, person()).await?.tools;
    let prompts = context.run(ListPrompts { name: None, reading }, person()).await?.items;
    let resources = ListResources { server: None, templates: false, reading };
    let resources = context.run(resources, person()).await?.items;
    let items = Items { tools, prompts, resources };
    if context.print.wants_json() {
        context.print.json(&listed.rows);
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for row in listed.rows.iter().filter(|row| only.as_ref().is_none_or(|name| *name == row.name)) {
        let entry = setup.loaded.config.servers.get(&row.name);
        write_server(&mut text, row, entry, &items, detail);
    }
    let known = listed.rows.iter().filter(|row| row.tools.is_some()).count();
    let _ =
        write!(text, "Discovery: the tools of {known} of {} servers are known", listed.rows.len());
    context.print.data(&text);
    Ok(Exit::Ok)
}

fn write_server(
    text: &mut String,
    row: &ServerRow,
    entry: Option<&ServerEntry>,
    items: &Items,
    detail: Detail,
) {
    let (glyph, name) = (row.state.glyph().as_str(), row.shown_name());
    let _ = writeln!(text, "{glyph} {name} ({}, {})", row.state.as_str(), row.transport);
    let _ = writeln!(text, "    {}", one_line(&row.target, MAX_LINE));
    if let Some(server) = entry.and_then(ServerEntry::usable) {
        let cwd = match &server.kind {
            Kind::Stdio(program) => program.cwd.as_deref(),
            Kind::Cli(cli) => cli.program.cwd.as_deref(),
            Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
        };
        let cwd = cwd.map(|cwd| format!("cwd {}, ", one_line(cwd, MAX_LINE))).unwrap_or_default();
        let _ = writeln!(text, "    {cwd}timeout {}", show_duration(server.timeout));
    }
    if let Some(error) = &row.error {
        let _ = writeln!(text, "    error: {}", one_line(error, MAX_LINE));
    }
    let tools: Vec<&ToolRow> = items.tools.iter().filter(|tool| tool.server == row.name).collect();
    let tokens = row.tokens.map(|tokens| format!(", about {tokens} tokens")).unwrap_or_default();
    let _ = writeln!(text, "    Tools ({}{tokens}):", tools.len());
    for tool in tools {
        write_tool(text, tool, detail);
    }
    for (title, list) in [("Prompts", &items.prompts), ("Resources", &items.resources)] {
        let own: Vec<&ListedItem> = list.iter().filter(|item| item.server == row.name).collect();
        if own.is_empty() {
            continue;
        }
        let _ = writeln!(text, "    {title}:");
        for item in own {
            let _ = writeln!(text, "      {}", one_line(&item.name, MAX_LINE));
        }
    }
}

fn write_tool(text: &mut String, tool: &ToolRow, detail: Detail) {
    let _ = writeln!(text, "      {}", one_line(&tool.name, MAX_LINE));
    if detail != Detail::Names {
        let _ = writeln!(text, "        {}", one_line(&tool.description, MAX_LINE));
    }
    if detail == Detail::Schemas {
        let _ = writeln!(text, "        {}", one_line(tool.input_schema.as_str(), usize::MAX));
    }
}
