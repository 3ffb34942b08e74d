//! What the configuration says of one stdio server, ready to be used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use capstan_model::{Secret, ServerName};

/// How to start a server and how to talk to it.
#[derive(Clone, Debug)]
pub struct StdioSettings {
    /// Its name.
    pub name: ServerName,
    /// The program: a name to be found in `PATH`, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment: what passes by default and what is declared for it.
    pub environment: BTreeMap<String, Secret<String>>,
    /// Values that must not appear in anything we show.
    pub secrets: Vec<Secret<String>>,
    /// Where it runs; `None` for our own folder.
    pub cwd: Option<PathBuf>,
    /// How long it may take to start and say who it is.
    pub startup_timeout: Duration,
    /// How long it may take to answer.
    pub timeout: Duration,
    /// Which era of the protocol to speak.
    pub era: Era,
    /// The folders that it is told to work in.
    pub roots: Vec<Root>,
    /// Whether it may ask the operator anything.
    pub elicitation: Elicitation,
    /// Our own program, which becomes the keeper.
    pub keeper: PathBuf,
}

/// Which era of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Era {
    /// Find out.
    #[default]
    Auto,
    /// With a handshake, up to 2025-11-25.
    Legacy,
    /// Without a handshake, from 2026-07-28 on.
    Modern,
}

/// Whether a server may ask the operator anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Elicitation {
    /// The capability is offered to it.
    #[default]
    Offered,
    /// It is not told that it could.
    Off,
}

/// A folder that a server is told to work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// As a `file://` URI.
    pub uri: String,
    /// For people.
    pub name: String,
}
