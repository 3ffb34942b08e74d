//! Which errors of the database say that its file is damaged, and which that others use it.

use sqlx::error::DatabaseError;

/// `SQLITE_ERROR`: the statement does not fit the tables, for one because a table is missing.
const ERROR: u32 = 1;

/// `SQLITE_BUSY`: somebody else has the file to themselves.
const BUSY: u32 = 5;

/// `SQLITE_CORRUPT`: what is in the file does not fit together.
const CORRUPT: u32 = 11;

/// `SQLITE_NOTADB`: the file is something else.
const NOT_A_DATABASE: u32 = 26;

/// Whether another process or task has the file to itself just now.
pub(crate) fn is_busy(cause: &sqlx::Error) -> bool {
    code(cause) == Some(BUSY)
}

/// Whether the file is not what was written.
pub(crate) fn is_damage(cause: &sqlx::Error) -> bool {
    match code(cause) {
        Some(CORRUPT | NOT_A_DATABASE) => true,
        // A table or column of ours cannot be missing: it was there when the file was opened.
        Some(ERROR) => cause.as_database_error().is_some_and(|error| {
            let is_missing = |what: &&str| error.message().starts_with(what);
            ["no such table", "no such column"].iter().any(is_missing)
        }),
        Some(_) | None => false,
    }
}

/// Whether a statement does not fit the tables of the file.
pub(crate) fn is_refused_statement(cause: &sqlx::Error) -> bool {
    code(cause) == Some(ERROR)
}

/// The lower byte of the code says what it is, the others say more about it.
fn code(cause: &sqlx::Error) -> Option<u32> {
    let code = cause.as_database_error().and_then(DatabaseError::code)?;
    Some(code.parse::<u32>().ok()? & 0xff)
}
