//! The kinds of servers, and how each is reached.

use std::fmt;

use capstan_model::Secret;
use indexmap::IndexMap;

use super::auth_provider::CloudAccount;
use crate::settings::openapi::OpenApi;
use crate::url::is_local_address;
use capstan_safety::mask::mask_url;

/// The kind of a server, with the settings of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process that speaks MCP over its standard input and output.
    Stdio(Program),
    /// Streamable HTTP.
    Http(Remote),
    /// The older HTTP transport with server-sent events.
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
    /// Its arguments, each passed unchanged.
    pub args: Vec<String>,
    /// Variables set for it.
    pub env: IndexMap<String, Secret<String>>,
    /// Its working directory; a relative path starts at Capstan's own.
    pub cwd: Option<String>,
    /// Variables of Capstan's environment that it gets in addition to the harmless ones.
    pub env_passthrough: Vec<String>,
}

/// A remote server.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its address.
    pub url: String,
    /// Headers to send with every request.
    pub headers: IndexMap<String, Secret<String>>,
    /// The program and arguments that print more headers, when the server connects.
    pub headers_helper: Option<Vec<String>>,
    /// The account whose tokens are sent, instead of a login.
    pub auth_provider: Option<CloudAccount>,
    /// The behavior if the server does not support the transport of its kind.
    pub fallback: Fallback,
}

/// The behavior if a server does not support the transport of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// Fails: the file sets the transport explicitly.
    #[default]
    Never,
    /// Tries the other one (`sse` after `http` or the reverse), and remembers which one worked.
    OtherTransport,
}

/// A command-line program used as a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CliProgram {
    /// The program.
    pub program: Program,
    /// The argument that makes it print its help.
    pub help: String,
    /// The depth to which its subcommands are explored.
    pub depth: u32,
    /// The only subcommands that may be used; `None` means all.
    pub only: Option<Vec<String>>,
    /// Tools from the configuration, which replace those found in its help.
    pub presets: Vec<Preset>,
}

/// A tool of a command-line program, as a file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// Its arguments, after the program's own.
    pub args: Vec<String>,
    /// Its description.
    pub description: Option<String>,
    /// Its parameters, as a JSON schema of an object.
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

// Arguments and addresses may contain secrets, so these implementations do not print them unmasked.

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

impl Remote {
    /// True if the server runs on this machine, by its address.
    pub fn is_here(&self) -> bool {
        self.url.starts_with("unix:") || is_local_address(&self.url)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = mask_url(&self.url);
        f.debug_struct("Remote")
            .field("url", &url)
            .field("headers", &self.headers)
            .field("headers_helper", &self.headers_helper.as_ref().map(Vec::len))
            .field("auth_provider", &self.auth_provider)
            .field("fallback", &self.fallback)
            .finish()
    }
}
