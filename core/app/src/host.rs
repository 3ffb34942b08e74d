//! Ports that are not yet behind a service.

use core::net::SocketAddr;

use capstan_config::Scope;
use capstan_hub::Hub;
use capstan_hub::ports::BoxFuture;

use crate::{
    Addresses, AppError, Approval, AuditMark, AuditQuery, AuditRow, AuditWhole, Change, Check,
    Clients, ConfigFile, NameCache, PendingApprovals, Registries, Rules, Selection, Setup, Usage,
};

/// Access to configuration files, approvals and the audit log on this machine.
pub trait Host:
    Addresses + Clients + NameCache + PendingApprovals + Registries + Rules + Usage + Send + Sync
{
    /// Loads the configuration. Problems in it are part of the result.
    fn load(&self, selection: &Selection) -> Result<Setup, AppError>;

    /// Builds a hub from a configuration without starting a server.
    fn hub(&self, setup: &Setup, selection: &Selection) -> Result<Hub, AppError>;

    /// The file that a change to this scope is written to; `None` uses the default scope.
    fn target(&self, scope: Option<Scope>, selection: &Selection) -> Result<ConfigFile, AppError>;

    /// Changes a file atomically.
    fn edit(&self, file: &ConfigFile, change: Change<'_>) -> Result<(), AppError>;

    /// The files in which configuration is looked for.
    fn files(&self, selection: &Selection) -> Result<Vec<ConfigFile>, AppError>;

    /// The user's approval of the project's file.
    fn approval(&self, file: &ConfigFile) -> Result<Approval, AppError>;

    /// Approves the project's file with exactly this text, which the user has seen.
    fn approve(&self, file: &ConfigFile, text: &str) -> Result<(), AppError>;

    /// Revokes an approval; true if there was one.
    fn revoke(&self, file: &ConfigFile) -> Result<bool, AppError>;

    /// Entries of the audit log, oldest first.
    fn audit(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError>;

    /// Follows the audit log: returns the entries since the last call.
    fn audit_since(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError>;

    /// Verifies the audit log's hash chain.
    fn verify_audit(&self, setup: &Setup) -> Result<AuditWhole, AppError>;

    /// The command that starts this program again: `capstan`, or a path.
    fn program(&self) -> String;

    /// Checks the environment for problems, including whether a gateway could listen on `listen`.
    fn checks<'a>(&'a self, setup: &'a Setup, listen: SocketAddr) -> BoxFuture<'a, Vec<Check>>;
}
