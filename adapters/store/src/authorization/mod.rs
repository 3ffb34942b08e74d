//! The state of the authorization server: clients, grants, users and keys.

mod clients;
mod grants;
mod keys;
mod users;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

/// A list of texts, as it is stored.
fn to_text(list: &[String]) -> String {
    serde_json::Value::from(list).to_string()
}

/// Reads a list of texts from a column.
fn list(row: &SqliteRow, column: &str) -> Result<Vec<String>, sqlx::Error> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|cause| sqlx::Error::Decode(cause.into()))
}

/// Reads a time from a column.
fn time(row: &SqliteRow, column: &str) -> Result<Timestamp, sqlx::Error> {
    Timestamp::from_millisecond(row.try_get(column)?)
        .map_err(|cause| sqlx::Error::Decode(cause.into()))
}
