//! The grammar of `capstan approvals` and of `--ask`.

use capstan_hub::approvals::{Span, Width};
use clap::{Args, Subcommand};

/// Approval on the terminal.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AskArgs {
    /// Ask for approval even if no rule matches the call; without a terminal, the call is refused
    #[arg(long)]
    pub ask: bool,
    /// Approve the call if a rule asks; works only on a terminal
    #[arg(long, short, conflicts_with = "ask")]
    pub yes: bool,
}

/// `capstan approvals`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan approvals\n  \
    capstan approvals show k7f2\n  \
    capstan approvals yes k7f2\n  \
    capstan approvals yes k7f2 --tool --save\n  \
    capstan approvals watch")]
pub struct ApprovalsArgs {
    /// The subcommand; by default, waiting calls are listed.
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

/// Operations on waiting calls.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the calls that wait for approval
    List,
    /// Approve a call
    Yes(YesArgs),
    /// Refuse a call
    No(NoArgs),
    /// Show a call with all of its arguments
    Show(ShowArgs),
    /// Show waiting calls as they arrive; on a terminal, ask about each
    Watch,
}

/// `capstan approvals yes`.
#[derive(Debug, Args)]
pub struct YesArgs {
    /// The ID of the call, from the list
    pub id: String,
    /// The scope of the approval.
    #[command(flatten)]
    pub width: WidthArgs,
    /// The duration of the approval.
    #[command(flatten)]
    pub span: SpanArgs,
}

/// `capstan approvals no`.
#[derive(Debug, Args)]
pub struct NoArgs {
    /// The ID of the call, from the list
    pub id: String,
}

/// `capstan approvals show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The ID of the call, from the list
    pub id: String,
    /// Also show values that are masked as secrets
    #[arg(long)]
    pub unmasked: bool,
}

/// The scope of an approval, beyond the one call.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct WidthArgs {
    /// Allow this tool with any arguments
    #[arg(long)]
    tool: bool,
    /// Allow this tool with these arguments
    #[arg(long)]
    arguments: bool,
    /// Allow all tools of this server that only read
    #[arg(long)]
    server_reads: bool,
    /// Allow all tools of this server
    #[arg(long)]
    server: bool,
}

/// The duration of an approval that covers more than one call.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false, requires = "WidthArgs")]
pub struct SpanArgs {
    /// Until the client's session ends (default)
    #[arg(long)]
    session: bool,
    /// Permanently, as a rule in the configuration
    #[arg(long)]
    save: bool,
}

// === impl WidthArgs ===

impl WidthArgs {
    /// The width that was typed.
    pub(crate) fn width(self) -> Option<Width> {
        let typed = [
            (self.tool, Width::Item),
            (self.arguments, Width::Arguments),
            (self.server_reads, Width::ServerReads),
            (self.server, Width::Server),
        ];
        typed.into_iter().find(|(is_typed, _)| *is_typed).map(|(_, width)| width)
    }
}

// === impl SpanArgs ===

impl SpanArgs {
    /// The span that was typed.
    pub(crate) fn span(self) -> Option<Span> {
        match (self.session, self.save) {
            (true, _) => Some(Span::Session),
            (false, true) => Some(Span::Saved),
            (false, false) => None,
        }
    }
}
