//! Slash commands that need no model.

use std::ffi::OsString;
use std::fmt::Write as _;

use capstan_app::AppError;
use capstan_app::api::ListPrompts;
use capstan_text::clean::one_line;
use capstan_text::message::words;
use capstan_wire::object;
use clap::CommandFactory as _;

use super::mcp::{self, Detail};
use crate::args::{Cli, ReadingArgs};
use crate::commands;
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

/// Longest description of a prompt in the help.
const MAX_ABOUT: usize = 100;

/// The commands, each with a description.
pub(super) const COMMANDS: [(&str, &str); 8] = [
    ("help", "show the commands and prompts"),
    ("mcp", "show the servers"),
    ("tools", "list the tools, or show one"),
    ("call", "call a tool"),
    ("read", "read a resource"),
    ("why", "explain what policy decides about a call"),
    ("search", "find tools by what they do"),
    ("audit", "show the audit log"),
];

const HELP: &str = "Commands:
  /help                     show this help
  /mcp [list]               show the servers
  /mcp desc [SERVER]        show the servers with descriptions of their tools
  /mcp schema [SERVER]      show the servers with the schemas of their tools
  /mcp refresh              ask the servers again, and show them
  /mcp reload               reload the configuration of running gateways
  /mcp add … --save         add a server to the configuration
  /mcp remove NAME          remove a server from the configuration
  /mcp enable|disable NAME  switch a server on or off in the configuration
  /mcp auth NAME            log in to a server
  /tools [NAME]             list the tools, or show one
  /call TOOL ARGUMENTS      call a tool
  /read RESOURCE            read a resource
  /why TOOL ARGUMENTS       explain what policy decides about a call
  /search WORDS             find tools by what they do
  /audit                    show the audit log
  /PROMPT, /SERVER:PROMPT   let the model answer a prompt of a server
  @SERVER:RESOURCE, @FILE   add content to a message";

/// Runs a command; `None` if the name is that of a prompt.
pub(super) async fn run(
    context: &Context,
    name: &str,
    rest: &str,
) -> Result<Option<Exit>, AppError> {
    let exit = match name {
        "help" => help(context).await?,
        "mcp" => mcp(context, &words(rest)).await?,
        "tools" | "call" | "read" | "why" | "search" | "audit" => {
            delegate(context, name, words(rest)).await?
        }
        _ => return Ok(None),
    };
    Ok(Some(exit))
}

async fn mcp(context: &Context, words: &[String]) -> Result<Exit, AppError> {
    let refresh = ReadingArgs { refresh: true, ..ReadingArgs::default() };
    let usual = ReadingArgs::default();
    let (verb, rest) = match words {
        [] => ("list", &[][..]),
        [verb, rest @ ..] => (verb.as_str(), rest),
    };
    let server = rest.first().map(String::as_str);
    match verb {
        "list" => mcp::show(context, server, Detail::Names, &usual).await,
        "desc" => mcp::show(context, server, Detail::Descriptions, &usual).await,
        "schema" => mcp::show(context, server, Detail::Schemas, &usual).await,
        "refresh" => mcp::show(context, server, Detail::Names, &refresh).await,
        "reload" | "remove" | "enable" | "disable" => delegate(context, verb, rest.to_vec()).await,
        "auth" => delegate(context, "login", rest.to_vec()).await,
        "add" => {
            let is_saved = rest.iter().any(|word| word == "--save");
            if !is_saved {
                let message =
                    "`/mcp add` needs `--save`, which adds the server to the configuration";
                return Err(
                    AppError::usage(message).hint("conversations that begin later have the server")
                );
            }
            let rest = rest.iter().filter(|word| *word != "--save").cloned();
            delegate(context, verb, rest.collect()).await
        }
        other => Err(AppError::usage(format!("there is no `/mcp {other}`"))
            .hint("use list, desc, schema, refresh, reload, add, remove, enable, disable or auth")),
    }
}

/// Runs a command of the command line.
async fn delegate(context: &Context, name: &str, words: Vec<String>) -> Result<Exit, AppError> {
    let words = ["capstan".to_owned(), name.to_owned()].into_iter().chain(words);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let cli = crate::read(Cli::command(), words).map_err(|error| {
        let text = error.render().to_string();
        let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        AppError::usage(format!("`/{name}`: {line}"))
    })?;
    Box::pin(commands::run(context, &cli)).await
}

async fn help(context: &Context) -> Result<Exit, AppError> {
    let mut text = HELP.to_owned();
    let person = Person::watching(&context.print, "waiting for the servers");
    let reading = context.reading(&ReadingArgs::default());
    let listed = context.run(ListPrompts { name: None, reading }, person).await?;
    if !listed.items.is_empty() {
        text.push_str("\n\nPrompts:");
    }
    for item in &listed.items {
        let about = object::get_string(&item.definition, "description").unwrap_or_default();
        let name = one_line(&format!("/{}:{}", item.server, item.name), MAX_ABOUT);
        let _ = write!(text, "\n  {name}  {}", one_line(&about, MAX_ABOUT));
    }
    context.print.data(&text);
    commands::tell_missing(&context.print, &listed.missing);
    Ok(Exit::Ok)
}
