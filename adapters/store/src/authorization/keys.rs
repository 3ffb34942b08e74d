//! The keys that sign tokens and forms.

use capstan_hub::ports::{BoxFuture, KeyStore, StoreError, StoredKey};
use capstan_model::Secret;
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::time;
use crate::Database;
use crate::open::Opened;

/// Most keys that are read.
const MAX_KEYS: i64 = 64;

impl Database {
    async fn insert_key(&self, key: &StoredKey, after: Timestamp) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        // One statement, so that of several gateways only one creates a key.
        sqlx::query(
            "INSERT INTO oauth_keys (id, usage, secret, created_at) SELECT $1, $2, $3, $4 \
             WHERE NOT EXISTS (SELECT 1 FROM oauth_keys WHERE usage = $2 AND created_at >= $5)",
        )
        .bind(&key.id)
        .bind(&key.usage)
        .bind(key.secret.reveal())
        .bind(key.created_at.as_millisecond())
        .bind(after.as_millisecond())
        .execute(&pool)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|cause| self.failed(file, "did not accept a key", cause))
    }

    async fn select_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not list the keys", cause);
        let rows = sqlx::query(
            "SELECT id, usage, secret, created_at FROM oauth_keys \
             ORDER BY created_at DESC, id LIMIT $1",
        )
        .bind(MAX_KEYS)
        .fetch_all(&pool)
        .await
        .map_err(failed)?;
        rows.iter().map(key).collect::<Result<_, _>>().map_err(failed)
    }

    async fn delete_old_keys(&self, usage: &str, before: Timestamp) -> Result<u64, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query("DELETE FROM oauth_keys WHERE usage = $1 AND created_at < $2")
            .bind(usage)
            .bind(before.as_millisecond())
            .execute(&pool)
            .await
            .map(|done| done.rows_affected())
            .map_err(|cause| self.failed(file, "did not delete a key", cause))
    }
}

impl KeyStore for Database {
    fn add_key<'a>(
        &'a self,
        key: &'a StoredKey,
        after: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.insert_key(key, after)))
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<StoredKey>, StoreError>> {
        Box::pin(self.again(move || self.select_keys()))
    }

    fn delete_keys<'a>(
        &'a self,
        usage: &'a str,
        before: Timestamp,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(self.again(move || self.delete_old_keys(usage, before)))
    }
}

fn key(row: &SqliteRow) -> Result<StoredKey, sqlx::Error> {
    Ok(StoredKey {
        id: row.try_get("id")?,
        usage: row.try_get("usage")?,
        secret: Secret::new(row.try_get("secret")?),
        created_at: time(row, "created_at")?,
    })
}
