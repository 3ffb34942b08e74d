//! What the command line needs from the program around it.
//!
//! A front knows no adapter; the binary implements this trait out of them.

mod addresses;
mod attach;
mod clients;
mod registry;
mod paces;
mod rules;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use capstan_config::edit::EditError;
use capstan_config::{Dialect, Loaded, Scope, SourceFile};
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;
use capstan_model::{Kind, ServerName};
use serde::Serialize;
use serde_json::{Map, Value};

pub use addresses::{Addresses, UrlAddresses};
pub use attach::{Attach, Inside};
pub use clients::{Clients, Installed, Mode, Spot, Uninstalled};
pub use paces::Paces;
pub use registry::Registries;
pub use rules::Rules;

pub use crate::context::find_server;

use crate::args::Options;
use crate::desks::Desks;
use crate::exit::Failure;

/// The program around the command line.
pub trait Host:
    Addresses + Attach + Clients + Desks + Paces + Registries + Rules + Send + Sync
{
    /// Reads the configuration. Problems with it are in the result.
    fn load(&self, options: &Options) -> Result<Setup, Failure>;

    /// Builds a hub out of a configuration; nothing is started yet.
    fn hub(&self, setup: &Setup, options: &Options) -> Result<Hub, Failure>;

    /// Serves all servers to other programs, until it is told to stop or the client is gone.
    fn serve<'a>(
        &'a self,
        setup: &'a Setup,
        options: &'a Options,
        serving: Serving<'a>,
    ) -> BoxFuture<'a, Result<(), Failure>>;

    /// The file that a change to this scope goes to; `None` chooses the scope.
    fn target(&self, scope: Option<Scope>, options: &Options) -> Result<ConfigFile, Failure>;

    /// Changes a file, all at once or not at all.
    fn edit(&self, file: &ConfigFile, change: Change<'_>) -> Result<(), Failure>;

    /// Where configuration is looked for.
    fn files(&self, options: &Options) -> Result<Vec<ConfigFile>, Failure>;

    /// How the user stands to the project's file.
    fn approval(&self, file: &ConfigFile) -> Result<Approval, Failure>;

    /// Approves the project's file with exactly this text, which the user has seen.
    fn approve(&self, file: &ConfigFile, text: &str) -> Result<(), Failure>;

    /// Takes an approval back; whether there was one.
    fn revoke(&self, file: &ConfigFile) -> Result<bool, Failure>;

    /// Entries of the audit log, oldest first.
    fn audit(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, Failure>;

    /// Follows the audit log: what has come since the last call.
    fn audit_since(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, Failure>;

    /// Checks the audit log's chain.
    fn verify_audit(&self, setup: &Setup) -> Result<AuditWhole, Failure>;

    /// Keeps the names of a server's tools, resources or prompts, for completions.
    fn remember(&self, kind: Kind, server: &ServerName, names: Vec<String>);

    /// The names that were kept, by server.
    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)>;

    /// How the user can call us again: `capstan`, or a path.
    fn program(&self) -> String;

    /// Looks at everything around us that can be wrong; also whether a gateway could `listen`.
    fn checks<'a>(&'a self, setup: &'a Setup, listen: SocketAddr) -> BoxFuture<'a, Vec<Check>>;
}

/// A change of a file's text.
pub type Change<'a> = &'a dyn Fn(&str) -> Result<String, EditError>;

/// A configuration and the files it came from.
#[derive(Clone)]
pub struct Setup {
    /// What the files say.
    pub loaded: Arc<Loaded>,
    /// The files, for showing what is wrong in them.
    pub files: Arc<[SourceFile]>,
}

/// How all servers are served.
pub struct Serving<'a> {
    /// Where clients come in.
    pub face: Face,
    /// Waits until it is time to stop; asked once more, until it is time to stop at once.
    pub stop: fn() -> BoxFuture<'static, ()>,
    /// Is called when clients can come in over HTTP; what it does goes on beside the serving.
    pub ready: Box<dyn FnOnce(Ready) -> BoxFuture<'a, ()> + Send + 'a>,
}

/// Where clients come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Face {
    /// One client, over our standard streams.
    Stdio,
    /// Many, over HTTP.
    Http(HttpFace),
}

/// How HTTP is served, beside what the configuration says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpFace {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where the metrics are, when they have an address of their own.
    pub metrics: Option<SocketAddr>,
    /// Whether other machines may reach it.
    pub insecure: bool,
    /// The certificate, for TLS.
    pub tls: Option<TlsFiles>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, as PEM.
    pub cert: PathBuf,
    /// The key, as PEM.
    pub key: PathBuf,
}

/// Clients can come in.
pub struct Ready {
    /// What they reach.
    pub hub: Arc<Hub>,
    /// Where.
    pub url: String,
    /// The address itself, when other machines can reach it.
    pub exposed: Option<String>,
    /// Where the metrics are, when they have an address of their own.
    pub metrics: Option<String>,
}

/// A file of configuration, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Which scope it has.
    pub scope: Scope,
    /// Whether it is there.
    pub exists: bool,
    /// Whose configuration it is, where that is known without looking into it.
    #[serde(skip)]
    pub dialect: Option<Dialect>,
}

/// How the user stands to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// There is no such file, or it needs no approval.
    NotNeeded,
    /// Approved as it is.
    Approved,
    /// Approved once, changed since.
    Changed {
        /// What was approved.
        before: String,
        /// What is there now.
        now: String,
    },
    /// Never approved.
    Unknown {
        /// What is there.
        now: String,
    },
}

/// What is looked for in the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only this server.
    pub server: Option<String>,
    /// Only this item.
    pub item: Option<String>,
    /// Only this caller.
    pub caller: Option<String>,
    /// Only this front.
    pub front: Option<String>,
    /// Only this kind.
    pub kind: Option<&'static str>,
    /// Only what failed.
    pub errors: Errors,
    /// Only from then on.
    pub since: Option<jiff::Timestamp>,
    /// Only before then.
    pub until: Option<jiff::Timestamp>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// What is left of an audit log whose chain is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AuditWhole {
    /// The number of the oldest entry; older ones were dropped when their time was over.
    pub first: u64,
    /// How many entries there are.
    pub entries: u64,
    /// How many of them tell of a crash, of lost entries or of damage.
    pub breaks: u64,
    /// How many processes ended without closing the log, of which no entry tells yet.
    pub unclosed: u64,
}

/// Whether only failures are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errors {
    /// Everything.
    #[default]
    All,
    /// Failures.
    Only,
}

/// One entry, field by field as the log has it.
pub type AuditRow = Map<String, Value>;

/// How far the audit log was followed; `None` starts at its end.
#[derive(Default)]
pub struct AuditMark(pub Option<Box<dyn std::any::Any + Send>>);

/// One finding of `doctor`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub check: String,
    /// How it is.
    pub status: CheckStatus,
    /// What was seen.
    pub detail: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// How a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Fine.
    Ok,
    /// Works, but worth a look.
    Warning,
    /// Does not work.
    Error,
}

// === impl Check ===

impl Check {
    /// Something that is fine.
    pub fn ok(check: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { check: check.into(), status: CheckStatus::Ok, detail: detail.into(), fix: None }
    }

    /// Something worth a look.
    pub fn warning(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Warning, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }

    /// Something that does not work.
    pub fn error(
        check: impl Into<String>,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { status: CheckStatus::Error, fix: Some(fix.into()), ..Self::ok(check, detail) }
    }
}

impl CheckStatus {
    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
