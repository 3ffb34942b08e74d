//! Grants of users to clients, with their codes and refresh tokens.

use capstan_hub::ports::{
    BoxFuture, GrantStore, StoreError, StoredCode, StoredGrant, StoredToken, TakenCode,
};
use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{list, time, to_text};
use crate::Database;
use crate::open::Opened;

impl Database {
    async fn insert_code(&self, code: &StoredCode, grant: &StoredGrant) -> Result<(), StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not accept a code", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        sqlx::query(
            "INSERT INTO oauth_grants \
             (id, client, subject, roles, scopes, resource, expires_at, revoked) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
        )
        .bind(&grant.id)
        .bind(&grant.client)
        .bind(&grant.subject)
        .bind(to_text(&grant.roles))
        .bind(to_text(&grant.scopes))
        .bind(&grant.resource)
        .bind(grant.expires_at.as_millisecond())
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        sqlx::query(
            "INSERT INTO oauth_codes (digest, redirect_uri, challenge, owner, expires_at, taken) \
             VALUES ($1, $2, $3, $4, $5, 0)",
        )
        .bind(&code.digest)
        .bind(&code.redirect_uri)
        .bind(&code.challenge)
        .bind(&code.grant)
        .bind(code.expires_at.as_millisecond())
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }

    async fn mark_code(
        &self,
        digest: &str,
        now: Timestamp,
    ) -> Result<Option<TakenCode>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not return a code", cause);
        // One statement: only the process that changes the row has the code.
        let first = sqlx::query(
            "UPDATE oauth_codes SET taken = $2 WHERE digest = $1 AND taken = 0 AND expires_at > $2",
        )
        .bind(digest)
        .bind(now.as_millisecond())
        .execute(&pool)
        .await
        .map_err(failed)?
        .rows_affected()
            == 1;
        let row = sqlx::query(
            "SELECT c.digest, c.redirect_uri, c.challenge, c.owner, c.expires_at AS until, \
             c.taken, g.id, g.client, g.subject, g.roles, g.scopes, g.resource, g.expires_at, \
             g.revoked FROM oauth_codes c JOIN oauth_grants g ON g.id = c.owner \
             WHERE c.digest = $1 AND c.expires_at > $2",
        )
        .bind(digest)
        .bind(now.as_millisecond())
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
        let taken = |row: &SqliteRow| {
            let code = StoredCode {
                digest: row.try_get("digest")?,
                redirect_uri: row.try_get("redirect_uri")?,
                challenge: row.try_get("challenge")?,
                grant: row.try_get("owner")?,
                expires_at: time(row, "until")?,
            };
            let taken_before = if first { None } else { Some(time(row, "taken")?) };
            Ok(TakenCode { code, grant: grant(row)?, taken_before })
        };
        row.as_ref().map(taken).transpose().map_err(failed)
    }

    async fn insert_refresh_token(&self, token: &StoredToken) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not accept a token", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        let extended =
            sqlx::query("UPDATE oauth_grants SET expires_at = $2 WHERE id = $1 AND revoked = 0")
                .bind(&token.grant)
                .bind(token.expires_at.as_millisecond())
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        if extended.rows_affected() == 0 {
            return Ok(false);
        }
        insert(&mut transaction, token).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(true)
    }

    async fn select_refresh_token(
        &self,
        digest: &str,
    ) -> Result<Option<(StoredToken, StoredGrant)>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not return a token", cause);
        let row = sqlx::query(
            "SELECT t.digest, t.owner, t.expires_at AS until, t.used_at, \
             g.id, g.client, g.subject, g.roles, g.scopes, g.resource, g.expires_at, g.revoked \
             FROM oauth_tokens t JOIN oauth_grants g ON g.id = t.owner WHERE t.digest = $1",
        )
        .bind(digest)
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
        let found = |row: &SqliteRow| {
            let used_at: Option<i64> = row.try_get("used_at")?;
            let token = StoredToken {
                digest: row.try_get("digest")?,
                grant: row.try_get("owner")?,
                expires_at: time(row, "until")?,
                used_at: used_at.and_then(|at| Timestamp::from_millisecond(at).ok()),
            };
            Ok((token, grant(row)?))
        };
        row.as_ref().map(found).transpose().map_err(failed)
    }

    async fn replace_refresh_token(
        &self,
        digest: &str,
        next: &StoredToken,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not replace a token", cause);
        let mut transaction = pool.begin().await.map_err(failed)?;
        let used = sqlx::query(
            "UPDATE oauth_tokens SET used_at = $2 \
             WHERE digest = $1 AND owner = $3 AND used_at IS NULL AND expires_at > $2 \
             AND EXISTS (SELECT 1 FROM oauth_grants WHERE id = $3 AND revoked = 0)",
        )
        .bind(digest)
        .bind(now.as_millisecond())
        .bind(&next.grant)
        .execute(&mut *transaction)
        .await
        .map_err(failed)?;
        if used.rows_affected() == 0 {
            return Ok(false);
        }
        insert(&mut transaction, next).await.map_err(failed)?;
        sqlx::query("UPDATE oauth_grants SET expires_at = $2 WHERE id = $1")
            .bind(&next.grant)
            .bind(next.expires_at.as_millisecond())
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(true)
    }

    async fn select_grant(&self, id: &str) -> Result<Option<StoredGrant>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not return a grant", cause);
        let row = sqlx::query(
            "SELECT id, client, subject, roles, scopes, resource, expires_at, revoked \
             FROM oauth_grants WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&pool)
        .await
        .map_err(failed)?;
        row.as_ref().map(grant).transpose().map_err(failed)
    }

    async fn revoke_grants(&self, statement: &'static str, of: &str) -> Result<u64, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let done = sqlx::query(statement).bind(of).execute(&pool).await;
        done.map(|done| done.rows_affected())
            .map_err(|cause| self.failed(file, "did not revoke a grant", cause))
    }

    async fn delete_expired_grants(&self, now: Timestamp) -> Result<u64, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let mut deleted = 0;
        for statement in [
            "DELETE FROM oauth_codes WHERE expires_at <= $1",
            "DELETE FROM oauth_tokens WHERE expires_at <= $1",
            "DELETE FROM oauth_grants WHERE expires_at <= $1",
            "DELETE FROM oauth_clients WHERE expires_at <= $1",
        ] {
            let done = sqlx::query(statement).bind(now.as_millisecond()).execute(&pool).await;
            let done = done.map_err(|cause| self.failed(file, "forgot nothing", cause))?;
            deleted += done.rows_affected();
        }
        Ok(deleted)
    }
}

impl GrantStore for Database {
    fn add_code<'a>(
        &'a self,
        code: &'a StoredCode,
        grant: &'a StoredGrant,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.again(move || self.insert_code(code, grant)))
    }

    fn take_code<'a>(
        &'a self,
        digest: &'a str,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<TakenCode>, StoreError>> {
        Box::pin(self.again(move || self.mark_code(digest, now)))
    }

    fn add_token<'a>(&'a self, token: &'a StoredToken) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.insert_refresh_token(token)))
    }

    fn token<'a>(
        &'a self,
        digest: &'a str,
    ) -> BoxFuture<'a, Result<Option<(StoredToken, StoredGrant)>, StoreError>> {
        Box::pin(self.again(move || self.select_refresh_token(digest)))
    }

    fn rotate<'a>(
        &'a self,
        digest: &'a str,
        next: &'a StoredToken,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.replace_refresh_token(digest, next, now)))
    }

    fn find_grant<'a>(
        &'a self,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredGrant>, StoreError>> {
        Box::pin(self.again(move || self.select_grant(id)))
    }

    fn revoke_grant<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let statement = "UPDATE oauth_grants SET revoked = 1 WHERE id = $1 AND revoked = 0";
        Box::pin(
            async move { Ok(self.again(move || self.revoke_grants(statement, id)).await? > 0) },
        )
    }

    fn revoke_subject<'a>(&'a self, subject: &'a str) -> BoxFuture<'a, Result<u64, StoreError>> {
        let statement = "UPDATE oauth_grants SET revoked = 1 WHERE subject = $1 AND revoked = 0";
        Box::pin(self.again(move || self.revoke_grants(statement, subject)))
    }

    fn delete_expired(&self, now: Timestamp) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.again(move || self.delete_expired_grants(now)))
    }
}

async fn insert(
    transaction: &mut sqlx::Transaction<'_, sqlx::Sqlite>,
    token: &StoredToken,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO oauth_tokens (digest, owner, expires_at) VALUES ($1, $2, $3)")
        .bind(&token.digest)
        .bind(&token.grant)
        .bind(token.expires_at.as_millisecond())
        .execute(&mut **transaction)
        .await
        .map(drop)
}

fn grant(row: &SqliteRow) -> Result<StoredGrant, sqlx::Error> {
    Ok(StoredGrant {
        id: row.try_get("id")?,
        client: row.try_get("client")?,
        subject: row.try_get("subject")?,
        roles: list(row, "roles")?,
        scopes: list(row, "scopes")?,
        resource: row.try_get("resource")?,
        expires_at: time(row, "expires_at")?,
        revoked: row.try_get::<i64, _>("revoked")? != 0,
    })
}
