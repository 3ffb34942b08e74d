//! Port that reads the audit log.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{AppError, Setup};

/// Reads the audit log of a configuration.
pub trait AuditReader: Send + Sync {
    /// The entries that match a query, oldest first.
    fn query(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError>;

    /// Follows the log: returns the entries since the last call.
    fn follow(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError>;

    /// Verifies the log's hash chain.
    fn verify(&self, setup: &Setup) -> Result<AuditWhole, AppError>;
}

/// A filter for entries of the audit log.
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
    /// All entries or only failures.
    pub errors: Errors,
    /// Only entries from this time on.
    pub since: Option<jiff::Timestamp>,
    /// Only entries before this time.
    pub until: Option<jiff::Timestamp>,
    /// Maximum number of entries; the newest are returned.
    pub limit: usize,
}

/// Summary of an audit log whose hash chain is intact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AuditWhole {
    /// The number of the oldest entry; older ones were dropped when their retention ended.
    pub first: u64,
    /// Number of entries.
    pub entries: u64,
    /// Number of entries that report a crash, lost entries or damage.
    pub breaks: u64,
    /// Number of processes that ended without closing the log and that no entry reports yet.
    pub unclosed: u64,
}

/// Selects all entries or only failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Errors {
    /// All entries.
    #[default]
    All,
    /// Only failures.
    Only,
}

/// One entry, with the fields of the log.
pub type AuditRow = Map<String, Value>;

/// The position up to which the audit log was followed; `None` starts at its end.
#[derive(Default)]
pub struct AuditMark(pub Option<Box<dyn std::any::Any + Send>>);
