//! Classifies database errors: a damaged file, or a file in use.

use sqlx::error::DatabaseError;

/// `SQLITE_ERROR`: the statement does not match the tables, for example because a table is missing.
const ERROR: u32 = 1;

/// `SQLITE_BUSY`: another process has an exclusive lock.
const BUSY: u32 = 5;

/// `SQLITE_CORRUPT`: the content of the file is inconsistent.
const CORRUPT: u32 = 11;

/// `SQLITE_NOTADB`: the file is not a database.
const NOT_A_DATABASE: u32 = 26;

/// True if another process or task has an exclusive lock at the moment.
pub(crate) fn is_busy(cause: &sqlx::Error) -> bool {
    code(cause) == Some(BUSY)
}

/// True if the file is damaged.
pub(crate) fn is_damage(cause: &sqlx::Error) -> bool {
    match code(cause) {
        Some(CORRUPT | NOT_A_DATABASE) => true,
        // Our tables and columns cannot be missing: they existed when the file was opened.
        Some(ERROR) => cause.as_database_error().is_some_and(|error| {
            let is_missing = |what: &&str| error.message().starts_with(what);
            ["no such table", "no such column"].iter().any(is_missing)
        }),
        Some(_) | None => false,
    }
}

/// True if a statement does not match the tables of the file.
pub(crate) fn is_refused_statement(cause: &sqlx::Error) -> bool {
    code(cause) == Some(ERROR)
}

/// The primary error code: the lower byte. The other bytes refine it.
fn code(cause: &sqlx::Error) -> Option<u32> {
    let code = cause.as_database_error().and_then(DatabaseError::code)?;
    Some(code.parse::<u32>().ok()? & 0xff)
}
