//! The grammar of `capstan edit`.

use clap::Args;

use super::ScopeArg;

/// `capstan edit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan edit github\n  \
    capstan edit github --set timeout=30s --unset cwd\n  \
    capstan edit github --set env.DEBUG=1 --set 'args=[\"-y\", \"pkg\"]'\n  \
    capstan edit github --set hide=delete_* --set hide=drop_*\n\n\
    Without --set and --unset, the entry is opened in the program that VISUAL or EDITOR names. The \
    result is checked before it replaces the entry; comments and the rest of the file stay as they \
    are.")]
pub struct EditArgs {
    /// The server's name
    pub name: String,
    /// The file to change, if several define the server
    #[arg(short, long, value_enum)]
    pub scope: Option<ScopeArg>,
    /// Set a key to a TOML value or a text; repeat a key for each item of a list
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Remove a key; can be given several times
    #[arg(long, value_name = "KEY")]
    pub unset: Vec<String>,
}
