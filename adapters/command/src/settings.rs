//! The settings of one command-line program.

use std::path::PathBuf;
use std::time::Duration;

use capstan_model::ServerName;
use capstan_process::once::Program;
use serde_json::Value;

/// The default help flag.
pub const DEFAULT_HELP: &str = "--help";

/// A command-line program and how to use it.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The server's name.
    pub name: ServerName,
    /// The program and its environment.
    pub program: Program,
    /// The first arguments of every run.
    pub args: Vec<String>,
    /// The argument that makes it print its help.
    pub help: String,
    /// The number of levels of help that are read; the first is that of the program itself.
    pub depth: u32,
    /// The only subcommands that may be used, each as its words; `None` for all.
    pub only: Option<Vec<String>>,
    /// Configured tools, in place of discovered ones.
    pub presets: Vec<Preset>,
    /// Timeout of the discovery.
    pub startup_timeout: Duration,
    /// Timeout of a call.
    pub timeout: Duration,
    /// Maximum number of bytes of a call's output that are kept.
    pub output: usize,
    /// The cache directory; `None` disables the cache.
    pub cache: Option<PathBuf>,
}

/// A tool that the configuration describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// The arguments, after the fixed ones.
    pub args: Vec<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its input: a JSON schema of an object. The properties become flags.
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
