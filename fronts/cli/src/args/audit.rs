//! The grammar of `capstan audit`.

use clap::{Args, ValueEnum};

/// `capstan audit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan audit --errors --since 2h          failed calls of the last two hours\n  \
    capstan audit --tool github__create_issue  all calls of a tool\n  \
    capstan audit --follow --front gateway     calls of clients, as they happen\n  \
    capstan audit --csv --limit 10000          for a spreadsheet\n  \
    capstan audit --verify                     check the log for changes")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct AuditArgs {
    /// Check that no entry was changed, removed or reordered
    #[arg(
        long,
        conflicts_with_all = [
            "follow", "server", "tool", "caller", "front", "kind", "errors", "since", "until",
            "limit", "csv",
        ]
    )]
    pub verify: bool,
    /// Keep showing new entries
    #[arg(long, short, conflicts_with_all = ["since", "until", "limit"])]
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
    /// Only calls through this front; `gateway` includes `stdio`
    #[arg(long, value_parser = ["cli", "terminal", "gateway", "stdio"])]
    pub front: Option<String>,
    /// Only entries of this kind
    #[arg(long, value_enum)]
    pub kind: Option<AuditKind>,
    /// Only calls that failed
    #[arg(long)]
    pub errors: bool,
    /// Only calls since this time, such as 2h or 2026-11-15T08:00:00Z
    #[arg(long, value_name = "AGO|TIME")]
    pub since: Option<String>,
    /// Only calls before this time
    #[arg(long, value_name = "AGO|TIME")]
    pub until: Option<String>,
    /// The maximum number of entries; the newest are shown
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
    /// Print comma-separated values, for spreadsheets
    #[arg(long)]
    pub csv: bool,
}

/// The kinds of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditKind {
    /// Calls of tools
    Tool,
    /// Reads of resources, and subscriptions
    Resource,
    /// Prompts
    Prompt,
    /// Crashes, lost entries and damage of the log itself
    Break,
    /// Entries that retention removed
    Retention,
}

// === impl AuditKind ===

impl AuditKind {
    /// The kind's word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
            Self::Break => "break",
            Self::Retention => "retention",
        }
    }
}
