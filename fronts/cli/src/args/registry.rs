//! The grammar of `capstan registry`.

use clap::{Args, Subcommand};

use super::ScopeArg;

/// `capstan registry`.
#[derive(Debug, Subcommand)]
pub enum RegistryCommand {
    /// Look for servers
    Search(RegistrySearchArgs),
    /// Add a server of the registry, or of a `server.json`, to the configuration
    Add(RegistryAddArgs),
}

/// Which registry is asked.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// The registry's address; otherwise that in `$CAPSTAN_REGISTRY`, or the official one
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
}

/// `capstan registry search`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  capstan registry search weather")]
pub struct RegistrySearchArgs {
    /// Words that the name or the description has
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Show at most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// `capstan registry add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan registry add io.github.someone/weather\n  \
    capstan registry add io.github.someone/weather --as weather --kind oci\n  \
    capstan registry add ./server.json --yes\n\n\
    Shows the command or address first, with variables and headers, and asks; a bundle is fetched and \
    checked for that. What the server needs from you becomes variables, such as ${WEATHER_TOKEN}. A \
    secret of a bundle stands in the file as a variable only, never as it is.")]
pub struct RegistryAddArgs {
    /// The server's whole name, or a file (`…/server.json`)
    pub name: String,
    /// What to call it here; otherwise the last part of its name
    #[arg(long = "as", value_name = "NAME")]
    pub alias: Option<String>,
    /// This version, and not the latest
    #[arg(long, value_name = "VERSION")]
    pub release: Option<String>,
    /// Only this way to reach it: npm, pypi, oci, nuget, mcpb, streamable-http or sse
    #[arg(long)]
    pub kind: Option<String>,
    /// A setting of a bundle; a secret as a variable: `--set 'api_key=${MY_KEY}'`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Which configuration file
    #[arg(short, long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Which registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}
