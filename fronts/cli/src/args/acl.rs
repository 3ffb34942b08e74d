//! The grammar of `capstan acl`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ReadingArgs;

/// `capstan acl`.
#[derive(Debug, Subcommand)]
pub enum AclCommand {
    /// Show if each tool reads or writes, with confidence and reasons
    Classify(ClassifyArgs),
    /// Check if a caller of the gateway may use an item, and show the rule
    Check(AclCheckArgs),
}

/// `capstan acl classify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan acl classify\n  \
    capstan acl classify github\n  \
    capstan acl classify --file tools.jsonl --json\n\n\
    A tool whose effect is unknown counts as one that writes. To correct an effect, set \
    `effect = { read = [\"…\"], write = [\"…\"] }` in the server's configuration.")]
pub struct ClassifyArgs {
    /// Only this server
    #[arg(value_name = "SERVER", conflicts_with = "server_option")]
    pub server: Option<String>,
    /// Only this server, as `SERVER`
    #[arg(long = "server", id = "server_option", value_name = "SERVER", hide = true)]
    pub server_option: Option<String>,
    /// Classify the tool definitions in this file, one JSON object per line, instead of starting servers
    #[arg(long, value_name = "TOOLS.jsonl")]
    pub file: Option<PathBuf>,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

// === impl ClassifyArgs ===

impl ClassifyArgs {
    /// The only server to classify.
    pub fn only(&self) -> Option<&str> {
        self.server.as_deref().or(self.server_option.as_deref())
    }
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
    Exits with 6 if access is denied; with --all-tools always with 0.")]
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
    /// The URI of a resource
    #[arg(long, value_name = "URI")]
    pub resource: Option<String>,
    /// The prompt
    #[arg(long)]
    pub prompt: Option<String>,
    /// All tools of the server
    #[arg(long)]
    pub all_tools: bool,
    /// Assume this effect of the tool, without starting the server
    #[arg(long, value_enum, conflicts_with_all = ["resource", "prompt", "all_tools"])]
    pub access: Option<AccessArg>,
    /// Ask the server instead of using what was last seen of it
    #[arg(long)]
    pub refresh: bool,
    /// The output format; `json` is the same as --json
    #[arg(long, value_enum, default_value = "table")]
    pub format: FormatArg,
}

/// The effect of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AccessArg {
    /// Changes nothing.
    Read,
    /// Changes something.
    Write,
}

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}
