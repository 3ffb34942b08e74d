//! Queries of the audit log.

use serde::Serialize;
use serde_json::{Map, Value};

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
