//! What a configuration says of one server.

use std::fmt;
use std::time::Duration;

use capstan_model::{Naming, Secret, ServerName, Trust};
use capstan_safety::address::Network;
use indexmap::IndexMap;

use crate::settings::overrides::{self, ToolOverrides};
use crate::settings::rule::Rules;
use crate::source::problem::Problem;
use crate::source::{Origin, Scope};
use capstan_safety::mask::mask_url;

pub use crate::settings::openapi::OpenApi;

/// How long a server has for an answer, unless it says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a server has to start, unless it says otherwise.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// A server of the merged configuration.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    /// Its slug.
    pub name: ServerName,
    /// Its name as the file has it.
    pub display: String,
    /// Where it was written.
    pub origin: Origin,
    /// Whether the user has approved that file.
    pub approved: bool,
    /// Whether it is switched on; known even when the rest of the entry is broken.
    pub enabled: bool,
    /// Settings of its plugin or bundle that must not be shown.
    pub secrets: Vec<Secret<String>>,
    /// The server, or what is wrong with its entry. A broken entry breaks no other.
    pub status: Result<Server, Problem>,
}

/// A server that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// How it is reached.
    pub kind: Kind,
    /// The command line or address as it may be shown: without secrets, and with variables as
    /// they were written.
    pub target: String,
    /// Whether it is switched on.
    pub enabled: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Whether a start without it is a failure.
    pub required: bool,
    /// Whether its tools are always offered, whatever a search finds.
    pub always_load: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long the start may take.
    pub startup_timeout: Duration,
    /// When it is started.
    pub start: Start,
    /// When it is stopped for want of use.
    pub idle: Idle,
    /// How far it is believed.
    pub trust: Trust,
    /// Networks that it may be reached in although they are not public.
    pub networks: Vec<Network>,
    /// The tools it offers; `None` means all.
    pub expose: Option<Vec<String>>,
    /// The tools it never offers.
    pub hide: Vec<String>,
    /// The tools it may have.
    pub tool_list: ToolList,
    /// Its own rules; they speak of its tools by their bare names.
    pub permissions: Rules,
    /// The operator's word on what its tools do.
    pub effect: EffectLists,
    /// Whether it may ask the operator; `None` leaves it to `[mcp] elicitation_enabled`.
    pub elicitation: Option<bool>,
    /// Folders it is told about, besides the project that Capstan was started in; outside a project these alone.
    pub roots: Vec<String>,
    /// Which era of MCP to speak with it.
    pub protocol: Protocol,
    /// Whether it may be logged in to.
    pub oauth: OAuth,
    /// How its tools and prompts are called towards clients and models.
    pub naming: Naming,
    /// How single tools are shown and called.
    pub tools: ToolOverrides,
}

/// Which tools a server may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolList {
    /// By their names; `None` means any.
    pub expected: Option<Vec<String>>,
    /// Whether those that it did not have when it was first seen are refused and not asked about.
    pub locked: bool,
}

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

/// When a server is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At once where somebody watches, at the first call in the gateway.
    #[default]
    Auto,
    /// At once.
    Eager,
    /// When somebody asks what there is.
    OnList,
    /// At the first call.
    Lazy,
}

/// When a server is stopped for want of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// How the time is chosen.
    pub policy: IdlePolicy,
    /// Not before this time.
    pub min: Duration,
    /// Not after this time.
    pub max: Duration,
}

/// How the idle time of a server is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdlePolicy {
    /// By how often it is used.
    #[default]
    Adaptive,
    /// It is never stopped.
    Never,
    /// After this time.
    After(Duration),
}

/// Patterns over a server's tools, by what they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectLists {
    /// Tools that only read.
    pub read: Vec<String>,
    /// Tools that write.
    pub write: Vec<String>,
}

/// Whether a server may be logged in to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OAuth {
    /// When it asks for it.
    #[default]
    Auto,
    /// Never.
    Off,
}

/// Which era of MCP to speak with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Find out.
    #[default]
    Auto,
    /// Revisions with a handshake.
    Legacy,
    /// Revisions without one.
    Modern,
}

// === impl ServerEntry ===

impl ServerEntry {
    /// The server, if it is whole, switched on and approved.
    pub fn usable(&self) -> Option<&Server> {
        let server = self.status.as_ref().ok()?;
        (self.enabled && self.approved).then_some(server)
    }

    /// Takes over what the user's own entry of that name forbids: a project replaces the entry,
    /// and loosens nothing by it. Networks are returned that do not count, or not wholly.
    pub(crate) fn keep_restrictions_of(&mut self, replaced: &Self) -> Vec<Network> {
        let from_user = replaced.origin.scope == Scope::User;
        if self.origin.scope != Scope::Project || !from_user {
            return Vec::new();
        }
        let (Ok(server), Ok(replaced)) = (&mut self.status, &replaced.status) else {
            return Vec::new();
        };
        server.permissions.deny.extend(replaced.permissions.deny.iter().cloned());
        server.permissions.ask.extend(replaced.permissions.ask.iter().cloned());
        server.hide.extend(replaced.hide.iter().cloned());
        if let Some(only) = &replaced.expose {
            let offered = server.expose.get_or_insert_with(|| only.clone());
            offered.retain(|pattern| only.contains(pattern));
        }
        if let (Kind::Cli(program), Kind::Cli(replaced)) = (&mut server.kind, &replaced.kind)
            && let Some(only) = &replaced.only
        {
            let used = program.only.get_or_insert_with(|| only.clone());
            used.retain(|subcommand| only.contains(subcommand));
        }
        if let (Kind::OpenApi(own), Kind::OpenApi(replaced)) = (&mut server.kind, &replaced.kind) {
            own.keep_restrictions_of(replaced);
        }
        overrides::keep_restrictions_of(&mut server.tools, &replaced.tools);
        // Addresses of a trusted server are not checked, so that a project's word alone would
        // open every network.
        server.trust = match (server.trust, replaced.trust) {
            (Trust::Sandboxed, _) | (_, Trust::Sandboxed) => Trust::Sandboxed,
            (Trust::Untrusted, _) | (_, Trust::Untrusted) => Trust::Untrusted,
            (Trust::Trusted, Trust::Trusted) => Trust::Trusted,
        };
        if replaced.trust == Trust::Trusted {
            return Vec::new();
        }
        let (theirs, own) = (&replaced.networks, std::mem::take(&mut server.networks));
        let is_in = |one: &Network, of: &[Network]| of.iter().any(|wider| wider.covers(one));
        let (mut kept, wider): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|one| is_in(one, theirs));
        let narrower = theirs.iter().filter(|one| is_in(one, &wider) && !is_in(one, &kept));
        let narrower: Vec<Network> = narrower.copied().collect();
        kept.extend(narrower);
        server.networks = kept;
        wider
    }
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

// === impl Start ===

impl Start {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Eager => "eager",
            Self::OnList => "on-list",
            Self::Lazy => "lazy",
        }
    }
}

// === impl Idle ===

impl Default for Idle {
    fn default() -> Self {
        let policy = IdlePolicy::default();
        Self { policy, min: Duration::from_mins(1), max: Duration::from_mins(5) }
    }
}

// === impl OAuth ===

impl OAuth {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

// === impl Protocol ===

impl Protocol {
    /// The word in configuration and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}
