//! The grammar of `capstan pins`.

use clap::Args;

use super::WaitArgs;

/// `capstan pins`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan pins\n  \
    capstan pins github\n  \
    capstan pins github --approve\n  \
    capstan pins github --tool create_issue --approve\n  \
    capstan pins github --tool create_issue --block\n\n\
    The tools of a server are pinned when it is first seen. Later, a new tool must be approved at \
    its first call, and a changed tool cannot be used until its new definition is pinned here. \
    Changes of `trusted` servers are only logged. If pins were lost with the state database, \
    `capstan pins --approve` pins the tools of all servers.")]
pub struct PinsArgs {
    /// Only this server, with the changes of its tools
    #[arg(value_name = "SERVER")]
    pub server: Option<String>,
    /// Only this tool of the server; can be given several times
    #[arg(long, value_name = "TOOL", requires = "server")]
    pub tool: Vec<String>,
    /// Pin the tools as they are now; without SERVER, those of all servers
    #[arg(long)]
    pub approve: bool,
    /// Deny the tools that differ from their pins, by a rule in your own configuration file
    #[arg(long, requires = "server", conflicts_with = "approve")]
    pub block: bool,
    /// Also show tools that match their pins
    #[arg(long)]
    pub all: bool,
    /// The time to wait for servers.
    #[command(flatten)]
    pub wait: WaitArgs,
}
