//! The grammar of the commands for resources and prompts.

use std::path::PathBuf;

use clap::Args;

use super::{AskArgs, ReadingArgs};

/// `capstan resources`.
#[derive(Debug, Args)]
pub struct ResourcesArgs {
    /// Only this server
    pub server: Option<String>,
    /// List URI templates instead
    #[arg(long)]
    pub templates: bool,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `capstan read`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan read @docs:file:///workspace/README.md\n  \
    capstan read @github:issue acme widgets 42\n  \
    capstan read @github:issue owner=acme repo=widgets id=42\n  \
    capstan read @github:issue owner=acme --complete repo=wid\n\n\
    On a terminal, control characters are removed from text. A single text or binary content is \
    written unchanged to a pipe or a file.")]
pub struct ReadArgs {
    // The indices are explicit because completions take the arguments apart and rebuild them.
    /// The resource as `@server:uri`, or `@server:name` for a resource or template of that name; or a page
    /// of a long answer, `capstan://answers/ID?page=N`
    #[arg(index = 1)]
    pub resource: String,
    /// Values for the placeholders of a template, in order or as `name=value`
    #[arg(index = 2, value_name = "VALUES")]
    pub words: Vec<String>,
    /// Write the content to a file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print possible values of a placeholder, one per line
    #[arg(long, value_name = "NAME=BEGINNING", conflicts_with = "output")]
    pub complete: Option<String>,
    /// How to answer the server's questions: `ask` (on a terminal), `defaults`, `decline`, or a JSON file with the values
    #[arg(long, value_name = "ask|defaults|decline|FILE.json")]
    pub elicit: Option<String>,
    /// Asks the user for approval.
    #[command(flatten)]
    pub ask: AskArgs,
}

/// `capstan prompts`.
#[derive(Debug, Args)]
pub struct PromptsArgs {
    /// A server, or one prompt, such as `poems` or `poems__writer`
    pub name: Option<String>,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `capstan prompt`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan prompt poems:writer --title=\"Spring\" --mood reverent\n  \
    capstan prompt poems:writer title=Spring mood=reverent\n  \
    capstan prompt writer Spring reverent\n  \
    capstan prompt writer --complete mood=rev\n\n\
    Write `name=value` for an argument that has the name of an option of capstan. After `--`, every \
    word is a value.")]
pub struct PromptArgs {
    /// Print possible values of an argument, one per line
    #[arg(long, value_name = "NAME=BEGINNING")]
    pub complete: Option<String>,
    /// How to answer the server's questions: `ask` (on a terminal), `defaults`, `decline`, or a JSON file with the values
    #[arg(long, value_name = "ask|defaults|decline|FILE.json")]
    pub elicit: Option<String>,
    /// Asks the user for approval.
    #[command(flatten)]
    pub ask: AskArgs,
    /// The prompt, as `server:prompt` or `server__prompt`, or its bare name if only one server has it
    #[arg(index = 1)]
    pub prompt: String,
    /// Its arguments: `--name value`, `--name=value`, `name=value`, or values in order
    #[arg(
        index = 2,
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub words: Vec<String>,
}
