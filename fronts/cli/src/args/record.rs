//! The grammar of `capstan record` and `capstan replay`.

use std::path::PathBuf;

use clap::Args;

/// `capstan record`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    capstan record github                     the lists of a server, in github.cassette\n  \
    capstan record github -o issues.cassette  another file\n\n\
    On a terminal it asks the server for its lists. As the command of a client's entry, it serves this \
    server over stdin and stdout and records what the client asks.")]
pub struct RecordArgs {
    /// The server's name
    pub name: String,
    /// The file to write [default: NAME.cassette]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `capstan replay`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    capstan add github-mock capstan replay issues.cassette")]
pub struct ReplayArgs {
    /// A file that `capstan record` has written
    pub file: PathBuf,
}
