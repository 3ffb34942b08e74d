//! The tables, as steps from one version of the file to the next.

use sqlx::SqlitePool;

use crate::damage::is_refused_statement;

/// The steps. One that was released is never changed: what comes later gets a step of its own.
const STEPS: &[&str] = &[
    "CREATE TABLE approvals (\
        number INTEGER PRIMARY KEY, \
        question TEXT NOT NULL, \
        subject TEXT NOT NULL, \
        kind TEXT NOT NULL, \
        item TEXT NOT NULL, \
        arguments TEXT NOT NULL, \
        policy TEXT NOT NULL, \
        expires_at BIGINT NOT NULL)",
    "CREATE TABLE pinned_servers (\
        number INTEGER PRIMARY KEY, \
        server TEXT NOT NULL, \
        identity TEXT NOT NULL, \
        UNIQUE (server, identity))",
    "CREATE TABLE pins (\
        owner BIGINT NOT NULL, \
        tool TEXT NOT NULL, \
        fingerprint TEXT NOT NULL, \
        definition TEXT NOT NULL, \
        PRIMARY KEY (owner, tool))",
    "\
    CREATE TABLE usage (\
        server TEXT NOT NULL, \
        hour BIGINT NOT NULL, \
        calls BIGINT NOT NULL, \
        seconds BIGINT NOT NULL, \
        PRIMARY KEY (server, hour))",
    "ALTER TABLE pinned_servers ADD COLUMN changes BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE pinned_servers ADD COLUMN sum TEXT",
    "ALTER TABLE pinned_servers ADD COLUMN lost BIGINT NOT NULL DEFAULT 0",
];

/// How many steps a file was taken through.
const KNOWN: &str = "SELECT COUNT(*) FROM capstan_schema";

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    /// The database says so.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// It was made by a newer version of ours.
    #[error("it is of version {0}, and a newer Capstan made it")]
    Newer(i64),
    /// Its tables are not those of the version that it says it has.
    #[error("its tables do not fit its version: {0}")]
    Unfit(#[source] sqlx::Error),
}

/// Whether nothing is to be done about a file. That is nearly always so, and nobody need be kept from
/// writing to find it out.
pub(crate) async fn is_current(pool: &SqlitePool) -> bool {
    let known = sqlx::query_scalar::<_, i64>(KNOWN).fetch_one(pool).await;
    known.is_ok_and(|known| usize::try_from(known) == Ok(STEPS.len()))
}

/// Takes the steps that a file has not been taken through yet; how many it had been taken through.
pub(crate) async fn bring_up_to_date(pool: &SqlitePool) -> Result<i64, SchemaError> {
    // Without this, two processes that begin at the same time would both take the first step.
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("CREATE TABLE IF NOT EXISTS capstan_schema (version BIGINT NOT NULL)")
        .execute(&mut *transaction)
        .await?;
    let known: i64 = sqlx::query_scalar(KNOWN).fetch_one(&mut *transaction).await?;
    let all = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if known > all {
        return Err(SchemaError::Newer(known));
    }
    for (version, step) in (1_i64..).zip(STEPS) {
        if version > known {
            sqlx::query(*step).execute(&mut *transaction).await.map_err(|cause| {
                // A table or column is there already, or one that was made before is missing.
                if is_refused_statement(&cause) {
                    SchemaError::Unfit(cause)
                } else {
                    SchemaError::Database(cause)
                }
            })?;
            sqlx::query("INSERT INTO capstan_schema (version) VALUES ($1)")
                .bind(version)
                .execute(&mut *transaction)
                .await?;
        }
    }
    transaction.commit().await?;
    Ok(known)
}
