//! The grammar of `capstan approvals` and of `--ask`.

use capstan_hub::approvals::{Span, Width};
use clap::{Args, Subcommand};

/// Whether a person is asked first.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AskArgs {
    /// Ask on the terminal when the rules say `ask`; without a terminal the answer is no
    #[arg(long)]
    pub ask: bool,
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
    /// What to do with them; without a word they are listed.
    #[command(subcommand)]
    pub command: Option<ApprovalsCommand>,
}

/// What can be done with open questions.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// List the calls that wait for an answer
    List,
    /// Let a call run
    Yes(YesArgs),
    /// Refuse a call
    No(NoArgs),
    /// Show a call with all of its arguments
    Show(ShowArgs),
    /// Show calls as they come; on a terminal, ask about each
    Watch,
}

/// `capstan approvals yes`.
#[derive(Debug, Args)]
pub struct YesArgs {
    /// The question, as the list names it
    pub id: String,
    /// How far the yes reaches.
    #[command(flatten)]
    pub width: WidthArgs,
    /// How long it holds.
    #[command(flatten)]
    pub span: SpanArgs,
}

/// `capstan approvals no`.
#[derive(Debug, Args)]
pub struct NoArgs {
    /// The question, as the list names it
    pub id: String,
}

/// `capstan approvals show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The question, as the list names it
    pub id: String,
    /// Show values that are masked as secrets too
    #[arg(long)]
    pub unmasked: bool,
}

/// How far a yes reaches, beyond the one call.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct WidthArgs {
    /// Allow this tool, whatever the arguments
    #[arg(long)]
    tool: bool,
    /// Allow this tool with these arguments
    #[arg(long)]
    arguments: bool,
    /// Allow whatever this server only reads
    #[arg(long)]
    server_reads: bool,
    /// Allow everything of this server
    #[arg(long)]
    server: bool,
}

/// How long a yes holds that reaches beyond the one call.
#[derive(Clone, Copy, Debug, Default, Args)]
#[group(multiple = false, requires = "WidthArgs")]
pub struct SpanArgs {
    /// As long as the client's session, which is usual
    #[arg(long)]
    session: bool,
    /// For ever, as a rule in the configuration
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
