//! What the configuration says of one command-line program, ready to be used.

use std::path::PathBuf;
use std::time::Duration;

use capstan_model::ServerName;
use capstan_process::once::Program;
use serde_json::Value;

/// The help flag that is tried when the configuration names none.
pub const DEFAULT_HELP: &str = "--help";

/// A command-line program and how to use it.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The server's name.
    pub name: ServerName,
    /// The program, and what is around it.
    pub program: Program,
    /// Arguments that come first in every run.
    pub args: Vec<String>,
    /// The argument that makes it print its help.
    pub help: String,
    /// How many levels of help are read; the first is that of the program itself.
    pub depth: u32,
    /// The only subcommands that may be used, each as its words; `None` means all.
    pub only: Option<Vec<String>>,
    /// Tools that are given instead of found.
    pub presets: Vec<Preset>,
    /// How long finding out may take.
    pub startup_timeout: Duration,
    /// How long a call may take.
    pub timeout: Duration,
    /// How many bytes of a call's output are kept.
    pub output: usize,
    /// Where to keep what was found; `None` keeps nothing.
    pub cache: Option<PathBuf>,
}

/// A tool that the configuration describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What is run, after the arguments that come first.
    pub args: Vec<String>,
    /// What it does.
    pub description: Option<String>,
    /// What it takes: a JSON schema of an object. Its properties become flags.
    pub input_schema: Option<Value>,
}

// === impl CommandSettings ===

impl CommandSettings {
    /// The program's name without its folder.
    pub fn binary(&self) -> &str {
        let name = self.program.command.rsplit(['/', '\\']).next().unwrap_or_default();
        if name.is_empty() { &self.program.command } else { name }
    }
}
