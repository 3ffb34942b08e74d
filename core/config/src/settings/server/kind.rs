//! How a server is reached.

use std::fmt;

use capstan_model::Secret;
use indexmap::IndexMap;

use crate::settings::openapi::OpenApi;
use capstan_safety::mask::mask_url;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process that speaks MCP over its standard input and output.
    Stdio(Program),
    /// Streamable HTTP.
    Http(Remote),
    /// The older HTTP with server-sent events.
    Sse(Remote),
    /// A command-line program whose subcommands become tools.
    Cli(CliProgram),
    /// An HTTP interface described by an OpenAPI document.
    OpenApi(OpenApi),
}

/// A program to start.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable: a bare name, looked up in `PATH`, or a path.
    pub command: String,
    /// Its arguments, each passed on as it is.
    pub args: Vec<String>,
    /// Variables set for it.
    pub env: IndexMap<String, Secret<String>>,
    /// Where it runs; a relative path starts at our own folder.
    pub cwd: Option<String>,
    /// Variables of ours that it gets besides the harmless ones.
    pub env_passthrough: Vec<String>,
}

/// A server somewhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its address.
    pub url: String,
    /// Headers sent with every request.
    pub headers: IndexMap<String, Secret<String>>,
    /// What to do where the transport of its kind is not spoken.
    pub fallback: Fallback,
}

/// What to do when a server does not speak the transport of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// Give up: the file says which transport it is.
    #[default]
    Never,
    /// Try the other one, `sse` after `http` or `http` after `sse`, and remember what worked.
    OtherTransport,
}

/// A command-line program used as a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliProgram {
    /// The program.
    pub program: Program,
    /// The argument that makes it print its help.
    pub help: String,
    /// How deep its subcommands are looked at.
    pub depth: u32,
    /// The only subcommands that may be used; `None` means all.
    pub only: Option<Vec<String>>,
    /// Tools that are given instead of found.
    pub presets: Vec<Preset>,
}

/// A tool of a command-line program, as a file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What is run, after the program's own arguments.
    pub args: Vec<String>,
    /// What it does.
    pub description: Option<String>,
    /// What it takes, as a JSON schema of an object.
    pub input_schema: Option<serde_json::Value>,
}

// === impl Kind ===

impl Kind {
    /// The kind's word in configuration and output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
            Self::Cli(_) => "cli",
            Self::OpenApi(_) => "openapi",
        }
    }
}

// Arguments and addresses may carry secrets, so these do not show them as they are.

// === impl Program ===

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env)
            .field("cwd", &self.cwd)
            .field("env_passthrough", &self.env_passthrough)
            .finish()
    }
}

// === impl Remote ===

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = mask_url(&self.url);
        f.debug_struct("Remote")
            .field("url", &url)
            .field("headers", &self.headers)
            .field("fallback", &self.fallback)
            .finish()
    }
}
