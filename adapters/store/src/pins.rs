//! Pinned definitions of tools.

use std::collections::HashMap;

use capstan_hub::ports::{Approved, BoxFuture, Newcomer, Pin, PinOwner, PinStore, StoreError};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, Transaction};

use crate::Database;
use crate::open::{EVERY, FileId, OpenError, Opened, Opening};

/// Maximum number of digests that are read; those of the servers seen last.
const MAX_SUMS: i64 = 10_000;

/// Number of definitions per statement, as a round trip costs more than the insertion.
///
/// Only this many are in memory at once, of a list that may be much larger.
const ROWS: usize = 32;

// === impl Database ===

impl Database {
    async fn select_sums(&self) -> Result<HashMap<PinOwner, Option<String>>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not list the definitions", cause);
        let rows: Vec<(String, String, Option<String>)> = sqlx::query_as(
            "SELECT server, identity, sum FROM pinned_servers ORDER BY number DESC LIMIT $1",
        )
        .bind(MAX_SUMS)
        .fetch_all(&pool)
        .await
        .map_err(failed)?;
        let row = |(server, identity, sum): (String, String, Option<String>)| {
            Some((PinOwner { server: server.parse().ok()?, identity }, sum))
        };
        Ok(rows.into_iter().filter_map(row).collect())
    }

    async fn keep_sum(&self, whose: &PinOwner, sum: &str, changes: i64) -> Result<(), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        // One statement: a concurrent approval changes the number.
        sqlx::query(
            "UPDATE pinned_servers SET sum = $1, lost = 0 \
             WHERE server = $2 AND identity = $3 AND changes = $4",
        )
        .bind(sum)
        .bind(whose.server.as_str())
        .bind(&whose.identity)
        .bind(changes)
        .execute(&pool)
        .await
        .map(drop)
        .map_err(|cause| self.failed(file, "did not accept the definitions", cause))
    }

    async fn select_pins(&self, whose: &PinOwner) -> Result<Option<Approved>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not list the definitions", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        let Some((owner, changes, lost)) = owner(&mut transaction, whose).await.map_err(failed)?
        else {
            return Ok(None);
        };
        let rows = sqlx::query(
            "SELECT tool, fingerprint, definition FROM pins WHERE owner = $1 ORDER BY tool",
        )
        .bind(owner)
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
        let pins = rows.iter().map(pin).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        Ok(Some(Approved { pins, changes, is_lost: lost != 0 }))
    }

    /// Stores the lists of new servers.
    async fn keep_first(&self, new: &[Newcomer]) -> Result<(), StoreError> {
        let (mut transaction, file) = self.write().await?;
        let failed = |cause| self.failed(file, "did not accept the definitions", cause);
        let is_unsure = is_unsure(&mut transaction).await.map_err(failed)?;
        for newcomer in new {
            let whose = &newcomer.owner;
            if owner(&mut transaction, whose).await.map_err(failed)?.is_some() {
                continue;
            }
            if is_unsure {
                // The server may have been seen before.
                let owner = insert_owner(&mut transaction, whose, None).await.map_err(failed)?;
                lose(&mut transaction, owner).await.map_err(failed)?;
            } else {
                let sum = Some(newcomer.sum.as_str());
                let owner = insert_owner(&mut transaction, whose, sum).await.map_err(failed)?;
                insert_pins(&mut transaction, owner, newcomer.pins()).await.map_err(failed)?;
            }
        }
        transaction.commit().await.map_err(failed)?;
        self.testify().await;
        Ok(())
    }

    /// Records in the witness which servers have approved definitions.
    ///
    /// If that fails, it is repeated when the file is opened the next time.
    async fn testify(&self) {
        let Ok(Opened { pool, .. }) = self.pool().await else { return };
        if let Err(error) = Opening::new(&self.path, None).testify(&pool).await {
            tracing::warn!(%error, "the list of pinned servers cannot be saved");
        }
    }

    /// Ends the state in which every server counts as lost.
    async fn lose_only(&self, lost: &[PinOwner]) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let owner = |whose: &PinOwner| (whose.server.to_string(), whose.identity.clone());
        let lost = lost.iter().map(owner).collect();
        let ended = Opening::new(&self.path, None).lose_only(&pool, &lost).await;
        let what = "cannot clear the mark that all pins are lost";
        ended.map_err(|error| match error {
            OpenError::Database(cause) => self.failed(file, what, cause),
            OpenError::File(_) | OpenError::Schema(_) | OpenError::Locked { .. } => {
                self.error(what, error)
            }
        })
    }

    /// Replaces approved definitions.
    async fn keep_pins(&self, whose: &PinOwner, pins: &[Pin]) -> Result<(), StoreError> {
        let (mut transaction, file) = self.write().await?;
        let failed = |cause| self.failed(file, "did not accept the definitions", cause);
        let known = owner(&mut transaction, whose).await.map_err(failed)?;
        let owner = match known {
            Some((owner, ..)) => {
                change(&mut transaction, owner).await.map_err(failed)?;
                owner
            }
            None => insert_owner(&mut transaction, whose, None).await.map_err(failed)?,
        };
        let pins = pins.iter().cloned();
        insert_pins(&mut transaction, owner, pins).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        if known.is_none() {
            self.testify().await;
        }
        Ok(())
    }

    /// Begins a write transaction, which excludes other writers from its first read on.
    async fn write(&self) -> Result<(Transaction<'static, Sqlite>, FileId), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let begun = pool.begin_with("BEGIN IMMEDIATE").await;
        let begun =
            begun.map_err(|cause| self.failed(file, "did not accept the definitions", cause))?;
        Ok((begun, file))
    }
}

impl PinStore for Database {
    fn get_ready(&self) -> BoxFuture<'_, ()> {
        // The next query reports the error.
        Box::pin(async { drop(self.pool().await) })
    }

    fn approved_digests(
        &self,
    ) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>> {
        Box::pin(self.again(move || self.select_sums()))
    }

    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>> {
        Box::pin(self.again(move || self.select_pins(whose)))
    }

    fn begin<'a>(&'a self, new: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.keep_first(new)))
    }

    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.keep_sum(whose, sum, changes)))
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.keep_pins(whose, pins)))
    }

    fn end_loss<'a>(&'a self, lost: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.lose_only(lost)))
    }
}

/// The number of a known server, the number of approvals since, and a flag for lost approvals.
async fn owner(
    transaction: &mut Transaction<'_, Sqlite>,
    whose: &PinOwner,
) -> Result<Option<(i64, i64, i64)>, sqlx::Error> {
    sqlx::query_as(
        "SELECT number, changes, lost FROM pinned_servers WHERE server = $1 AND identity = $2",
    )
    .bind(whose.server.as_str())
    .bind(&whose.identity)
    .fetch_optional(&mut **transaction)
    .await
}

/// True if it is unknown which servers had approved definitions.
async fn is_unsure(transaction: &mut Transaction<'_, Sqlite>) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT COUNT(*) FROM pinned_servers WHERE server = $1")
        .bind(EVERY)
        .fetch_one(&mut **transaction)
        .await
        .map(|found: i64| found > 0)
}

/// Records that approved definitions of a server are lost.
async fn lose(transaction: &mut Transaction<'_, Sqlite>, owner: i64) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE pinned_servers SET lost = 1 WHERE number = $1")
        .bind(owner)
        .execute(&mut **transaction)
        .await
        .map(drop)
}

async fn insert_owner(
    transaction: &mut Transaction<'_, Sqlite>,
    whose: &PinOwner,
    sum: Option<&str>,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO pinned_servers (server, identity, sum) VALUES ($1, $2, $3) RETURNING number",
    )
    .bind(whose.server.as_str())
    .bind(&whose.identity)
    .bind(sum)
    .fetch_one(&mut **transaction)
    .await
}

/// Stores definitions, at most one per tool.
async fn insert_pins(
    transaction: &mut Transaction<'_, Sqlite>,
    owner: i64,
    pins: impl Iterator<Item = Pin> + Send,
) -> Result<(), sqlx::Error> {
    let mut pins = pins.peekable();
    while pins.peek().is_some() {
        let mut query =
            QueryBuilder::new("INSERT INTO pins (owner, tool, fingerprint, definition) ");
        query.push_values(pins.by_ref().take(ROWS), |mut row, pin| {
            row.push_bind(owner).push_bind(pin.tool);
            row.push_bind(pin.fingerprint).push_bind(pin.text);
        });
        query.push(
            " ON CONFLICT (owner, tool) DO UPDATE SET \
             fingerprint = excluded.fingerprint, definition = excluded.definition",
        );
        query.build().persistent(false).execute(&mut **transaction).await?;
    }
    Ok(())
}

/// Invalidates the digest of the approved list, because another definition is approved.
async fn change(transaction: &mut Transaction<'_, Sqlite>, owner: i64) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE pinned_servers SET sum = NULL, changes = changes + 1 WHERE number = $1")
        .bind(owner)
        .execute(&mut **transaction)
        .await
        .map(drop)
}

fn pin(row: &SqliteRow) -> Result<Pin, sqlx::Error> {
    Ok(Pin {
        tool: row.try_get("tool")?,
        fingerprint: row.try_get("fingerprint")?,
        text: row.try_get("definition")?,
    })
}
