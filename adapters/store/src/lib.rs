//! Persistent state, in a database.
//!
//! [`Database`] is the store of one operator: one file, opened at the first query, and shared by
//! all processes of the operator. `pins` stores the pinned definitions, `questions` the open
//! questions, `access_tokens` the tokens of callers, `authorization` the state of the authorization
//! server, `usage` the number of calls per server; `schema` migrates an older file. `open`
//! checks that the file is intact, with the help of `pinned_servers`; `backup` keeps a damaged one.
//! `snapshot` spares lists the database.
//!
//! The statements use only what `SQLite` and `PostgreSQL` have in common, so that a server can
//! replace the file.

mod access_tokens;
mod authorization;
mod backup;
mod damage;
mod lock;
mod open;
mod pins;
mod questions;
mod schema;
mod snapshot;
mod usage;
mod pinned_servers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use capstan_hub::approvals::GOOD_FOR;
use capstan_hub::ports::{Binding, BoxFuture, Grant, KeptQuestion, Store, StoreError};
use jiff::Timestamp;
use sqlx::Row;
use tokio::sync::OnceCell;

use damage::is_damage;
use open::{FileId, Opened, Opening};
pub use snapshot::ListStore;

/// Number of attempts to open a file that is replaced repeatedly.
const TRIES: u32 = 3;

/// The store of one operator.
pub struct Database {
    path: PathBuf,
    opened: RwLock<Arc<OnceCell<Opened>>>,
    /// The file that turned out to be damaged during use.
    damaged: Mutex<Option<FileId>>,
}

// === impl Database ===

impl Database {
    /// Creates a store for a file, which is opened at the first query.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), opened: RwLock::default(), damaged: Mutex::default() }
    }

    /// Opens the file and writes to it, and returns the damaged ones that were kept, oldest first.
    ///
    /// # Errors
    /// If it cannot be opened or written.
    pub async fn check(&self) -> Result<Vec<PathBuf>, StoreError> {
        let opened = self.pool().await?;
        // Changes nothing, but needs space on the disk.
        let written = sqlx::query("PRAGMA user_version = 0").execute(&opened.pool).await;
        written.map_err(|cause| self.failed(opened.file, "cannot be written", cause))?;
        Ok(backup::all(&self.path))
    }

    /// The open file.
    ///
    /// A failed open is retried the next time; a file that is gone, replaced or damaged is opened
    /// anew.
    async fn pool(&self) -> Result<Opened, StoreError> {
        for _ in 0..TRIES {
            let cell = self.cell();
            let opened = cell.get_or_try_init(|| self.open()).await?;
            let is_there = FileId::of(&self.path).is_ok_and(|file| file == opened.file);
            if is_there && self.damaged() != Some(opened.file) {
                return Ok(opened.clone());
            }
            self.open_anew(&cell);
        }
        let what = format!("the database {} is replaced repeatedly", self.path.display());
        Err(StoreError { what, cause: None })
    }

    /// Opens the file in a task of its own, so that a dropped query leaves no half-done repair.
    async fn open(&self) -> Result<Opened, StoreError> {
        let (path, damaged) = (self.path.clone(), self.damaged());
        let opening = tokio::spawn(async move { Opening::new(&path, damaged).open().await });
        match opening.await {
            Ok(opened) => opened.map_err(|cause| self.error("cannot be opened", cause)),
            Err(cause) => Err(self.error("cannot be opened", cause)),
        }
    }

    /// Runs `act`, and once more with a new file if the current one turns out to be damaged.
    async fn again<T, F>(&self, act: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        match act().await {
            Err(error) if error.cause.as_deref().is_some_and(is_from_damage) => act().await,
            done => done,
        }
    }

    /// Converts an error of a statement in this file, and records damage.
    ///
    /// If another file is open by now, the error says nothing about that one.
    fn failed(&self, file: FileId, what: &str, cause: sqlx::Error) -> StoreError {
        let is_open = || self.cell().get().is_some_and(|opened| opened.file == file);
        if is_damage(&cause) && is_open() {
            *self.damaged.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        }
        self.error(what, cause)
    }

    fn error(
        &self,
        what: &str,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        let what = format!("the database {} {what}", self.path.display());
        StoreError { what, cause: Some(cause.into()) }
    }

    fn damaged(&self) -> Option<FileId> {
        *self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cell(&self) -> Arc<OnceCell<Opened>> {
        Arc::clone(&self.opened.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes the next query open the file anew, unless that has happened already.
    fn open_anew(&self, cell: &Arc<OnceCell<Opened>>) {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&opened, cell) {
            *opened = Arc::default();
        }
    }

    async fn insert(&self, grant: &Grant) -> Result<(), StoreError> {
        let Binding { subject, kind, item, arguments, policy } = &grant.binding;
        let Opened { pool, file } = self.pool().await?;
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
        .execute(&pool)
        .await
        .map(drop)
        .map_err(|cause| self.failed(file, "did not accept an approval", cause))
    }

    async fn delete_one(&self, binding: &Binding, now: Timestamp) -> Result<bool, StoreError> {
        let Binding { subject, kind, item, arguments, policy } = binding;
        let Opened { pool, file } = self.pool().await?;
        // One statement: only the process that deletes the row has the approval.
        sqlx::query(
            "DELETE FROM approvals WHERE number = (\
                 SELECT number FROM approvals WHERE subject = $1 AND kind = $2 AND item = $3 \
                 AND arguments = $4 AND policy = $5 AND expires_at > $6 AND expires_at <= $7 \
                 ORDER BY expires_at, number LIMIT 1)",
        )
        .bind(subject)
        .bind(kind.as_str())
        .bind(item)
        .bind(arguments)
        .bind(policy)
        .bind(now.as_millisecond())
        .bind(latest(now))
        .execute(&pool)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|cause| self.failed(file, "did not return an approval", cause))
    }

    async fn select(&self, now: Timestamp, most: u32) -> Result<Vec<Grant>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let rows = sqlx::query(
            "SELECT question, subject, kind, item, arguments, policy, expires_at FROM approvals \
             WHERE expires_at > $1 AND expires_at <= $2 ORDER BY number LIMIT $3",
        )
        .bind(now.as_millisecond())
        .bind(latest(now))
        .bind(i64::from(most))
        .fetch_all(&pool)
        .await
        .map_err(|cause| self.failed(file, "did not list the approvals", cause))?;
        let grants = rows.iter().map(grant).collect::<Result<Vec<_>, _>>();
        let grants = grants.map_err(|cause| self.failed(file, "has an invalid row", cause))?;
        Ok(grants.into_iter().flatten().collect())
    }

    async fn delete_late(&self, now: Timestamp) -> Result<u64, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let delete = async |statement: &'static str| {
            let query = sqlx::query(statement).bind(now.as_millisecond()).bind(latest(now));
            let done = query.execute(&pool).await.map(|done| done.rows_affected());
            done.map_err(|cause| self.failed(file, "forgot nothing", cause))
        };
        delete("DELETE FROM questions WHERE expires_at <= $1 OR expires_at > $2").await?;
        delete("DELETE FROM approvals WHERE expires_at <= $1 OR expires_at > $2").await
    }
}

impl Store for Database {
    fn grant<'a>(&'a self, grant: &'a Grant) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.insert(grant)))
    }

    fn take<'a>(
        &'a self,
        binding: &'a Binding,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.delete_one(binding, now)))
    }

    fn list(&self, now: Timestamp, most: u32) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        Box::pin(self.again(move || self.select(now, most)))
    }

    fn expire(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.again(move || self.delete_late(now)))
    }

    fn keep<'a>(&'a self, question: &'a KeptQuestion) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.insert_question(question)))
    }

    fn kept(
        &self,
        now: Timestamp,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<KeptQuestion>, StoreError>> {
        Box::pin(self.again(move || self.select_questions(now, most)))
    }

    fn forget<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.delete_question(id)))
    }
}

/// True if the error comes from a damaged file.
fn is_from_damage(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    cause.downcast_ref::<sqlx::Error>().is_some_and(is_damage)
}

/// The latest expiry of an approval given now.
///
/// A later one was given before the clock was set back, and must not last longer because of that.
fn latest(now: Timestamp) -> i64 {
    now.checked_add(GOOD_FOR).unwrap_or(now).as_millisecond()
}

/// Converts a row to an approval; `None` for kinds of a newer version.
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
