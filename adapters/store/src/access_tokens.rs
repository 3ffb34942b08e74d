//! Tokens that the operator created for callers, by their digests.

use capstan_hub::ports::{AccessToken, AccessTokens, BoxFuture, StoreError};
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::Database;
use crate::open::Opened;

// === impl Database ===

impl AccessTokens for Database {
    fn add<'a>(&'a self, token: &'a AccessToken) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.insert_token(token)))
    }

    fn find<'a>(
        &'a self,
        digest: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>> {
        Box::pin(async move {
            let Opened { pool, file } = self.pool().await?;
            let found = sqlx::query(
                "SELECT id, digest, subject, roles, created_at, expires_at FROM access_tokens \
                 WHERE digest = $1 AND (expires_at IS NULL OR expires_at > $2)",
            )
            .bind(digest)
            .bind(now.as_millisecond())
            .fetch_optional(&pool)
            .await;
            let found = found.map_err(|cause| self.failed(file, "has no tokens", cause))?;
            found.map(|row| self.token(&row)).transpose()
        })
    }

    fn all(&self, most: u32) -> BoxFuture<'_, Result<Vec<AccessToken>, StoreError>> {
        Box::pin(async move {
            let Opened { pool, file } = self.pool().await?;
            let rows = sqlx::query(
                "SELECT id, digest, subject, roles, created_at, expires_at FROM access_tokens \
                 ORDER BY created_at, id LIMIT $1",
            )
            .bind(i64::from(most))
            .fetch_all(&pool)
            .await;
            let rows = rows.map_err(|cause| self.failed(file, "has no tokens", cause))?;
            rows.iter().map(|row| self.token(row)).collect()
        })
    }

    fn revoke<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, StoreError>> {
        Box::pin(async move {
            let Opened { pool, file } = self.pool().await?;
            let removed = sqlx::query(
                "DELETE FROM access_tokens WHERE id = $1 \
                 RETURNING id, digest, subject, roles, created_at, expires_at",
            )
            .bind(id)
            .fetch_optional(&pool)
            .await;
            let removed =
                removed.map_err(|cause| self.failed(file, "did not remove a token", cause))?;
            removed.map(|row| self.token(&row)).transpose()
        })
    }
}

impl Database {
    async fn insert_token(&self, token: &AccessToken) -> Result<(), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query(
            "INSERT INTO access_tokens (id, digest, subject, roles, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(&token.id)
        .bind(&token.digest)
        .bind(&token.subject)
        .bind(token.roles.join("\n"))
        .bind(token.created_at.as_millisecond())
        .bind(token.expires_at.map(Timestamp::as_millisecond))
        .execute(&pool)
        .await
        .map(drop)
        .map_err(|cause| self.failed(file, "did not accept a token", cause))
    }

    fn token(&self, row: &SqliteRow) -> Result<AccessToken, StoreError> {
        let read = || -> Result<AccessToken, Box<dyn std::error::Error + Send + Sync>> {
            let roles: String = row.try_get("roles")?;
            let expires_at: Option<i64> = row.try_get("expires_at")?;
            Ok(AccessToken {
                id: row.try_get("id")?,
                digest: row.try_get("digest")?,
                subject: row.try_get("subject")?,
                roles: roles.lines().map(ToOwned::to_owned).collect(),
                created_at: Timestamp::from_millisecond(row.try_get("created_at")?)?,
                expires_at: expires_at.map(Timestamp::from_millisecond).transpose()?,
            })
        };
        read().map_err(|cause| self.error("has a token that cannot be read", cause))
    }
}
