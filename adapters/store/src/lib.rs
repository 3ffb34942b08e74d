//! What must outlive a process, in a database.
//!
//! [`Database`] is the store of one operator: one file, opened when something is first asked of it,
//! and shared by all processes that run for the operator. `pins` keeps approved definitions, `usage` how
//! often servers are called; `schema` brings an older file up to date.
//!
//! The statements keep to what `SQLite` and `PostgreSQL` both understand, so that a server can take the
//! file's place.

mod pins;
mod schema;
mod usage;

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use capstan_hub::ports::{Binding, BoxFuture, Grant, Store, StoreError};
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Row, SqlitePool};
use tokio::sync::OnceCell;

/// How long another process that writes is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How soon a file is tried again that others are opening too.
const AGAIN: Duration = Duration::from_millis(10);

/// `SQLITE_BUSY`: somebody else has the file to themselves.
const BUSY: u32 = 5;

/// How much of the file is kept in memory, in KiB. Little is looked up twice, and whatever a large
/// list leaves here stays for as long as the process.
const CACHE: u32 = 256;

/// The store of one operator.
pub struct Database {
    path: PathBuf,
    pool: OnceCell<SqlitePool>,
}

// === impl Database ===

impl Database {
    /// The store in a file, which is not opened before something is asked of it.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), pool: OnceCell::new() }
    }

    /// The open file. One that could not be opened is tried again the next time.
    async fn pool(&self) -> Result<&SqlitePool, StoreError> {
        self.pool.get_or_try_init(|| self.open()).await
    }

    async fn open(&self) -> Result<SqlitePool, StoreError> {
        make_private(&self.path).map_err(|cause| self.failed("cannot be made", cause))?;
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .journal_mode(SqliteJournalMode::Wal)
            // What was acknowledged outlives a power cut too.
            .synchronous(SqliteSynchronous::Full)
            // What is below zero is a size, and not a number of pages.
            .pragma("cache_size", format!("-{CACHE}"))
            .busy_timeout(PATIENCE);
        let pool = connect(options).await;
        let pool = pool.map_err(|cause| self.failed("cannot be opened", cause))?;
        schema::bring_up_to_date(&pool)
            .await
            .map_err(|cause| self.failed("cannot be used", cause))?;
        Ok(pool)
    }

    fn failed(
        &self,
        what: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        let what = format!("the database {} {what}", self.path.display());
        StoreError { what, cause: Some(cause.into()) }
    }

    async fn insert(&self, grant: &Grant) -> Result<(), StoreError> {
        let Binding { subject, kind, item, arguments, policy } = &grant.binding;
        sqlx::query(
            "INSERT INTO approvals (question, subject, kind, item, arguments, policy, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(&grant.id)
        .bind(subject)
        .bind(kind.as_str())
        .bind(item)
        .bind(arguments)
        .bind(policy)
        .bind(grant.expires_at.as_millisecond())
        .execute(self.pool().await?)
        .await
        .map(drop)
        .map_err(|cause| self.failed("took no approval", cause))
    }

    async fn delete_one(&self, binding: &Binding, now: Timestamp) -> Result<bool, StoreError> {
        let Binding { subject, kind, item, arguments, policy } = binding;
        // One statement: whoever deletes the row has the approval, and nobody else does.
        sqlx::query(
            "DELETE FROM approvals WHERE number = (\
                 SELECT number FROM approvals WHERE subject = $1 AND kind = $2 AND item = $3 \
                 AND arguments = $4 AND policy = $5 AND expires_at > $6 \
                 ORDER BY expires_at, number LIMIT 1)",
        )
        .bind(subject)
        .bind(kind.as_str())
        .bind(item)
        .bind(arguments)
        .bind(policy)
        .bind(now.as_millisecond())
        .execute(self.pool().await?)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|cause| self.failed("gave no approval", cause))
    }

    async fn select(&self, now: Timestamp, most: u32) -> Result<Vec<Grant>, StoreError> {
        let rows = sqlx::query(
            "SELECT question, subject, kind, item, arguments, policy, expires_at FROM approvals \
             WHERE expires_at > $1 ORDER BY number LIMIT $2",
        )
        .bind(now.as_millisecond())
        .bind(i64::from(most))
        .fetch_all(self.pool().await?)
        .await
        .map_err(|cause| self.failed("listed no approvals", cause))?;
        let grants = rows.iter().map(grant).collect::<Result<Vec<_>, _>>();
        let grants = grants.map_err(|cause| self.failed("has a row that is none", cause))?;
        Ok(grants.into_iter().flatten().collect())
    }

    async fn delete_late(&self, now: Timestamp) -> Result<u64, StoreError> {
        sqlx::query("DELETE FROM approvals WHERE expires_at <= $1")
            .bind(now.as_millisecond())
            .execute(self.pool().await?)
            .await
            .map(|done| done.rows_affected())
            .map_err(|cause| self.failed("forgot nothing", cause))
    }
}

impl Store for Database {
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.insert(grant))
    }

    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.delete_one(binding, now))
    }

    fn list(&self, now: Timestamp, most: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        Box::pin(self.select(now, most))
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.delete_late(now))
    }
}

/// Connects, and waits for others that open the same new file. The busy timeout does not: of two that
/// read a file and then turn it to its journal, `SQLite` refuses one right away, lest both wait for ever.
async fn connect(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    let began = Instant::now();
    loop {
        // One connection: writers would only wait for each other.
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            // A file does not go away between two questions.
            .test_before_acquire(false)
            .acquire_timeout(PATIENCE * 2)
            .connect_with(options.clone())
            .await;
        match pool {
            Err(cause) if is_busy(&cause) && began.elapsed() < PATIENCE => {
                tokio::time::sleep(AGAIN).await;
            }
            done => return done,
        }
    }
}

/// Whether another process or task has the file to itself just now.
fn is_busy(cause: &sqlx::Error) -> bool {
    let code = cause.as_database_error().and_then(sqlx::error::DatabaseError::code);
    // The lower byte says what it is, the others say more about it.
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| code & 0xff == BUSY)
}

/// A row as an approval; `None` for one of a kind that a newer version may have.
fn grant(row: &sqlx::sqlite::SqliteRow) -> Result<Option<Grant>, sqlx::Error> {
    let kind = match row.try_get::<String, _>("kind")?.as_str() {
        "tool" => capstan_model::Kind::Tool,
        "resource" => capstan_model::Kind::Resource,
        "prompt" => capstan_model::Kind::Prompt,
        _ => return Ok(None),
    };
    let binding = Binding {
        subject: row.try_get("subject")?,
        kind,
        item: row.try_get("item")?,
        arguments: row.try_get("arguments")?,
        policy: row.try_get("policy")?,
    };
    let Ok(expires_at) = Timestamp::from_millisecond(row.try_get("expires_at")?) else {
        return Ok(None);
    };
    Ok(Some(Grant { id: row.try_get("question")?, binding, expires_at }))
}

/// Makes the file if it is not there, for nobody but us; what `SQLite` puts beside it gets the same
/// permissions. One that others can read is closed to them.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let permissions = file.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(())
}
