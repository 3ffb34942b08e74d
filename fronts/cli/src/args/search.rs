//! The words of `capstan search`.

use clap::Args;

use super::ReadingArgs;

/// `capstan search`.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:\n  \
    capstan search read a file\n  \
    capstan search \"open issues of a repository\" \"send a message\" -k 4\n\n\
    Words are one query. Arguments with spaces are one query each, and at least one tool is shown for each that fits.")]
pub struct SearchArgs {
    /// What the tool should do
    #[arg(required = true, value_name = "QUERY")]
    pub words: Vec<String>,
    /// Show at most this number of tools [default: `search.top_k`, 10]
    #[arg(short = 'k', long = "top-k", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub limit: Option<u32>,
    /// Search only this server
    #[arg(long, value_name = "SERVER")]
    pub server: Option<String>,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}
