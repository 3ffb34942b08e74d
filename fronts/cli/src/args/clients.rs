//! The grammar of `capstan import`, `install` and `uninstall`.

use capstan_import::Client;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::ScopeArg;

/// `capstan import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Nothing is written before you have seen the plan and said yes: on a terminal \
    you are asked, elsewhere `--yes` writes.\n\n\
    Examples:\n  \
    capstan import                          what all clients have\n  \
    capstan import cursor codex --yes       take over what these two have\n  \
    capstan import --secrets env --yes      with variables in the place of secrets"
)]
pub struct ImportArgs {
    /// Only what these clients have
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub clients: Vec<Client>,
    /// Also what Claude Code keeps for other projects
    #[arg(long)]
    pub all: bool,
    /// Whose files are read and written: yours, or the project's
    #[arg(short, long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Write without asking
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
    /// Only show what would be written
    #[arg(long)]
    pub dry_run: bool,
    /// What becomes of secrets that stand in those files: kept as they are, or turned into variables [default: keep in your own file, env in a project's]
    #[arg(long, value_enum)]
    pub secrets: Option<SecretsArg>,
}

/// What becomes of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SecretsArg {
    /// They are copied as they are.
    Keep,
    /// Variables of the environment take their place.
    Env,
}

/// `capstan install`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan install cursor                  Cursor starts `capstan serve`\n  \
    capstan install vscode --http           VS Code connects to a gateway that runs\n  \
    capstan install codex --scope project   for this project alone")]
pub struct InstallArgs {
    /// The client, and whose file.
    #[command(flatten)]
    pub at: ClientArgs,
    /// The client starts Capstan itself; this is the default
    #[arg(long, conflicts_with = "http")]
    pub stdio: bool,
    /// The client connects to a gateway that runs (`capstan serve --http`) [default: the address in the configuration]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub http: Option<Option<String>>,
}

/// A client's file.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = clients())]
    pub client: Client,
    /// Which file: yours, or the project's
    #[arg(short, long, value_enum, default_value = "user")]
    pub scope: ScopeArg,
    /// Only show what would be done
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
