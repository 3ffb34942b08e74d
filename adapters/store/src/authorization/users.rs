//! The users that sign in with a password.

use capstan_hub::ports::{BoxFuture, StoreError, StoredUser, UserStore};
use capstan_model::Secret;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{list, time, to_text};
use crate::Database;
use crate::open::Opened;

impl Database {
    async fn insert_user(&self, user: &StoredUser) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query(
            "INSERT INTO users (name, password, roles, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(&user.name)
        .bind(user.password.reveal())
        .bind(to_text(&user.roles))
        .bind(user.created_at.as_millisecond())
        .execute(&pool)
        .await
        .map(|done| done.rows_affected() == 1)
        .map_err(|cause| self.failed(file, "did not accept a user", cause))
    }

    async fn select_user(&self, name: &str) -> Result<Option<StoredUser>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not return a user", cause);
        let row =
            sqlx::query("SELECT name, password, roles, created_at FROM users WHERE name = $1")
                .bind(name)
                .fetch_optional(&pool)
                .await
                .map_err(failed)?;
        row.as_ref().map(user).transpose().map_err(failed)
    }

    async fn select_users(&self, most: u32) -> Result<Vec<StoredUser>, StoreError> {
        // A missing file is not created just for reading.
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let Opened { pool, file } = self.pool().await?;
        let failed = |cause| self.failed(file, "did not list the users", cause);
        let rows = sqlx::query(
            "SELECT name, password, roles, created_at FROM users ORDER BY name LIMIT $1",
        )
        .bind(i64::from(most))
        .fetch_all(&pool)
        .await
        .map_err(failed)?;
        rows.iter().map(user).collect::<Result<_, _>>().map_err(failed)
    }

    async fn update_password(
        &self,
        name: &str,
        password: &Secret<String>,
    ) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query("UPDATE users SET password = $2 WHERE name = $1")
            .bind(name)
            .bind(password.reveal())
            .execute(&pool)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|cause| self.failed(file, "did not change a password", cause))
    }

    async fn delete_user(&self, name: &str) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query("DELETE FROM users WHERE name = $1")
            .bind(name)
            .execute(&pool)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|cause| self.failed(file, "did not remove a user", cause))
    }
}

impl UserStore for Database {
    fn add_user<'a>(&'a self, user: &'a StoredUser) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.insert_user(user)))
    }

    fn user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<StoredUser>, StoreError>> {
        Box::pin(self.again(move || self.select_user(name)))
    }

    fn users(&self, most: u32) -> BoxFuture<'_, Result<Vec<StoredUser>, StoreError>> {
        Box::pin(self.again(move || self.select_users(most)))
    }

    fn set_password<'a>(
        &'a self,
        name: &'a str,
        password: &'a Secret<String>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.update_password(name, password)))
    }

    fn remove_user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(self.again(move || self.delete_user(name)))
    }
}

fn user(row: &SqliteRow) -> Result<StoredUser, sqlx::Error> {
    Ok(StoredUser {
        name: row.try_get("name")?,
        password: Secret::new(row.try_get("password")?),
        roles: list(row, "roles")?,
        created_at: time(row, "created_at")?,
    })
}
