//! The grammar of `capstan scan`.

use clap::Args;

use super::ReadingArgs;

/// `capstan scan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan scan\n  \
    capstan scan github\n  \
    capstan scan tools.jsonl --json\n  \
    capstan scan github --accept 3f2a90c1d4e5\n\n\
    A file has one tool definition per line, or an answer as `text`; nothing is connected for it. \
    An accepted finding holds for exactly this text: if one character changes, it is found again.")]
pub struct ScanArgs {
    /// A server, or a file of definitions that ends in `.jsonl`; all servers without it
    #[arg(value_name = "SERVER|FILE.jsonl")]
    pub target: Option<String>,
    /// Accept the finding with this id, in your own configuration file; can be given several times
    #[arg(long, value_name = "FINDING", requires = "target")]
    pub accept: Vec<String>,
    /// How lists are read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}
