//! The keys of a server, `[servers.NAME]`.

pub(crate) mod auth_provider;
pub(crate) mod helper;
pub(crate) mod idle;
mod kind;
mod credentials;
pub(crate) mod oauth;
pub(crate) mod openapi;
pub(crate) mod preset;
pub(crate) mod networks;
pub(crate) mod patterns;
pub(crate) mod sandbox;
pub(crate) mod words;

use std::time::Duration;

use capstan_model::{Naming, Secret, ServerName, Trust};
use capstan_safety::address::Network;
use indexmap::IndexMap;

use self::auth_provider::AuthProviderKeys;
use self::helper::HelperSchema;
use self::networks::Networks;
use self::oauth::OAuthTable;
use self::openapi::OpenApiSchema;
use self::patterns::{EffectTable, Globs};
use self::sandbox::SandboxForm;
use self::words::Transport;
use super::define::keys;
use super::flows::{TagLists, TagTable};
use super::form::{DurationSchema, Limit, Table, WordSchema};
use super::overrides::{self, Overrides, ToolOverrides};
use super::rule::{Rules, ServerRules};
use super::screen::{ServerScreen, ServerScreenTable};
use crate::source::problem::Problem;
use crate::source::{Origin, Scope};

pub use self::auth_provider::{CloudAccount, ProviderKind};
pub use self::idle::{Idle, IdlePolicy};
pub use self::kind::{CliProgram, Fallback, Kind, Preset, Program, Remote};
pub use self::oauth::{ClientAuth, Grant, OAuthConfig};
pub use self::patterns::EffectLists;
pub use self::sandbox::{NetHost, Sandbox};
pub use self::words::{OAuth, Protocol, References, Start};
pub use super::openapi::OpenApi;

/// The time limit of a call, for servers that set none.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The time limit of the start, for servers that set none.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

keys! {
    /// One MCP server.
    pub table Server {
        /// How to reach it.
        kind: Kind,
        /// The command line or address as it may be shown: without secrets, and with variables as
        /// they were written.
        target: String,
        /// False if the server is disabled.
        enabled: bool,
        /// When it is stopped because it is idle.
        idle: Idle,
        /// The tools it may have.
        tool_list: ToolList,
        /// Whether its strings may refer to secrets.
        references: References,
    }
    by_hand {
        /// The transport. `command` implies `stdio`, `cli = true` implies `cli`. A `url` alone is tried as `http`, then as `sse`; in the other order if it ends in `/sse`.
        r#type: WordSchema<Transport>;
        /// An alias of `type`.
        transport: WordSchema<Transport>;
        /// The program to start: a name that is looked up in `PATH`, or a path, which must be absolute in your own file unless `cwd` is.
        command: String;
        /// The arguments of the program. Each is passed unchanged; no shell is involved.
        args: Vec<String>;
        /// Environment variables of the program. It gets these, a few harmless ones such as `PATH`, and no others. A value may refer to a secret: `"keyring:NAME"`, or `"command:pass show NAME"`.
        env: IndexMap<String, String>;
        /// The working directory of the program; a relative path is resolved against Capstan's own.
        cwd: String;
        /// Names of variables to pass on from Capstan's own environment.
        env_passthrough: Vec<String>;
        /// The address of a running server: `https://`, `http://` or `unix://`.
        url: String;
        /// Headers to send with every request. A value may refer to a secret: `"Bearer ${keyring:NAME}"`, or `"command:op read op://vault/item/field"`.
        headers: IndexMap<String, String>;
        /// A program that prints more headers as a JSON object, as a command line or as a list of words. It is run without a shell when the server connects, and again when the server refuses the headers.
        headers_helper: HelperSchema;
        /// Send tokens of a Google account or service account instead of a login.
        auth_provider: <AuthProviderKeys as Table>::Keys;
        /// An OpenAPI document, as a file or an address. Each operation becomes a tool.
        openapi: OpenApiSchema;
        /// Treat `command` as an ordinary command-line program, and offer its subcommands as tools.
        cli: bool = false;
        /// The argument that makes the command-line program print its help.
        cli_help: String = "--help";
        /// The depth to which subcommands are read.
        cli_depth: u32 = 2;
        /// The only subcommands to offer, each as its words: `"get"`, `"remote add"`.
        cli_only: Vec<String>;
    }
    keys {
        /// As a table: overrides, by the name that the server gives a tool. As a list: the tools of a command-line program, which then are not read from its help.
        tools: ToolOverrides as Overrides = ToolOverrides::new();
        /// The login to a server that requires one: with what the server says about it (`auto`), with the client and the endpoints of `oauth_config` (`manual`), or never (`off`).
        oauth: OAuth = OAuth::Auto;
        /// Settings of the login.
        oauth_config: OAuthConfig as OAuthTable;
        /// The name of the login to use, if you have several accounts at the address: `capstan login NAME --as LOGIN`. With `per-caller`, each caller of the gateway signs in with an account of its own.
        login: String;
    }
    by_hand {
        /// Use the server.
        enabled: bool = true;
        /// The opposite of `enabled`; set only one of the two.
        disabled: bool = false;
    }
    keys {
        /// The purpose of the server, in a sentence.
        description: String;
        /// Refuse to start the gateway without this server.
        required: bool = false;
        /// Always offer its tools, independent of tool search.
        always_load: bool = false;
        /// The time limit of a call.
        timeout: Duration as Limit = DEFAULT_TIMEOUT;
        /// The time limit of the server's start.
        startup_timeout: Duration as Limit = DEFAULT_STARTUP_TIMEOUT;
        /// When `capstan serve` starts the server: with the gateway (`eager`), when a client first requests a list (`on-list`), or at the first call (`lazy`, `auto`). A server that is not known yet is started once with the gateway by `lazy` and `auto`.
        start: Start = Start::Auto;
    }
    by_hand {
        /// The idle time after which `capstan serve` stops the server: `never`, a duration, or `adaptive` (5 minutes above 20 calls an hour, 3 minutes from 5 calls on, else 1 minute).
        idle_timeout: DurationSchema = "adaptive";
        /// The shortest idle time that `adaptive` chooses.
        min_idle_timeout: DurationSchema = "1m";
        /// The longest idle time that `adaptive` chooses.
        max_idle_timeout: DurationSchema = "5m";
    }
    keys {
        /// The trust in the server. `trusted`: its annotations of tools count, and its address is not checked. `sandboxed`: it offers only the tools under `expose`, and it cannot ask questions; a program runs in a `sandbox`.
        trust: Trust = Trust::Untrusted;
        /// Private networks in which the server may be reached, or which it may reach from its `sandbox`, in CIDR notation or as single addresses. Link-local addresses and this machine need their own entries.
        networks: Vec<Network> as Networks = Vec::new();
        /// The only tools to offer, by bare name or pattern.
        expose: Vec<String> as Globs;
        /// Tools to hide, by bare name or pattern; they stay hidden even if `expose` lists them.
        hide: Vec<String> as Globs = Vec::new();
    }
    by_hand {
        /// The names of the tools that the server may have. Other tools are refused; those of a `trusted` server are only reported.
        expected_tools: Vec<String>;
        /// Refuse tools that the server did not have when it was first seen, instead of asking about them.
        lock_tool_list: bool;
    }
    keys {
        /// Rules for the server's tools, by bare name. Its `deny` comes after the global `deny` and before all other lists.
        permissions: Rules as ServerRules = Rules::default();
        /// The effect of its tools, where their own annotations are not enough.
        effect: EffectLists as EffectTable = EffectLists::default();
        /// The tags of its tools, resources and prompts, by which `[flows]` judges calls.
        tags: TagLists as TagTable = TagLists::default();
        /// The treatment of suspicious text of the server, where it differs from `[screen]`.
        screen: ServerScreen as ServerScreenTable = ServerScreen::default();
        /// Let the server ask the operator questions. Default: `mcp.elicitation_enabled`.
        elicitation: bool;
        /// Folders to announce to the server as roots, in addition to the project in which Capstan was started.
        roots: Vec<String> = Vec::new();
        /// Confine the process of the server: `true`, or a table of what it may reach. On by default for `trust = "sandboxed"`, else off. Linux only.
        sandbox: Sandbox as SandboxForm;
        /// The era of MCP: detect it (`auto`), with a handshake (`legacy`), or without (`modern`).
        protocol: Protocol = Protocol::Auto;
        /// The names of its tools and prompts for clients and models: `server__tool`, `mcp__server__tool`, or `tool` for the first server that has it. Rules and IDs do not depend on this.
        naming: Naming = Naming::Prefixed;
    }
}

const PROGRAMS: &[Transport] = &[Transport::Stdio, Transport::Cli];
const REMOTES: &[Transport] = &[Transport::Http, Transport::Sse];
const WITH_HEADERS: &[Transport] = &[Transport::Http, Transport::Sse, Transport::OpenApi];

/// The login of servers that callers use with accounts of their own.
pub(crate) const PER_CALLER: &str = "per-caller";

/// The keys that only some kinds of servers have.
pub(crate) const KEYS_OF_KINDS: &[(&str, &[Transport])] = &[
    ("command", PROGRAMS),
    ("args", PROGRAMS),
    ("env", PROGRAMS),
    ("cwd", PROGRAMS),
    ("env_passthrough", PROGRAMS),
    ("url", REMOTES),
    ("headers", WITH_HEADERS),
    ("headers_helper", REMOTES),
    ("auth_provider", REMOTES),
    ("oauth", REMOTES),
    ("oauth_config", REMOTES),
    ("login", REMOTES),
    ("openapi", &[Transport::OpenApi]),
    ("cli", &[Transport::Cli]),
    ("cli_help", &[Transport::Cli]),
    ("cli_depth", &[Transport::Cli]),
    ("cli_only", &[Transport::Cli]),
    ("tools", &[Transport::Cli]),
    ("sandbox", PROGRAMS),
];

/// The keys that restrict what a server may do or what may be done with it.
pub const RESTRICTING_KEYS: [&str; 17] = [
    "enabled",
    "disabled",
    "expose",
    "hide",
    "permissions",
    "trust",
    "networks",
    "effect",
    "tags",
    "cli_only",
    "tools",
    "expected_tools",
    "lock_tool_list",
    "elicitation",
    "roots",
    "screen",
    "sandbox",
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

// === impl Server ===

impl Server {
    /// True if each caller of the gateway uses the server with an account of its own.
    pub fn is_per_caller(&self) -> bool {
        self.login.as_deref() == Some(PER_CALLER)
    }

    /// The sandbox of its process, if it has one.
    pub fn confinement(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref().filter(|sandbox| sandbox.enabled)
    }
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
        server.screen.keep_restrictions_of(&replaced.screen);
        server.tags.keep_restrictions_of(&replaced.tags);
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
        // A sandbox of the user's own entry stays as it is.
        if let Some(sandbox) = replaced.sandbox.as_ref().filter(|sandbox| sandbox.enabled) {
            server.sandbox = Some(sandbox.clone());
        } else if server.sandbox.is_none() {
            server.sandbox = sandbox::by_trust(server.trust, &server.kind);
        }
        if replaced.trust == Trust::Trusted {
            return None;
        }
        let narrowed = networks::narrow(&mut server.networks, &replaced.networks);
        networks::warning(self, other, &narrowed)
    }
}
