//! The audit log of a configuration: writes, reads and verifies it.

use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::{
    AppError, AuditMark, AuditQuery, AuditReader, AuditRow, AuditWhole, Environment, ErrorKind,
    Errors, Setup,
};
use capstan_audit::{
    AuditError, Durability, JsonLines, Limits, OnFull, Position, Query, Reader, Row, VerifyError,
};
use capstan_config::{AuditOnFull, Config};
use serde_json::Value;
use tracing::warn;

/// Reads the audit logs of this machine.
pub(crate) struct AuditFiles(pub(crate) Arc<Environment>);

/// The path of the log.
fn path(environment: &Environment, config: &Config) -> PathBuf {
    match &config.audit.path {
        Some(path) => environment.current_folder.join(path),
        None => environment.state.join("audit.jsonl"),
    }
}

/// Opens the log for writing.
pub(crate) fn open(environment: &Environment, config: &Config) -> Result<JsonLines, AuditError> {
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
    let log = JsonLines::open(&path(environment, config), limits)?;
    Ok(log.with_durability(durability).with_on_full(on_full))
}

// === impl AuditFiles ===

impl AuditFiles {
    fn open(&self, setup: &Setup) -> Result<(PathBuf, Reader), AppError> {
        let path = path(&self.0, &setup.loaded.config);
        let reader = Reader::open(&path).map_err(|error| failure(&error))?;
        Ok((path, reader))
    }
}

impl AuditReader for AuditFiles {
    fn query(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError> {
        let (path, reader) = self.open(setup)?;
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
        let rows = reader.query(&query).map_err(|error| failure(&error))?;
        if rows.is_empty()
            && let Ok(Some(last)) = reader.gone()
        {
            warn!(
                "entries up to {last} were written to `{}`, but the file has none",
                path.display()
            );
        }
        Ok(rows.iter().map(row).collect())
    }

    fn follow(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError> {
        let (_, reader) = self.open(setup)?;
        let last = mark.0.take().and_then(|mark| mark.downcast::<Position>().ok());
        let position = match last {
            Some(position) => *position,
            None => reader.end().map_err(|error| failure(&error))?,
        };
        let (rows, next) = reader.rows_since(position).map_err(|error| failure(&error))?;
        mark.0 = Some(Box::new(next));
        Ok(rows.iter().map(row).collect())
    }

    fn verify(&self, setup: &Setup) -> Result<AuditWhole, AppError> {
        match self.open(setup)?.1.verify() {
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
