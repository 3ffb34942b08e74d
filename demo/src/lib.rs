//! Small real MCP servers that ship with the binary: files, time zones and notes.
//!
//! Each speaks newline-delimited JSON-RPC over two streams, in both eras of the protocol: with an
//! `initialize` handshake, and with metadata on every request (2026-07-28). Read `server` for the
//! loop they share; `files`, `time` and `notes` are one server each.
//!
//! **Invariant:** blocking I/O only and no work before the first request, so that a server is
//! ready as soon as its process is.

mod server;
mod fault;
mod describe;
mod base64;
mod files;
mod time;
mod notes;

use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// One of the servers in this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Demo {
    /// Reads files below a folder.
    Files,
    /// Knows the time in every zone.
    Time,
    /// Keeps notes in one file.
    Notes,
}

/// Where the servers find and keep things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The folder that `files` reads; nothing outside of it is ever opened.
    pub root: PathBuf,
    /// The folder in which `notes` keeps its file; created when it is missing.
    pub data: PathBuf,
}

/// A word that names no server of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no demo server named `{0}`: there are `files`, `time` and `notes`")]
pub struct UnknownDemo(String);

/// Serves until `input` ends.
///
/// # Errors
///
/// When `input` or `output` fails, or when the folder `files` should read is not there.
pub fn run(
    which: Demo,
    options: Options,
    input: impl BufRead,
    output: impl Write,
) -> io::Result<()> {
    match which {
        Demo::Files => server::serve(files::Files::open(&options.root)?, input, output),
        Demo::Time => server::serve(time::Time::new(now), input, output),
        Demo::Notes => server::serve(notes::Notes::new(options.data, now), input, output),
    }
}

// === impl Demo ===

impl Demo {
    /// Every server, in the order in which they are shown.
    pub const ALL: [Self; 3] = [Self::Files, Self::Time, Self::Notes];

    /// The server's word on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Time => "time",
            Self::Notes => "notes",
        }
    }

    /// The purpose of the server, in one line.
    pub fn description(self) -> &'static str {
        match self {
            Self::Files => "Lists, reads and searches the files below one folder; changes nothing",
            Self::Time => "Tells the time in any zone and converts between zones",
            Self::Notes => "Keeps short notes in a file: add, list, read, search, delete",
        }
    }
}

impl FromStr for Demo {
    type Err = UnknownDemo;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|demo| demo.as_str() == text);
        found.ok_or_else(|| UnknownDemo(text.to_owned()))
    }
}

impl fmt::Display for Demo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a demo server is a process of its own; nobody could hand it a clock"
)]
fn now() -> jiff::Timestamp {
    let now = jiff::Timestamp::now();
    // Nobody wants to read nanoseconds.
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_server_is_found_by_its_word_and_no_other() {
        for demo in Demo::ALL {
            assert_eq!(demo.as_str().parse(), Ok(demo));
        }
        for word in ["", "Files", "file", "notes ", "clock"] {
            assert_eq!(word.parse::<Demo>(), Err(UnknownDemo(word.to_owned())));
        }
    }
}
