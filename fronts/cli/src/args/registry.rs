//! The grammar of `capstan registry`.

use clap::{Args, Subcommand};

use super::ScopeArg;

/// `capstan registry`.
#[derive(Debug, Subcommand)]
pub enum RegistryCommand {
    /// Search for servers
    Search(RegistrySearchArgs),
    /// Add a server from the registry, or from a `server.json`, to the configuration
    Add(RegistryAddArgs),
}

/// The registry.
#[derive(Debug, Args)]
pub struct RegistryArgs {
    /// The address of the registry [default: `$CAPSTAN_REGISTRY`, or the official registry]
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
}

/// `capstan registry search`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  capstan registry search weather")]
pub struct RegistrySearchArgs {
    /// Words in the name or the description
    #[arg(required = true)]
    pub words: Vec<String>,
    /// The maximum number of results
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}

/// `capstan registry add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan registry add io.github.someone/weather\n  \
    capstan registry add io.github.someone/weather --as weather --kind oci\n  \
    capstan registry add ./server.json --yes\n\n\
    Shows the command or address, with variables and headers, and asks before it writes. A bundle is \
    downloaded and checked first. Values that you must supply become variables, such as \
    ${WEATHER_TOKEN}. Secrets of a bundle are written only as variables.")]
pub struct RegistryAddArgs {
    /// The full name of the server, or a file (`…/server.json`)
    pub name: String,
    /// The name in the configuration [default: the last part of its full name]
    #[arg(long = "as", value_name = "NAME")]
    pub alias: Option<String>,
    /// The version [default: the latest]
    #[arg(long, value_name = "VERSION")]
    pub release: Option<String>,
    /// The kind of package or transport: npm, pypi, oci, nuget, mcpb, streamable-http or sse
    #[arg(long)]
    pub kind: Option<String>,
    /// A setting of a bundle; give a secret as a variable: `--set 'api_key=${MY_KEY}'`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// The configuration file to write to
    #[arg(short, long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// Write without asking
    #[arg(long)]
    pub yes: bool,
    /// The registry.
    #[command(flatten)]
    pub registry: RegistryArgs,
}
