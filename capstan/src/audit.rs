//! The audit log of a configuration: writes, reads and verifies it.

use std::path::{Path, PathBuf};

use capstan_app::{AppError, AuditMark, AuditQuery, AuditRow, AuditWhole, ErrorKind, Errors};
use capstan_audit::reader::Position;
use capstan_audit::{
    AuditError, Durability, JsonLines, Limits, OnFull, Query, Reader, Row, VerifyError,
};
use capstan_config::{AuditOnFull, Config};
use serde_json::Value;
use tracing::warn;

use crate::world::World;

/// The path of the log.
pub(crate) fn path(world: &World, config: &Config) -> PathBuf {
    match &config.audit.path {
        Some(path) => world.here().join(path),
        None => world.state().join("audit.jsonl"),
    }
}

/// Opens the log for writing.
pub(crate) fn open(world: &World, config: &Config) -> Result<JsonLines, AuditError> {
    let audit = &config.audit;
    let limits = Limits {
        max_size: audit.max_size,
        // The two keys may come from different files and contradict each other.
        max_total: audit.max_total.max(audit.max_size),
        retention: audit.retention,
    };
    let durability = if audit.durable { Durability::Sync } else { Durability::Fast };
    let on_full = match audit.on_full {
        AuditOnFull::Degrade => OnFull::Degrade,
        AuditOnFull::Refuse => OnFull::Refuse,
    };
    let log = JsonLines::open(&path(world, config), limits)?;
    Ok(log.with_durability(durability).with_on_full(on_full))
}

pub(crate) fn query(path: &Path, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError> {
    let query = Query {
        server: query.server.clone(),
        item: query.item.clone(),
        caller: query.caller.clone(),
        front: query.front.clone(),
        kind: query.kind.map(str::to_owned),
        errors_only: query.errors == Errors::Only,
        since: query.since,
        until: query.until,
        limit: query.limit,
    };
    let reader = Reader::open(path).map_err(|error| failure(&error))?;
    let rows = reader.query(&query).map_err(|error| failure(&error))?;
    if rows.is_empty()
        && let Ok(Some(last)) = reader.gone()
    {
        warn!("entries up to {last} were written to `{}`, but the file has none", path.display());
    }
    Ok(rows.iter().map(row).collect())
}

/// Returns the entries since the mark, and advances the mark.
pub(crate) fn since(path: &Path, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError> {
    let reader = Reader::open(path).map_err(|error| failure(&error))?;
    let last = mark.0.take().and_then(|mark| mark.downcast::<Position>().ok());
    let position = match last {
        Some(position) => *position,
        None => reader.end().map_err(|error| failure(&error))?,
    };
    let (rows, next) = reader.rows_since(position).map_err(|error| failure(&error))?;
    mark.0 = Some(Box::new(next));
    Ok(rows.iter().map(row).collect())
}

pub(crate) fn verify(path: &Path) -> Result<AuditWhole, AppError> {
    let reader = Reader::open(path).map_err(|error| failure(&error))?;
    match reader.verify() {
        Ok(verified) => Ok(AuditWhole {
            first: verified.first,
            entries: verified.entries,
            breaks: verified.breaks,
            unclosed: verified.unclosed,
        }),
        Err(VerifyError::Audit(error)) => Err(failure(&error)),
        Err(VerifyError::Broken(broken)) => {
            let message = format!("the audit log is damaged: {broken}");
            Err(AppError::new(ErrorKind::Failed, message))
        }
    }
}

fn row(row: &Row) -> AuditRow {
    match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => AuditRow::new(),
    }
}

fn failure(error: &AuditError) -> AppError {
    AppError { hint: error.hint(), ..AppError::caused(ErrorKind::Internal, error) }
}
