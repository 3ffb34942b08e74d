//! The keys of `[gateway]`.
//!
//! `clients` has the exposure of single clients, `limits` the limits, `auth` the providers that
//! authenticate callers; `bearer`, `forwarded`, `jwt` and `oauth_as` have the settings of a
//! provider each; `upstream` those of the provider at which users of `oauth_as` sign in.

pub(crate) mod auth;
pub(crate) mod bearer;
pub(crate) mod clients;
pub(crate) mod forwarded;
pub(crate) mod jwt;
pub(crate) mod limits;
pub(crate) mod oauth_as;
pub(crate) mod upstream;

use std::time::Duration;

use capstan_model::{CallTools, Expose};
use indexmap::IndexMap;
use serde::Serialize;

use self::auth::{Auth, AuthKeys, AuthPart};
use self::clients::{ClientKeys, ClientSetting};
use self::limits::GatewayLimits;
use super::define::keys;
use super::form::{OneOf, Table, Wait};
use crate::fields::{Fields, Words};
use crate::source::Scope;
use crate::source::problem::Problem;

keys! {
    /// The gateway of `capstan serve --http`. A project file cannot set these keys.
    pub merged Gateway {
        /// Limits on requests, connections and sessions.
        limits: GatewayLimits,
        /// The authentication of callers; `None` if no file has the table.
        auth: Option<Auth>,
        /// What clients are offered, by the names that they give themselves.
        clients: Vec<ClientSetting>,
    }
    keys {
        /// The address to listen on: `HOST:PORT`, or `:PORT` for this machine only. Port 0 picks a free port.
        listen: String = "127.0.0.1:8080".to_owned(), nearest;
        /// A separate address for `/metrics`: `HOST:PORT`, or `:PORT` for this machine only. The metrics name all servers.
        metrics_listen: String, nearest;
        /// The address that clients use, if it differs from `listen`: behind a proxy, or with a host name.
        public_url: String, nearest;
        /// Host names that clients may use for the gateway, in addition to `localhost` and the address it listens on.
        allowed_hosts: Vec<String> = Vec::new(), nearest;
        /// Origins of web pages that may use the gateway, in addition to those of this machine: `https://app.example.com`.
        allowed_origins: Vec<String> = Vec::new(), nearest;
        /// A PEM file with the certificate chain. If set, the gateway accepts only TLS.
        tls_cert: String, nearest;
        /// A PEM file with the private key of the certificate.
        tls_key: String, nearest;
        /// Check arguments against the tool's schema before they are sent.
        validate_arguments: bool = false, nearest;
        /// The longest time that lists wait for a server that was never seen before, once for each server. A server that fails ends its wait.
        first_list_wait: Duration as Wait = Duration::from_secs(8), nearest;
        /// The time that a call waits for an approval if its client cannot ask its user; `"0s"` refuses it at once.
        approval_wait: Duration as Wait = Duration::from_secs(15), nearest;
        /// Let users of clients save an approval as a rule in your configuration.
        save_approvals: bool = false, nearest;
        /// Who confirms calls that only the default asks about, for the client that starts `capstan serve` on stdio: `"capstan"` asks, and `"client"` leaves them to the client's own dialog. Rules that ask or deny and pins apply in both cases. `capstan serve --confirm` overrides it.
        confirm: Confirm = Confirm::Capstan, nearest;
        /// The tools that clients get: `"all"`; `"search"`, which is `search_tools`, `describe_tool`, `call_tool` and the pinned tools (`always_load` of a server, `search.always_include`); or `"auto"`, which is `"search"` if all tools cost more than `expose_tokens`. With `"search-by-effect"` and `"auto-by-effect"`, `call_read_tool` and `call_write_tool` replace `call_tool`, for clients that approve calls by the name of the tool. `capstan serve --expose` overrides it.
        expose: Expose = Expose::All, nearest;
        /// With `expose = "auto"`, clients get all tools while these cost a model at most this number of tokens.
        expose_tokens: u32 = 20_000, nearest;
    }
    by_hand {
        /// Limits on requests, connections and sessions.
        limits: <GatewayLimits as Table>::Keys;
        /// Authentication of callers.
        auth: <AuthKeys as Table>::Keys;
        /// Settings for single clients, by the name that a client gives itself. `*` in it matches anything.
        clients: IndexMap<String, <ClientKeys as Table>::Keys> as "table of tables";
    }
}

/// The party that confirms calls that only the default asks about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// Capstan asks, and can remember the answer.
    #[default]
    Capstan,
    /// The client's own dialog.
    Client,
}

/// The `[gateway]` table of one file.
#[derive(Debug, Default)]
pub(crate) struct GatewayPart {
    pub(crate) keys: InFile,
    pub(crate) limits: limits::InFile,
    pub(crate) auth: AuthPart,
    pub(crate) clients: Vec<ClientSetting>,
}

/// The path of our metadata document below the public address.
pub const CLIENT_DOCUMENT: &str = "/oauth/client.json";

// === impl Gateway ===

impl Gateway {
    /// The address of our metadata document as an OAuth client; `None` without a public `https`
    /// address, where no authorization server could read it.
    pub fn client_document(&self) -> Option<String> {
        let url = self.public_url.as_deref()?.trim_end_matches('/');
        let base = url.strip_suffix("/mcp").unwrap_or(url);
        let is_public = base.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
        is_public.then(|| format!("{base}{CLIENT_DOCUMENT}"))
    }
}

// === impl GatewayPart ===

impl GatewayPart {
    /// Reads the table of one file.
    ///
    /// A project's table is checked but not used: a cloned folder must not decide who reaches the
    /// gateway.
    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Self {
        let mut part = Self { keys: InFile::read(&mut fields), ..Self::default() };
        part.keys.check_tls(&mut fields);
        if let Some(mut limits) = fields.nested("limits") {
            part.limits = limits::InFile::read(&mut limits);
            limits.finish();
        }
        part.auth = AuthPart::read(&mut fields);
        part.clients = clients::read(&mut fields);
        let of_project = fields.report().file.scope == Scope::Project;
        if of_project {
            let problem = Problem::warning("`[gateway]` in a project file is not used")
                .help("move it to your own configuration file");
            fields.table_problem(problem);
        }
        fields.finish();
        if of_project { Self { auth: part.auth, ..Self::default() } } else { part }
    }
}

// === impl InFile ===

impl InFile {
    fn check_tls(&self, fields: &mut Fields<'_, '_>) {
        let (has, lacks) = match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => ("tls_cert", "tls_key"),
            (None, Some(_)) => ("tls_key", "tls_cert"),
            (Some(_), Some(_)) | (None, None) => return,
        };
        let problem = Problem::error(format!("`gateway.{has}` is set without `{lacks}`"))
            .help("TLS needs both; each is a PEM file");
        fields.problem(has, problem);
    }
}

// === impl Confirm ===

impl Confirm {
    /// The word in a configuration and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capstan => "capstan",
            Self::Client => "client",
        }
    }
}

impl OneOf for Expose {
    const WORDS: Words<Self> = &[
        ("all", Self::All),
        ("search", Self::Search(CallTools::One)),
        ("search-by-effect", Self::Search(CallTools::ByEffect)),
        ("auto", Self::Auto(CallTools::One)),
        ("auto-by-effect", Self::Auto(CallTools::ByEffect)),
    ];
}

impl OneOf for Confirm {
    const WORDS: Words<Self> = &[("capstan", Self::Capstan), ("client", Self::Client)];
}
