//! Approved definitions of tools.

use std::collections::HashMap;

use capstan_hub::ports::{Approved, BoxFuture, Pin, PinOwner, PinStore, StoreError};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite, Transaction};

use crate::Database;

/// Lists that are looked up at the most; those of servers that were seen last.
const MAX_SUMS: i64 = 10_000;

/// When definitions are kept.
#[derive(Clone, Copy)]
enum When<'a> {
    /// Only those of a server that was never seen, which are a list with this sum.
    NeverSeen(&'a str),
    Always,
}

// === impl Database ===

impl Database {
    async fn select_sums(&self) -> Result<HashMap<PinOwner, String>, StoreError> {
        let failed = |cause| self.failed("listed no definitions", cause);
        let rows: Vec<(String, String, String)> = sqlx::query_as(
            "SELECT server, identity, sum FROM pinned_servers WHERE sum IS NOT NULL \
             ORDER BY number DESC LIMIT $1",
        )
        .bind(MAX_SUMS)
        .fetch_all(self.pool().await?)
        .await
        .map_err(failed)?;
        let row = |(server, identity, sum): (String, String, String)| {
            Some((PinOwner { server: server.parse().ok()?, identity }, sum))
        };
        Ok(rows.into_iter().filter_map(row).collect())
    }

    async fn keep_sum(&self, whose: &PinOwner, sum: &str, changes: i64) -> Result<(), StoreError> {
        // One statement: what was approved meanwhile has another number.
        sqlx::query(
            "UPDATE pinned_servers SET sum = $1 \
             WHERE server = $2 AND identity = $3 AND changes = $4",
        )
        .bind(sum)
        .bind(whose.server.as_str())
        .bind(&whose.identity)
        .bind(changes)
        .execute(self.pool().await?)
        .await
        .map(drop)
        .map_err(|cause| self.failed("took no definitions", cause))
    }

    async fn select_pins(&self, whose: &PinOwner) -> Result<Option<Approved>, StoreError> {
        let failed = |cause| self.failed("listed no definitions", cause);
        let mut transaction = self.pool().await?.begin().await.map_err(failed)?;
        let Some((owner, changes)) = owner(&mut transaction, whose).await.map_err(failed)? else {
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
        Ok(Some(Approved { pins, changes }))
    }

    /// Keeps definitions.
    async fn keep_pins(
        &self,
        whose: &PinOwner,
        pins: &[Pin],
        when: When<'_>,
    ) -> Result<(), StoreError> {
        let failed = |cause| self.failed("took no definitions", cause);
        let pool = self.pool().await?;
        // Whoever begins to write has read what is there: nobody comes in between.
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let owner = match (owner(&mut transaction, whose).await.map_err(failed)?, when) {
            (Some(_), When::NeverSeen(_)) => return Ok(()),
            (Some((owner, _)), When::Always) => {
                change(&mut transaction, owner).await.map_err(failed)?;
                owner
            }
            (None, When::NeverSeen(sum)) => {
                insert_owner(&mut transaction, whose, Some(sum)).await.map_err(failed)?
            }
            (None, When::Always) => {
                insert_owner(&mut transaction, whose, None).await.map_err(failed)?
            }
        };
        for pin in pins {
            sqlx::query(
                "INSERT INTO pins (owner, tool, fingerprint, definition) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (owner, tool) DO UPDATE SET \
                 fingerprint = excluded.fingerprint, definition = excluded.definition",
            )
            .bind(owner)
            .bind(&pin.tool)
            .bind(&pin.fingerprint)
            .bind(&pin.text)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }
}

impl PinStore for Database {
    fn get_ready(&self) -> BoxFuture<'_, ()> {
        // Whoever asks something next is told what is wrong.
        Box::pin(async { drop(self.pool().await) })
    }

    fn sums(&self) -> BoxFuture<'_, Result<HashMap<PinOwner, String>, StoreError>> {
        Box::pin(self.select_sums())
    }

    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Approved>, StoreError>> {
        Box::pin(self.select_pins(whose))
    }

    fn begin<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
        sum: &'a str,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_pins(whose, pins, When::NeverSeen(sum)))
    }

    fn note<'a>(
        &'a self,
        whose: &'a PinOwner,
        sum: &'a str,
        changes: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_sum(whose, sum, changes))
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_pins(whose, pins, When::Always))
    }
}

/// The number of a server that was seen, and how often something of it was approved since.
async fn owner(
    transaction: &mut Transaction<'_, Sqlite>,
    whose: &PinOwner,
) -> Result<Option<(i64, i64)>, sqlx::Error> {
    sqlx::query_as("SELECT number, changes FROM pinned_servers WHERE server = $1 AND identity = $2")
        .bind(whose.server.as_str())
        .bind(&whose.identity)
        .fetch_optional(&mut **transaction)
        .await
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

/// Something else is approved: whatever list was approved as a whole may no longer be.
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
