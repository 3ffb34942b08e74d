//! `capstan tools`: lists the tools of all servers, or shows one in full.

use capstan_app::AppError;
use capstan_app::api::{ListTools, ToolRow};
use capstan_hub::catalog::Provider;
use capstan_model::ServerName;
use capstan_text::arguments::usage;
use jiff::Timestamp;

use super::{tell_missing, tell_saved};
use crate::args::{ProviderArg, ToolsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;
use crate::print::command;

/// Maximum number of hidden tools that are named.
const MAX_TOLD: usize = 10;

pub(crate) async fn run(context: &Context, args: &ToolsArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, "waiting for the servers");
    let provider = args.provider.map(Provider::from);
    let reading = context.reading(&args.reading);
    let list = ListTools { name: args.name.clone(), provider, reading };
    let listed = context.run(list, person).await?;
    if args.tokens {
        super::token_costs::show(context, &listed)?;
        tell_saved(&context.print, seen(&listed.tools));
        tell_missing(&context.print, &listed.missing);
        return Ok(context.exit_without(listed.required.as_ref()));
    }
    if let (true, [tool]) = (listed.named, listed.tools.as_slice()) {
        one(context, args, tool);
        tell_saved(&context.print, seen(&listed.tools));
        return Ok(Exit::Ok);
    }
    if context.print.wants_json() {
        context.print.json(&listed.tools);
    } else if provider.is_some() {
        show_for_provider(context, &listed.tools);
    } else {
        show(context, &listed.tools);
    }
    tell_saved(&context.print, seen(&listed.tools));
    tell_hidden(context, &listed.hidden);
    tell_missing(&context.print, &listed.missing);
    if let Some(none) = listed.none {
        context.say_no_servers(none);
    } else if args.name.is_none() && provider.is_none() && context.selection.demo {
        context.print.note("\nnext, call one of them:");
        context.print.note(&format!("  {} call --demo time__now zone=Europe/Berlin", command()));
    }
    Ok(context.exit_without(listed.required.as_ref()))
}

fn one(context: &Context, args: &ToolsArgs, tool: &ToolRow) {
    if context.print.wants_json() {
        context.print.json(tool);
        return;
    }
    if let Some(name) = &tool.public_name {
        let (description, schema) = (&tool.description, &tool.input_schema);
        context.print.data(&format!("{name}\n\n{description}\n\narguments:\n{schema}"));
        return;
    }
    let schema: serde_json::Value = tool.input_schema.read().unwrap_or_default();
    if args.schema {
        context.print.json(&schema);
        return;
    }
    let own_name = match &tool.own_name {
        Some(_) => format!("rules match it as `{}`\n", tool.own_id()),
        None => String::new(),
    };
    context.print.data(&format!(
        "{}\n\n{}\n\n{own_name}effect: {}   tokens: about {}\n\n",
        tool.id,
        tool.description.trim_end(),
        tool.effect.as_str(),
        tool.tokens,
    ));
    let rows = usage::rows(&schema);
    if rows.is_empty() {
        context.print.data("it describes no arguments");
    } else {
        context.print.table(&usage::HEADERS, &rows);
    }
    let demo = if context.selection.demo { " --demo" } else { "" };
    let words = usage::example(&schema).join(" ");
    let example = format!("{} call{demo} {} {words}", command(), tool.id);
    context.print.data(&format!("\nexample:\n  {}", example.trim_end()));
}

fn show(context: &Context, tools: &[ToolRow]) {
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let first = tool.description.lines().next().unwrap_or_default();
            let effect = tool.effect.as_str().to_owned();
            vec![tool.id.clone(), effect, tool.tokens.to_string(), first.to_owned()]
        })
        .collect();
    if !cells.is_empty() {
        let headers = ["TOOL", "EFFECT", "TOKENS", "DESCRIPTION"];
        context.print.table(&headers, &cells);
    }
}

fn show_for_provider(context: &Context, tools: &[ToolRow]) {
    let cells: Vec<Vec<String>> = tools
        .iter()
        .map(|tool| {
            let name = tool.public_name.clone().unwrap_or_default();
            vec![name, tool.own_id().to_string(), tool.input_schema.to_string()]
        })
        .collect();
    if !cells.is_empty() {
        context.print.table(&["NAME", "TOOL", "SCHEMA"], &cells);
    }
}

/// The times at which the servers of saved tools were last seen.
fn seen(tools: &[ToolRow]) -> impl Iterator<Item = Timestamp> {
    let mut times: Vec<(&ServerName, Timestamp)> =
        tools.iter().filter_map(|tool| Some((&tool.server, tool.provenance.seen?))).collect();
    times.dedup_by_key(|(server, _)| *server);
    times.into_iter().map(|(_, time)| time)
}

/// Reports tools that are hidden because of their schemas.
pub(super) fn tell_hidden(context: &Context, hidden: &[String]) {
    for error in hidden.iter().take(MAX_TOLD) {
        context.print.warning(error);
    }
    if let Some(more) = hidden.len().checked_sub(MAX_TOLD).filter(|more| *more > 0) {
        context.print.warning(&format!("{more} more tools are hidden"));
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
