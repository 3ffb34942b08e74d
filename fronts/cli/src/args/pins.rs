//! The grammar of `capstan pins`.

use clap::Args;

use super::WaitArgs;

/// `capstan pins`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan pins\n  \
    capstan pins github\n  \
    capstan pins github --approve\n  \
    capstan pins github --tool create_issue --approve\n\n\
    What a server has when it is first seen is approved with it. After that a new tool is asked \
    about, and a changed one is not used until it is approved here. Of a server that is \
    `trusted`, changes are only logged. Where approvals were lost with the state database, \
    `capstan pins --approve` approves all servers, and later ones begin as usual again.")]
pub struct PinsArgs {
    /// Only this server, with what has changed
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// Only this tool of it; can be given several times
    #[arg(long, value_name = "TOOL", requires = "server")]
    pub tool: Vec<String>,
    /// Approve the tools as they are now; without SERVER those of all servers
    #[arg(long)]
    pub approve: bool,
    /// Show the tools that are approved, too
    #[arg(long)]
    pub all: bool,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}
