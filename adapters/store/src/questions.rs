//! Questions whose calls were refused, until they expire.

use capstan_hub::ports::{Binding, KeptQuestion, StoreError};
use jiff::Timestamp;
use sqlx::Row;

use crate::open::Opened;
use crate::{Database, grant, latest};

/// Most questions that are kept; a further one replaces the oldest.
const MAX_KEPT: i64 = 256;

// === impl Database ===

impl Database {
    pub(crate) async fn insert_question(&self, kept: &KeptQuestion) -> Result<(), StoreError> {
        let Binding { subject, kind, item, arguments, policy } = &kept.grant.binding;
        let Opened { pool, file } = self.pool().await?;
        sqlx::query(
            "INSERT INTO questions \
             (question, subject, kind, item, arguments, policy, shown, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (question) DO UPDATE SET subject = $2, kind = $3, item = $4, \
             arguments = $5, policy = $6, shown = $7, expires_at = $8",
        )
        .bind(&kept.grant.id)
        .bind(subject)
        .bind(kind.as_str())
        .bind(item)
        .bind(arguments)
        .bind(policy)
        .bind(&kept.shown)
        .bind(kept.grant.expires_at.as_millisecond())
        .execute(&pool)
        .await
        .map_err(|cause| self.failed(file, "did not accept a question", cause))?;
        sqlx::query(
            "DELETE FROM questions WHERE question NOT IN (\
                 SELECT question FROM questions ORDER BY expires_at DESC LIMIT $1)",
        )
        .bind(MAX_KEPT)
        .execute(&pool)
        .await
        .map(drop)
        .map_err(|cause| self.failed(file, "did not bound the questions", cause))
    }

    pub(crate) async fn select_questions(
        &self,
        now: Timestamp,
        most: u32,
    ) -> Result<Vec<KeptQuestion>, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        let rows = sqlx::query(
            "SELECT question, subject, kind, item, arguments, policy, shown, expires_at \
             FROM questions WHERE expires_at > $1 AND expires_at <= $2 \
             ORDER BY expires_at LIMIT $3",
        )
        .bind(now.as_millisecond())
        .bind(latest(now))
        .bind(i64::from(most))
        .fetch_all(&pool)
        .await
        .map_err(|cause| self.failed(file, "did not list the questions", cause))?;
        let kept = rows.iter().map(|row| {
            let grant = grant(row)?;
            let shown = row.try_get("shown")?;
            Ok(grant.map(|grant| KeptQuestion { grant, shown }))
        });
        let kept = kept.collect::<Result<Vec<_>, sqlx::Error>>();
        let kept = kept.map_err(|cause| self.failed(file, "has an invalid row", cause))?;
        Ok(kept.into_iter().flatten().collect())
    }

    pub(crate) async fn delete_question(&self, id: &str) -> Result<bool, StoreError> {
        let Opened { pool, file } = self.pool().await?;
        sqlx::query("DELETE FROM questions WHERE question = $1")
            .bind(id)
            .execute(&pool)
            .await
            .map(|done| done.rows_affected() == 1)
            .map_err(|cause| self.failed(file, "did not delete a question", cause))
    }
}
