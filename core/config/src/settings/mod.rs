//! The merged configuration.

mod connects_like;
pub(crate) mod openapi;
pub mod overrides;
pub mod rule;
pub mod server;

use std::time::Duration;

use capstan_model::{RateBy, ServerName};
use capstan_policy::{AccessTable, DefaultRule, Pattern};

use indexmap::IndexMap;
use serde::Serialize;

use crate::settings::rule::{OrderedRule, Reach, Rules};
use crate::settings::server::ServerEntry;
use crate::source::{Origin, Place};

/// Everything the files say, put together.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The servers: those of the first scope first, in the order of their files.
    pub servers: IndexMap<ServerName, ServerEntry>,
    /// `[permissions]`.
    pub permissions: Permissions,
    /// `[access]`, one for each file that has it. All of them must agree.
    pub access: Vec<AccessSetting>,
    /// `[tools]`.
    pub tools: Tools,
    /// `[mcp]`.
    pub mcp: Mcp,
    /// `[audit]`.
    pub audit: Audit,
    /// `[screen]`.
    pub screen: Screen,
    /// `[gateway]`.
    pub gateway: Gateway,
}

/// The rules for all servers.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The three lists.
    pub rules: Rules,
    /// What is said of calls that no rule speaks of, by precedence.
    pub defaults: Vec<DefaultSetting>,
}

/// A `permissions.default` with its place.
#[derive(Clone, Debug)]
pub struct DefaultSetting {
    /// What it says.
    pub rule: DefaultRule,
    /// Where it was written.
    pub origin: Origin,
    /// Which servers it speaks of.
    pub reach: Reach,
}

/// An `[access]` with its place.
#[derive(Clone, Debug)]
pub struct AccessSetting {
    /// What it says.
    pub table: AccessTable,
    /// Where it was written.
    pub place: Place,
}

/// What binds tools of all servers.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// How many calls a session may make; `None` means any number.
    pub max_tool_calls_per_session: Option<u32>,
    /// The `[tools.policy]` lists.
    pub policy: Rules,
    /// The `[tools.authorization]` rules that are switched on, in their order.
    pub authorization: Vec<OrderedRule>,
    /// The `[[tools.rates]]`, of all files.
    pub rates: Vec<Rate>,
}

/// How many calls there may be in some time.
#[derive(Clone, Debug)]
pub struct Rate {
    /// How many.
    pub limit: u32,
    /// In how long.
    pub every: Duration,
    /// Which calls count together.
    pub by: RateBy,
    /// The tools that are meant; empty for everything that can be called.
    pub tools: Vec<Pattern>,
    /// What callers are told.
    pub reason: Option<String>,
    /// Where it was written.
    pub origin: Origin,
    /// The rate as `config show` has it.
    pub(crate) shown: String,
}

/// What binds all servers.
#[derive(Clone, Debug)]
pub struct Mcp {
    /// Lists of commands that may be started; a command must be in every list that covers its
    /// server.
    pub allowed_commands: Vec<CommandList>,
    /// How many servers may be added at run time.
    pub max_dynamic_servers: u32,
    /// Whether servers may ask the operator.
    pub elicitation_enabled: bool,
    /// How long a question waits for an answer.
    pub elicitation_timeout: Duration,
    /// How many questions may wait.
    pub elicitation_queue: u32,
}

/// An `allowed_commands` with its place.
#[derive(Clone, Debug)]
pub struct CommandList {
    /// The commands.
    pub commands: Vec<String>,
    /// Where it was written.
    pub origin: Origin,
    /// Which servers it binds.
    pub reach: Reach,
}

/// The audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Whether it is kept.
    pub enabled: bool,
    /// Its file; `None` means the usual place.
    pub path: Option<String>,
    /// What of the arguments is written.
    pub arguments: AuditArguments,
    /// How long entries are kept.
    pub retention: Duration,
    /// The size at which a file is put aside, in bytes.
    pub max_size: u64,
    /// The size of all files together, in bytes.
    pub max_total: u64,
    /// Whether an answer waits until the disk has its entry.
    pub durable: bool,
    /// What becomes of calls while the log cannot be written.
    pub on_full: AuditOnFull,
}

/// What becomes of calls while the audit log cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOnFull {
    /// They are made, and it is told and counted that entries are missing.
    #[default]
    Degrade,
    /// They are refused.
    Refuse,
}

/// What of a call's arguments is written to the audit log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditArguments {
    /// Nothing.
    #[default]
    Off,
    /// The arguments without what looks like a secret.
    Redacted,
}

/// What is looked at in answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The largest answer, in bytes.
    pub max_answer: u64,
}

/// Where the gateway listens, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The address, as it was written; `None` means the usual one.
    pub listen: Option<String>,
    /// The address of the metrics, as it was written; `None` means that they are with all else.
    pub metrics_listen: Option<String>,
    /// The address by which clients reach it, where that is another.
    pub public_url: Option<String>,
    /// Names by which clients may call it, beside those of the loopback and its own address.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may use it, beside those of this machine.
    pub allowed_origins: Vec<String>,
    /// The file with its certificate.
    pub tls_cert: Option<String>,
    /// The file with the certificate's key.
    pub tls_key: Option<String>,
    /// Whether arguments are checked against a tool's schema before they are sent.
    pub validate_arguments: bool,
    /// How long a call waits for an approval when its client cannot be asked.
    pub approval_wait: Duration,
    /// Whether clients may have an approval saved as a rule.
    pub save_approvals: bool,
    /// Its bounds.
    pub limits: GatewayLimits,
}

/// The bounds of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// The largest request, in bytes.
    pub max_body: u64,
    /// How many connections may be open.
    pub max_connections: u32,
    /// How many sessions of older clients may be open.
    pub max_sessions: u32,
    /// How long a session may be idle.
    pub session_idle: Duration,
}

// === impl Config ===

impl Config {
    /// The commands that a server of this file may be started with; `None` means any.
    pub fn allowed_commands(&self, file: &str) -> Option<Vec<String>> {
        let mut lists = self.mcp.allowed_commands.iter().filter(|list| list.reach.covers(file));
        let mut allowed = lists.next()?.commands.clone();
        for list in lists {
            allowed.retain(|command| list.commands.contains(command));
        }
        Some(allowed)
    }
}

// === impl Permissions ===

impl Permissions {
    /// What is said of a call to a server of this file that no rule speaks of; `None` leaves it
    /// to the front.
    pub fn default_for(&self, file: &str) -> Option<DefaultRule> {
        self.defaults.iter().find(|setting| setting.reach.covers(file)).map(|setting| setting.rule)
    }
}

// === impl Mcp ===

impl Default for Mcp {
    fn default() -> Self {
        Self {
            allowed_commands: Vec::new(),
            max_dynamic_servers: 10,
            elicitation_enabled: true,
            elicitation_timeout: Duration::from_mins(2),
            elicitation_queue: 16,
        }
    }
}

// === impl Audit ===

impl Default for Audit {
    fn default() -> Self {
        Self {
            enabled: true,
            path: None,
            arguments: AuditArguments::default(),
            retention: Duration::from_hours(90 * 24),
            max_size: 100 << 20,
            max_total: 1 << 30,
            durable: false,
            on_full: AuditOnFull::default(),
        }
    }
}

// === impl AuditArguments ===

impl AuditArguments {
    /// The word in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Redacted => "redacted",
        }
    }
}

// === impl AuditOnFull ===

impl AuditOnFull {
    /// The word in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Degrade => "degrade",
            Self::Refuse => "refuse",
        }
    }
}

// === impl Screen ===

impl Default for Screen {
    fn default() -> Self {
        Self { max_answer: 10 << 20 }
    }
}

// === impl Gateway ===

impl Default for Gateway {
    fn default() -> Self {
        Self {
            listen: None,
            metrics_listen: None,
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls_cert: None,
            tls_key: None,
            validate_arguments: false,
            approval_wait: Duration::from_secs(15),
            save_approvals: false,
            limits: GatewayLimits::default(),
        }
    }
}

// === impl GatewayLimits ===

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            max_body: 4 << 20,
            max_connections: 4096,
            max_sessions: 10_000,
            session_idle: Duration::from_mins(30),
        }
    }
}
