//! The merged configuration. Each module defines the keys of one table with `define::keys`.

pub(crate) mod define;
pub(crate) mod form;
pub(crate) mod file;
pub(crate) mod flows;
pub(crate) mod access;
pub(crate) mod authorization;
pub(crate) mod audit;
pub(crate) mod gateway;
pub(crate) mod mcp;
pub(crate) mod model;
pub(crate) mod screen;
pub(crate) mod search;
pub(crate) mod tools;
pub(crate) mod rate;
pub(crate) mod openapi;
pub mod overrides;
pub mod rule;
pub mod server;
mod connects_like;

use capstan_model::ServerName;
use capstan_policy::{AccessTable, DefaultRule};

use self::rule::{Reach, Rules};
use self::server::ServerEntry;
use crate::source::{FilePosition, Origin};
use indexmap::IndexMap;

pub use self::audit::{Audit, AuditArguments, AuditOnFull};
pub use self::flows::{Flows, TagLists};
pub use self::gateway::auth::{Auth, AuthProvider, RESERVED_SUBJECTS};
pub use self::gateway::bearer::BearerToken;
pub use self::gateway::clients::ClientSetting;
pub use self::gateway::forwarded::Forwarded;
pub use self::gateway::jwt::{JwtAlgorithm, JwtAuth};
pub use self::gateway::limits::GatewayLimits;
pub use self::gateway::oauth_as::{OauthAs, TokenAlgorithm};
pub use self::gateway::upstream::UpstreamProvider;
pub use self::gateway::{CLIENT_DOCUMENT, Confirm, Gateway};
pub use self::mcp::{CommandList, Mcp};
pub use self::model::Model;
pub use self::rate::RateSetting;
pub use self::screen::{Screen, ServerScreen};
pub use self::search::{Search, Strategy};
pub use self::tools::Tools;

/// The merged configuration of all files.
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
    /// `[flows]`.
    pub flows: Flows,
    /// `[search]`.
    pub search: Search,
    /// `[gateway]`.
    pub gateway: Gateway,
    /// `[model]`.
    pub model: Model,
}

/// The rules for all servers.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    /// The three lists.
    pub rules: Rules,
    /// The defaults for calls that no rule matches, by precedence.
    pub defaults: Vec<DefaultSetting>,
}

/// A `permissions.default` with its origin.
#[derive(Clone, Debug)]
pub struct DefaultSetting {
    /// The default.
    pub rule: DefaultRule,
    /// Its position.
    pub origin: Origin,
    /// The servers that it applies to.
    pub reach: Reach,
}

/// An `[access]` table with its position.
#[derive(Clone, Debug)]
pub struct AccessSetting {
    /// The table.
    pub table: AccessTable,
    /// Its position.
    pub place: FilePosition,
}

// === impl Config ===

impl Config {
    /// Returns the commands that a server of this file may be started with; `None` means any.
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
    /// Returns the default for a call that no rule matches, to a server of this file.
    ///
    /// `None` leaves the decision to the front.
    pub fn default_for(&self, file: &str) -> Option<DefaultRule> {
        self.defaults.iter().find(|setting| setting.reach.covers(file)).map(|setting| setting.rule)
    }
}
