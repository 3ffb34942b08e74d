//! The grammar of `capstan import`, `install`, `uninstall` and `adopt`.

use capstan_import::Client;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::{CheckArgs, ConfirmArg, ScopeArg};

/// `capstan import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Shows a plan first. On a terminal, Capstan asks before it writes; elsewhere nothing is \
    written without `--yes`.\n\n\
    Examples:\n  \
    capstan import                          all clients\n  \
    capstan import cursor codex --yes       import from these two\n  \
    capstan import --secrets env --yes      with variables instead of secrets"
)]
pub struct ImportArgs {
    /// The clients to import from [default: all]
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub clients: Vec<Client>,
    /// Include the servers that Claude Code has for other projects
    #[arg(long)]
    pub all: bool,
    /// The files to read and to write: your own, or the project's
    #[arg(short, long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Show the changes without writing them
    #[arg(long)]
    pub dry_run: bool,
    /// Copy secrets, or replace them by environment variables [default: keep in your own file, env in a project's]
    #[arg(long, value_enum)]
    pub secrets: Option<SecretsArg>,
    /// Connects the servers once.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// The treatment of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SecretsArg {
    /// Copy them.
    Keep,
    /// Replace them by environment variables.
    Env,
}

/// `capstan install`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan install cursor                  Cursor starts `capstan serve`\n  \
    capstan install vscode --http           VS Code connects to a running gateway\n  \
    capstan install codex --scope project   only for this project")]
pub struct InstallArgs {
    /// The client and its file.
    #[command(flatten)]
    pub at: ClientArgs,
    /// Let the client start Capstan (default)
    #[arg(long, conflicts_with = "http")]
    pub stdio: bool,
    /// Let the client connect to a running gateway (`capstan serve --http`) [default: the address in the configuration]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub http: Option<Option<String>>,
    /// Who confirms calls that no rule matches: Capstan, or the client in its own dialog [default: capstan]
    #[arg(long, value_enum, value_name = "WHO", conflicts_with = "http")]
    pub confirm: Option<ConfirmArg>,
    /// Connects the servers once.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// `capstan adopt`.
#[derive(Debug, Args)]
#[command(
    after_help = "Imports the client's servers, removes them from the client's configuration, and adds Capstan in their \
    place. Shows a plan first. On a terminal, Capstan asks which servers to move; elsewhere nothing is written without \
    `--yes`. A server that cannot be imported stays in the client's file.\n\n\
    Examples:\n  \
    capstan adopt claude-code                  move the servers of Claude Code\n  \
    capstan adopt codex time git --yes         only these two, without asking\n  \
    capstan adopt claude-code --undo           move them back, byte for byte"
)]
pub struct AdoptArgs {
    /// The client and its file.
    #[command(flatten)]
    pub at: ClientArgs,
    /// The servers to move [default: all; on a terminal, Capstan asks]
    #[arg(value_name = "SERVER", conflicts_with = "undo")]
    pub servers: Vec<String>,
    /// Move the servers back, and remove the entry for Capstan
    #[arg(long)]
    pub undo: bool,
    /// Include the servers that Claude Code has for other projects
    #[arg(long, conflicts_with = "undo")]
    pub all: bool,
    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Copy secrets, or replace them by environment variables [default: keep in your own file, env in a project's]
    #[arg(long, value_enum, conflicts_with = "undo")]
    pub secrets: Option<SecretsArg>,
    /// Who confirms calls that no rule matches: Capstan, or the client in its own dialog [default: capstan]
    #[arg(long, value_enum, value_name = "WHO", conflicts_with = "undo")]
    pub confirm: Option<ConfirmArg>,
    /// Connects the servers once.
    #[command(flatten)]
    pub check: CheckArgs,
}

/// A client's file.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub client: Client,
    /// The file: your own, or the project's
    #[arg(short, long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Show the change without writing it
    #[arg(long)]
    pub dry_run: bool,
}

fn clients() -> impl TypedValueParser<Value = Client> {
    let values = Client::ALL.map(|client| {
        let aliases = (client == Client::ClaudeCode).then_some("claude");
        PossibleValue::new(client.as_str()).aliases(aliases)
    });
    PossibleValuesParser::new(values).try_map(|word| word.parse::<Client>())
}
