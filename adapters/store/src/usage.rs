//! The number of calls per server and hour.

use capstan_hub::ports::{BoxFuture, StoreError, UsageLog, UsageRow};
use sqlx::Row;

use crate::Database;
use crate::open::Opened;

/// Maximum number of rows that are read; those of the latest hours.
const MAX_ROWS: i64 = 100_000;

impl Database {
    async fn read_usage(&self, since: i64) -> Result<Vec<UsageRow>, StoreError> {
        // A missing file is not created just for reading.
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let Opened { pool, file } = self.pool().await?;
        let rows = sqlx::query(
            "SELECT server, hour, calls, seconds FROM usage WHERE hour >= $1 \
             ORDER BY hour DESC, server LIMIT $2",
        )
        .bind(since)
        .bind(MAX_ROWS)
        .fetch_all(&pool)
        .await
        .map_err(|cause| self.failed(file, "did not return the usage of servers", cause))?;
        let mut usage = rows.iter().map(usage).collect::<Result<Vec<_>, _>>();
        let _ = usage.as_mut().map(|rows| rows.reverse());
        let usage = usage.map_err(|cause| self.failed(file, "has an invalid row", cause))?;
        Ok(usage.into_iter().flatten().collect())
    }

    async fn add_usage(&self, rows: &[UsageRow], forget: i64) -> Result<(), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not save the usage of servers", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        for UsageRow { server, hour, calls, seconds } in rows {
            sqlx::query(
                "INSERT INTO usage (server, hour, calls, seconds) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (server, hour) DO UPDATE SET \
                 calls = usage.calls + excluded.calls, seconds = usage.seconds + excluded.seconds",
            )
            .bind(server.as_str())
            .bind(hour)
            .bind(i64::try_from(*calls).unwrap_or(i64::MAX))
            .bind(i64::try_from(*seconds).unwrap_or(i64::MAX))
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        }
        sqlx::query("DELETE FROM usage WHERE hour < $1")
            .bind(forget)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }
}

impl UsageLog for Database {
    fn read(&self, since: i64) -> BoxFuture<'_, Result<Vec<UsageRow>, StoreError>> {
        Box::pin(self.again(move || self.read_usage(since)))
    }

    fn add<'a>(
        &'a self,
        rows: &'a [UsageRow],
        forget: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.add_usage(rows, forget)))
    }
}

/// Converts a row; `None` if the name of its server is invalid.
fn usage(row: &sqlx::sqlite::SqliteRow) -> Result<Option<UsageRow>, sqlx::Error> {
    let Ok(server) = row.try_get::<String, _>("server")?.parse() else { return Ok(None) };
    let number = |name| -> Result<u64, sqlx::Error> {
        Ok(u64::try_from(row.try_get::<i64, _>(name)?).unwrap_or_default())
    };
    let (calls, seconds) = (number("calls")?, number("seconds")?);
    Ok(Some(UsageRow { server, hour: row.try_get("hour")?, calls, seconds }))
}
