//! Approved definitions of tools.

use capstan_hub::ports::{BoxFuture, Pin, PinOwner, PinStore, StoreError};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, Sqlite, Transaction};

use crate::Database;

/// When definitions are kept.
#[derive(Clone, Copy)]
enum When {
    /// Only those of a server that was never seen.
    NeverSeen,
    Always,
}

// === impl Database ===

impl Database {
    async fn select_pins(&self, whose: &PinOwner) -> Result<Option<Vec<Pin>>, StoreError> {
        let failed = |cause| self.failed("listed no definitions", cause);
        let mut transaction = self.pool().await?.begin().await.map_err(failed)?;
        let Some(owner) = owner(&mut transaction, whose).await.map_err(failed)? else {
            return Ok(None);
        };
        let rows = sqlx::query(
            "SELECT tool, fingerprint, definition FROM pins WHERE owner = $1 ORDER BY tool",
        )
        .bind(owner)
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed)?;
        rows.iter().map(pin).collect::<Result<Vec<_>, _>>().map(Some).map_err(failed)
    }

    /// Keeps definitions.
    async fn keep_pins(
        &self,
        whose: &PinOwner,
        pins: &[Pin],
        when: When,
    ) -> Result<(), StoreError> {
        let failed = |cause| self.failed("took no definitions", cause);
        let pool = self.pool().await?;
        // Whoever begins to write has read what is there: nobody comes in between.
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let owner = match (owner(&mut transaction, whose).await.map_err(failed)?, when) {
            (Some(_), When::NeverSeen) => return Ok(()),
            (Some(owner), When::Always) => owner,
            (None, _) => insert_owner(&mut transaction, whose).await.map_err(failed)?,
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
    fn pins<'a>(
        &'a self,
        whose: &'a PinOwner,
    ) -> BoxFuture<'a, Result<Option<Vec<Pin>>, StoreError>> {
        Box::pin(self.select_pins(whose))
    }

    fn begin<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_pins(whose, pins, When::NeverSeen))
    }

    fn approve<'a>(
        &'a self,
        whose: &'a PinOwner,
        pins: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.keep_pins(whose, pins, When::Always))
    }
}

/// The number of a server that was seen.
async fn owner(
    transaction: &mut Transaction<'_, Sqlite>,
    whose: &PinOwner,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar("SELECT number FROM pinned_servers WHERE server = $1 AND identity = $2")
        .bind(whose.server.as_str())
        .bind(&whose.identity)
        .fetch_optional(&mut **transaction)
        .await
}

async fn insert_owner(
    transaction: &mut Transaction<'_, Sqlite>,
    whose: &PinOwner,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO pinned_servers (server, identity) VALUES ($1, $2) RETURNING number",
    )
    .bind(whose.server.as_str())
    .bind(&whose.identity)
    .fetch_one(&mut **transaction)
    .await
}

fn pin(row: &SqliteRow) -> Result<Pin, sqlx::Error> {
    Ok(Pin {
        tool: row.try_get("tool")?,
        fingerprint: row.try_get("fingerprint")?,
        text: row.try_get("definition")?,
    })
}
