//! The grammar of `capstan acl`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::WaitArgs;

/// `capstan acl`.
#[derive(Debug, Subcommand)]
pub enum AclCommand {
    /// Say of each tool whether it reads or writes, how sure that is, and why
    Classify(ClassifyArgs),
    /// Say whether a caller of the gateway may use something, and by which rule
    Check(AclCheckArgs),
}

/// `capstan acl classify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan acl classify\n  \
    capstan acl classify --server github\n  \
    capstan acl classify --file tools.jsonl --json\n\n\
    A tool whose effect is unknown counts as one that writes. What is wrong here is put right by \
    `effect = { read = [\"…\"], write = [\"…\"] }` under the server.")]
pub struct ClassifyArgs {
    /// Only this server
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// Judge the definitions in this file instead, one JSON object a line; no server is started
    #[arg(long, value_name = "TOOLS.jsonl")]
    pub file: Option<PathBuf>,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}

/// `capstan acl check`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("who").args(["subject", "role"]).required(true).multiple(true))]
#[command(group = clap::ArgGroup::new("what")
    .args(["tool", "resource", "prompt", "all_tools"]).required(true))]
#[command(after_help = "Examples:\n  \
    capstan acl check --subject bob --server linear --tool delete_issue\n  \
    capstan acl check --role readonly --server docs --resource file:///README.md\n  \
    capstan acl check --role dev --server linear --all-tools\n\n\
    Ends with 6 when it is denied; with --all-tools always with 0.")]
pub struct AclCheckArgs {
    /// The caller
    #[arg(long)]
    pub subject: Option<String>,
    /// A role of the caller; can be given several times
    #[arg(long)]
    pub role: Vec<String>,
    /// The server
    #[arg(long)]
    pub server: String,
    /// The tool, by the name that its server gives it
    #[arg(long)]
    pub tool: Option<String>,
    /// The address of a resource
    #[arg(long, value_name = "URI")]
    pub resource: Option<String>,
    /// The prompt
    #[arg(long)]
    pub prompt: Option<String>,
    /// Every tool of the server
    #[arg(long)]
    pub all_tools: bool,
    /// Take the tool for one that does this; the server is not started then
    #[arg(long, value_enum, conflicts_with_all = ["resource", "prompt", "all_tools"])]
    pub access: Option<AccessArg>,
    /// How to print; `json` is the same as --json
    #[arg(long, value_enum, default_value = "table")]
    pub format: FormatArg,
}

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccessArg {
    /// Changes nothing.
    Read,
    /// Changes something.
    Write,
}

/// How something is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}
