//! What can be typed about what tools do and who may use them.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WaitArgs;

/// `capstan acl`.
#[derive(Debug, Subcommand)]
pub enum AclCommand {
    /// Say of each tool whether it reads or writes, how sure that is, and why
    Classify(ClassifyArgs),
}

/// `capstan acl classify`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan acl classify\n  \
    capstan acl classify --server github\n  \
    capstan acl classify --file tools.jsonl --json\n\n\
    A tool whose effect is unknown counts as one that writes. What is wrong here is put right by \
    `effect = { read = [\"…\"], write = [\"…\"] }` under the server.")]
pub struct ClassifyArgs {
    /// Only this server
    #[arg(long, value_name = "NAME")]
    pub server: Option<String>,
    /// Judge the definitions in this file instead, one JSON object a line; no server is started
    #[arg(long, value_name = "TOOLS.jsonl")]
    pub file: Option<PathBuf>,
    /// How long to wait.
    #[command(flatten)]
    pub wait: WaitArgs,
}
