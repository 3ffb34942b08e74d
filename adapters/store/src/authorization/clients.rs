//! The clients of the authorization server.

use capstan_hub::ports::{BoxFuture, ClientSource, ClientStore, StoreError, StoredClient};
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{list, time, to_text};
use crate::Database;
use crate::open::Opened;

impl Database {
    async fn insert_client(&self, client: &StoredClient, most: u32) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        // One statement, so that several gateways cannot exceed the limit together.
        sqlx::query(
            "INSERT INTO oauth_clients \
             (id, name, redirect_uris, source, created_at, used_at, expires_at) \
             SELECT $1, $2, $3, $4, $5, $6, $7 \
             WHERE (SELECT COUNT(*) FROM oauth_clients WHERE expires_at > $5) < $8 \
             ON CONFLICT (id) DO NOTHING",
        )
        .bind(&client.id)
        .bind(&client.name)
        .bind(to_text(&client.redirect_uris))
        .bind(client.source.as_str())
        .bind(client.created_at.as_millisecond())
        .bind(client.used_at.as_millisecond())
        .bind(client.expires_at.as_millisecond())
        .bind(i64::from(most))
        .execute(&pool)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|cause| self.failed(file, "did not accept a client", cause))
    }

    async fn select_client(
        &self,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<StoredClient>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not return a client", cause);
        let row = sqlx::query(
            "SELECT id, name, redirect_uris, source, created_at, used_at, expires_at \
             FROM oauth_clients WHERE id = $1 AND expires_at > $2",
        )
        .bind(id)
        .bind(now.as_millisecond())
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
        row.as_ref().map(client).transpose().map(Option::flatten).map_err(failed)
    }

    async fn select_clients(
        &self,
        now: Timestamp,
        most: u32,
    ) -> Result<Vec<StoredClient>, StoreError> {
        // A missing file is not created just for reading.
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not list the clients", cause);
        let rows = sqlx::query(
            "SELECT id, name, redirect_uris, source, created_at, used_at, expires_at \
             FROM oauth_clients WHERE expires_at > $1 ORDER BY created_at, id LIMIT $2",
        )
        .bind(now.as_millisecond())
        .bind(i64::from(most))
        .fetch_all(&pool)
        .await
        .map_err(failed)?;
        let clients = rows.iter().map(client).collect::<Result<Vec<_>, _>>();
        Ok(clients.map_err(failed)?.into_iter().flatten().collect())
    }

    async fn update_client(
        &self,
        id: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query("UPDATE oauth_clients SET used_at = $2, expires_at = $3 WHERE id = $1")
            .bind(id)
            .bind(now.as_millisecond())
            .bind(expires_at.as_millisecond())
            .execute(&pool)
            .await
            .map(drop)
            .map_err(|cause| self.failed(file, "did not update a client", cause))
    }

    async fn delete_client(&self, id: &str) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not remove a client", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        let mut removed = 0;
        for statement in [
            "DELETE FROM oauth_clients WHERE id = $1",
            "DELETE FROM oauth_tokens WHERE owner IN \
             (SELECT id FROM oauth_grants WHERE client = $1)",
            "DELETE FROM oauth_codes WHERE owner IN \
             (SELECT id FROM oauth_grants WHERE client = $1)",
            "DELETE FROM oauth_grants WHERE client = $1",
        ] {
            let done = sqlx::query(statement).bind(id).execute(&mut *transaction).await;
            removed += done.map_err(failed)?.rows_affected();
        }
        transaction.commit().await.map_err(failed)?;
        Ok(removed > 0)
    }
}

impl ClientStore for Database {
    fn add_client<'a>(
        &'a self,
        client: &'a StoredClient,
        most: u32,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.insert_client(client, most)))
    }

    fn client<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredClient>, StoreError>> {
        Box::pin(self.again(move || self.select_client(id, now)))
    }

    fn clients(
        &self,
        now: Timestamp,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<StoredClient>, StoreError>> {
        Box::pin(self.again(move || self.select_clients(now, most)))
    }

    fn use_client<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.update_client(id, now, expires_at)))
    }

    fn remove_client<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.delete_client(id)))
    }
}

/// Converts a row; `None` for a source of a newer version.
fn client(row: &SqliteRow) -> Result<Option<StoredClient>, sqlx::Error> {
    let Some(source) = ClientSource::parse(&row.try_get::<String, _>("source")?) else {
        return Ok(None);
    };
    Ok(Some(StoredClient {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        redirect_uris: list(row, "redirect_uris")?,
        source,
        created_at: time(row, "created_at")?,
        used_at: time(row, "used_at")?,
        expires_at: time(row, "expires_at")?,
    }))
}
