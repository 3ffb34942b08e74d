//! The ports that are not yet behind a service.

use core::net::SocketAddr;

use capstan_config::Scope;
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;

use crate::{
    Addresses, AppError, Approval, AuditMark, AuditQuery, AuditRow, AuditWhole, Change, Check,
    Clients, ConfigFile, NameCache, PendingApprovals, Registries, Rules, Selection, Setup, Usage,
};

/// The program around the command line.
pub trait Host:
    Addresses + Clients + NameCache + PendingApprovals + Registries + Rules + Usage + Send + Sync
{
    /// Reads the configuration. Problems with it are in the result.
    fn load(&self, selection: &Selection) -> Result<Setup, AppError>;

    /// Builds a hub out of a configuration; nothing is started yet.
    fn hub(&self, setup: &Setup, selection: &Selection) -> Result<Hub, AppError>;

    /// The file that a change to this scope goes to; `None` chooses the scope.
    fn target(&self, scope: Option<Scope>, selection: &Selection) -> Result<ConfigFile, AppError>;

    /// Changes a file, all at once or not at all.
    fn edit(&self, file: &ConfigFile, change: Change<'_>) -> Result<(), AppError>;

    /// Where configuration is looked for.
    fn files(&self, selection: &Selection) -> Result<Vec<ConfigFile>, AppError>;

    /// How the user stands to the project's file.
    fn approval(&self, file: &ConfigFile) -> Result<Approval, AppError>;

    /// Approves the project's file with exactly this text, which the user has seen.
    fn approve(&self, file: &ConfigFile, text: &str) -> Result<(), AppError>;

    /// Takes an approval back; whether there was one.
    fn revoke(&self, file: &ConfigFile) -> Result<bool, AppError>;

    /// Entries of the audit log, oldest first.
    fn audit(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError>;

    /// Follows the audit log: what has come since the last call.
    fn audit_since(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError>;

    /// Checks the audit log's chain.
    fn verify_audit(&self, setup: &Setup) -> Result<AuditWhole, AppError>;

    /// How the user can call us again: `capstan`, or a path.
    fn program(&self) -> String;

    /// Looks at everything around us that can be wrong; also whether a gateway could `listen`.
    fn checks<'a>(&'a self, setup: &'a Setup, listen: SocketAddr) -> BoxFuture<'a, Vec<Check>>;
}
