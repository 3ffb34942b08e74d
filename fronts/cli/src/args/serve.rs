//! The grammar of `capstan serve`.

use std::path::PathBuf;

use capstan_config::Confirm;
use capstan_model::{CallTools, Expose};
use clap::{Args, ValueEnum};

/// `capstan serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan serve                      one client, over stdin and stdout\n  \
    capstan serve --http               many clients, at http://127.0.0.1:8080/mcp\n  \
    capstan serve --http :9090         another port of this machine\n  \
    capstan serve --http --demo        with the built-in demo servers\n\n\
    To start it from a client, use the command `capstan` with the argument `serve`.")]
pub struct ServeArgs {
    /// Listen on an address instead of stdin; `:9090` is a port of this machine, port 0 picks a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub http: Option<Option<String>>,
    /// Accept connections from other machines without authentication
    #[arg(long, requires = "http")]
    pub insecure: bool,
    /// Use TLS with this certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Who confirms calls that no rule matches: Capstan, or the client in its own dialog [default: `gateway.confirm` in the configuration]
    #[arg(long, value_enum, value_name = "WHO", conflicts_with = "http")]
    pub confirm: Option<ConfirmArg>,
    /// The tools that clients get: all, or tools that find, describe and call the others [default: `gateway.expose` in the configuration]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub expose: Option<ExposeArg>,
    /// The format of the log on stderr
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// A format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The party that confirms calls that no rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConfirmArg {
    /// Capstan asks once, and can remember the answer.
    Capstan,
    /// The client asks in its own dialog; Capstan asks only where a rule or a pin does.
    Client,
}

/// The tools that clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExposeArg {
    /// All tools.
    All,
    /// Tools that find, describe and call the others, and the pinned tools.
    Search,
    /// As `search`, with one tool that calls reading tools and one that calls the others.
    SearchByEffect,
    /// As `search` if all tools cost more tokens than `gateway.expose_tokens`.
    Auto,
    /// As `search-by-effect` if all tools cost more tokens than `gateway.expose_tokens`.
    AutoByEffect,
}

// === impl ExposeArg ===

impl From<ExposeArg> for Expose {
    fn from(word: ExposeArg) -> Self {
        match word {
            ExposeArg::All => Self::All,
            ExposeArg::Search => Self::Search(CallTools::One),
            ExposeArg::SearchByEffect => Self::Search(CallTools::ByEffect),
            ExposeArg::Auto => Self::Auto(CallTools::One),
            ExposeArg::AutoByEffect => Self::Auto(CallTools::ByEffect),
        }
    }
}

// === impl ConfirmArg ===

impl From<ConfirmArg> for Confirm {
    fn from(word: ConfirmArg) -> Self {
        match word {
            ConfirmArg::Capstan => Self::Capstan,
            ConfirmArg::Client => Self::Client,
        }
    }
}
