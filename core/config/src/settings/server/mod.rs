//! The keys of a server, `[servers.NAME]`.

pub(crate) mod idle;
mod kind;
mod credentials;
pub(crate) mod openapi;
pub(crate) mod preset;
pub(crate) mod networks;
pub(crate) mod patterns;
pub(crate) mod words;

use std::time::Duration;

use capstan_model::{Naming, Secret, ServerName, Trust};
use capstan_safety::address::Network;
use indexmap::IndexMap;

use self::networks::Networks;
use self::openapi::OpenApiSchema;
use self::patterns::{EffectTable, Globs};
use self::words::{Login, Transport};
use super::define::keys;
use super::form::{DurationSchema, Limit, WordSchema};
use super::overrides::{self, Overrides, ToolOverrides};
use super::rule::{Rules, ServerRules};
use crate::source::problem::Problem;
use crate::source::{Origin, Scope};

pub use self::idle::{Idle, IdlePolicy};
pub use self::kind::{CliProgram, Fallback, Kind, Preset, Program, Remote};
pub use self::patterns::EffectLists;
pub use self::words::{OAuth, Protocol, Start};
pub use super::openapi::OpenApi;

/// The time limit of a call, for servers that set none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The time limit of the start, for servers that set none.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

keys! {
    /// One MCP server.
    pub table Server {
        /// How it is reached.
        kind: Kind,
        /// The command line or address as it may be shown: without secrets, and with variables as
        /// they were written.
        target: String,
        /// Whether it is switched on.
        enabled: bool,
        /// When it is stopped for want of use.
        idle: Idle,
        /// The tools it may have.
        tool_list: ToolList,
    }
    by_hand {
        /// How it is reached. `command` implies `stdio`, `cli = true` implies `cli`. A `url` alone is tried as `http`, then as `sse`; the other way round where it ends in `/sse`.
        r#type: WordSchema<Transport>;
        /// Another name of `type`.
        transport: WordSchema<Transport>;
        /// The program to start: a bare name, looked up in `PATH`, or a path.
        command: String;
        /// Its arguments; each is passed on as it is, no shell is involved.
        args: Vec<String>;
        /// Variables set for it. It gets these, a few harmless ones such as `PATH`, and no others.
        env: IndexMap<String, String>;
        /// The folder it runs in; a relative path starts at Capstan's own.
        cwd: String;
        /// Names of further variables of Capstan's own environment that it gets.
        env_passthrough: Vec<String>;
        /// The address of a server that runs elsewhere: `https://`, `http://` or `unix://`.
        url: String;
        /// Headers sent with every request.
        headers: IndexMap<String, String>;
        /// An OpenAPI document, as a file or an address; each operation becomes a tool.
        openapi: OpenApiSchema;
        /// Whether `command` is an ordinary command-line program whose subcommands become tools.
        cli: bool = false;
        /// The argument that makes a command-line program print its help.
        cli_help: String = "--help";
        /// How deep subcommands are looked at.
        cli_depth: u32 = 2;
        /// The only subcommands that may be used, each by its words: `"get"`, `"remote add"`.
        cli_only: Vec<String>;
    }
    keys {
        /// By the name that the server gives a tool: how it is shown and called. As a list: the tools of a command-line program, given instead of found in its help.
        tools: ToolOverrides as Overrides = ToolOverrides::new();
        /// Whether logins are attempted: nothing but `auto` and `off` works in this version.
        oauth: OAuth as Login = OAuth::Auto;
    }
    by_hand {
        /// Whether it is used at all.
        enabled: bool = true;
        /// The opposite of `enabled`; only one of the two may stand.
        disabled: bool = false;
    }
    keys {
        /// What it is for, in a sentence.
        description: String;
        /// Whether a start without it is a failure.
        required: bool = false;
        /// Whether its tools are always offered, whatever a search finds.
        always_load: bool = false;
        /// How long a call may take.
        timeout: Duration as Limit = DEFAULT_TIMEOUT;
        /// How long the start may take.
        startup_timeout: Duration as Limit = DEFAULT_STARTUP_TIMEOUT;
        /// When `capstan serve` starts it: with the gateway, when a client first asks for a list, or at the first call, which `auto` is too. Where nothing is known of it from before, `lazy` and `auto` start it with the gateway once.
        start: Start = Start::Auto;
    }
    by_hand {
        /// When `capstan serve` stops it for want of use: `never`, a duration, or by how often it is called (`adaptive`: 5 minutes above 20 calls an hour, 3 from 5 on, else 1).
        idle_timeout: DurationSchema = "adaptive";
        /// The shortest idle time that `adaptive` chooses.
        min_idle_timeout: DurationSchema = "1m";
        /// The longest idle time that `adaptive` chooses.
        max_idle_timeout: DurationSchema = "5m";
    }
    keys {
        /// How far it is believed. `trusted`: what it says of its tools counts, and its address is not checked. `sandboxed`: only the tools under `expose`, and it never asks anything.
        trust: Trust = Trust::Untrusted;
        /// Networks that it may be reached in although they are not public, in CIDR notation; a bare address means itself. Link-local addresses and this machine need an entry of their own.
        networks: Vec<Network> as Networks = Vec::new();
        /// The only tools it offers, by bare name or pattern.
        expose: Vec<String> as Globs;
        /// Tools it never offers, whatever `expose` says.
        hide: Vec<String> as Globs = Vec::new();
    }
    by_hand {
        /// The tools it may have, by their names; others are refused, and only told of when it is `trusted`.
        expected_tools: Vec<String>;
        /// Refuse tools that it did not have when it was first seen, instead of asking about them.
        lock_tool_list: bool;
    }
    keys {
        /// Rules for its own tools, by bare name. Its deny comes after the global deny and before everything else.
        permissions: Rules as ServerRules = Rules::default();
        /// What its tools do, where their own word is not enough.
        effect: EffectLists as EffectTable = EffectLists::default();
        /// Whether it may ask the operator; unset, `mcp.elicitation_enabled` decides.
        elicitation: bool;
        /// Folders it is told about, besides the project that Capstan was started in; outside a project these alone.
        roots: Vec<String> = Vec::new();
        /// Which era of MCP to speak: find out, with a handshake (`legacy`), or without (`modern`).
        protocol: Protocol = Protocol::Auto;
        /// How its tools and prompts are called towards clients and models: `server__tool`, `mcp__server__tool`, or `tool` for the first server that has it. Rules and ids are the same with each.
        naming: Naming = Naming::Prefixed;
    }
}

const PROGRAMS: &[Transport] = &[Transport::Stdio, Transport::Cli];
const REMOTES: &[Transport] = &[Transport::Http, Transport::Sse];
const WITH_HEADERS: &[Transport] = &[Transport::Http, Transport::Sse, Transport::OpenApi];

/// The keys that only some kinds of servers have.
pub(crate) const KEYS_OF_KINDS: &[(&str, &[Transport])] = &[
    ("command", PROGRAMS),
    ("args", PROGRAMS),
    ("env", PROGRAMS),
    ("cwd", PROGRAMS),
    ("env_passthrough", PROGRAMS),
    ("url", REMOTES),
    ("headers", WITH_HEADERS),
    ("networks", WITH_HEADERS),
    ("openapi", &[Transport::OpenApi]),
    ("cli", &[Transport::Cli]),
    ("cli_help", &[Transport::Cli]),
    ("cli_depth", &[Transport::Cli]),
    ("cli_only", &[Transport::Cli]),
    ("tools", &[Transport::Cli]),
];

/// The keys that restrict what a server may do or what may be done with it.
pub const RESTRICTING_KEYS: [&str; 9] = [
    "enabled",
    "disabled",
    "expose",
    "hide",
    "permissions",
    "trust",
    "networks",
    "effect",
    "cli_only",
];

/// A server of the merged configuration.
#[derive(Clone, Debug)]
pub struct ServerEntry {
    /// Its slug.
    pub name: ServerName,
    /// Its name as the file spells it.
    pub display: String,
    /// Its position.
    pub origin: Origin,
    /// True if the user has approved that file.
    pub approved: bool,
    /// True if it is enabled; known even if the rest of the entry is broken.
    pub enabled: bool,
    /// Settings of its plugin or bundle that must not be shown.
    pub secrets: Vec<Secret<String>>,
    /// The server, or the error in its entry. A broken entry does not affect the others.
    pub status: Result<Server, Problem>,
}

/// The tools that a server may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolList {
    /// The names of the expected tools; `None` means any.
    pub expected: Option<Vec<String>>,
    /// True if tools that it did not have when it was first seen are refused without asking.
    pub locked: bool,
}

// === impl ServerEntry ===

impl ServerEntry {
    /// Returns the server, if it is valid, enabled and approved.
    pub fn usable(&self) -> Option<&Server> {
        let server = self.status.as_ref().ok()?;
        (self.enabled && self.approved).then_some(server)
    }

    /// Adds the restrictions of the user's own entry of that name.
    ///
    /// A project therefore loosens nothing when it replaces the entry. Returns a warning if the
    /// networks of the project's entry are narrowed.
    pub(crate) fn keep_restrictions_of(&mut self, other: &Self) -> Option<Problem> {
        let from_user = other.origin.scope == Scope::User;
        if self.origin.scope != Scope::Project || !from_user {
            return None;
        }
        let (Ok(server), Ok(replaced)) = (&mut self.status, &other.status) else { return None };
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
        // Addresses of a trusted server are not checked, so a project alone could open every
        // network.
        server.trust = match (server.trust, replaced.trust) {
            (Trust::Sandboxed, _) | (_, Trust::Sandboxed) => Trust::Sandboxed,
            (Trust::Untrusted, _) | (_, Trust::Untrusted) => Trust::Untrusted,
            (Trust::Trusted, Trust::Trusted) => Trust::Trusted,
        };
        if replaced.trust == Trust::Trusted {
            return None;
        }
        let narrowed = networks::narrow(&mut server.networks, &replaced.networks);
        networks::warning(self, other, &narrowed)
    }
}
