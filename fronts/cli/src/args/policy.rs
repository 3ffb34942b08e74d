//! What can be typed about rules, and about what became of calls.

use clap::Args;

/// `capstan why`.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The tool or prompt, as `server__tool` or `server:tool`; a resource as `@server:uri`
    #[arg(index = 1)]
    pub tool: String,
    /// Its arguments, as for `capstan call`
    #[arg(index = 2, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// `capstan audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Check that no entry was changed, removed or reordered
    #[arg(long, conflicts_with_all = ["follow", "server", "tool", "caller", "errors", "since", "limit"])]
    pub verify: bool,
    /// Go on showing entries as they come
    #[arg(long, short, conflicts_with_all = ["since", "limit"])]
    pub follow: bool,
    /// Only calls to this server
    #[arg(long)]
    pub server: Option<String>,
    /// Only calls to this tool, resource or prompt
    #[arg(long)]
    pub tool: Option<String>,
    /// Only calls of this caller
    #[arg(long)]
    pub caller: Option<String>,
    /// Only calls that failed
    #[arg(long)]
    pub errors: bool,
    /// Only calls since then, such as 2h or 2026-11-15T08:00:00Z
    #[arg(long, value_name = "AGO|TIME")]
    pub since: Option<String>,
    /// At most so many, the newest
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}
