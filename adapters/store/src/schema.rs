//! The tables, as migrations from one version of the file to the next.

use sqlx::SqlitePool;

use crate::damage::is_refused_statement;

/// The migrations. A released one is never changed: later changes are further migrations.
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
    "CREATE TABLE questions (\
        question TEXT NOT NULL PRIMARY KEY, \
        subject TEXT NOT NULL, \
        kind TEXT NOT NULL, \
        item TEXT NOT NULL, \
        arguments TEXT NOT NULL, \
        policy TEXT NOT NULL, \
        shown TEXT NOT NULL, \
        expires_at BIGINT NOT NULL)",
    "CREATE TABLE access_tokens (\
        id TEXT NOT NULL PRIMARY KEY, \
        digest TEXT NOT NULL UNIQUE, \
        subject TEXT NOT NULL, \
        roles TEXT NOT NULL, \
        created_at BIGINT NOT NULL, \
        expires_at BIGINT)",
    "CREATE TABLE oauth_clients (\
        id TEXT NOT NULL PRIMARY KEY, \
        name TEXT, \
        redirect_uris TEXT NOT NULL, \
        source TEXT NOT NULL, \
        created_at BIGINT NOT NULL, \
        used_at BIGINT NOT NULL, \
        expires_at BIGINT NOT NULL)",
    "CREATE TABLE oauth_grants (\
        id TEXT NOT NULL PRIMARY KEY, \
        client TEXT NOT NULL, \
        subject TEXT NOT NULL, \
        roles TEXT NOT NULL, \
        scopes TEXT NOT NULL, \
        resource TEXT NOT NULL, \
        expires_at BIGINT NOT NULL, \
        revoked BIGINT NOT NULL)",
    "CREATE INDEX oauth_grants_of_client ON oauth_grants (client)",
    "CREATE INDEX oauth_grants_of_subject ON oauth_grants (subject)",
    "CREATE TABLE oauth_codes (\
        digest TEXT NOT NULL PRIMARY KEY, \
        redirect_uri TEXT NOT NULL, \
        challenge TEXT NOT NULL, \
        owner TEXT NOT NULL, \
        expires_at BIGINT NOT NULL, \
        taken BIGINT NOT NULL)",
    "CREATE TABLE oauth_tokens (\
        digest TEXT NOT NULL PRIMARY KEY, \
        owner TEXT NOT NULL, \
        expires_at BIGINT NOT NULL, \
        used_at BIGINT)",
    "CREATE TABLE users (\
        name TEXT NOT NULL PRIMARY KEY, \
        password TEXT NOT NULL, \
        roles TEXT NOT NULL, \
        created_at BIGINT NOT NULL)",
    "CREATE TABLE oauth_keys (\
        id TEXT NOT NULL PRIMARY KEY, \
        usage TEXT NOT NULL, \
        secret TEXT NOT NULL, \
        created_at BIGINT NOT NULL)",
];

/// Counts the migrations of a file.
const KNOWN: &str = "SELECT COUNT(*) FROM capstan_schema";

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SchemaError {
    /// The database reports an error.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// It was created by a newer version of Capstan.
    #[error("it has version {0}, from a newer Capstan")]
    Newer(i64),
    /// Its tables do not match its version.
    #[error("its tables do not match its version: {0}")]
    Unfit(#[source] sqlx::Error),
}

/// True if no migration is needed. This is nearly always so, and the check does not block writers.
pub(crate) async fn is_current(pool: &SqlitePool) -> bool {
    let known = sqlx::query_scalar::<_, i64>(KNOWN).fetch_one(pool).await;
    known.is_ok_and(|known| usize::try_from(known) == Ok(STEPS.len()))
}

/// Runs the missing migrations; returns the number of those that had been run before.
pub(crate) async fn bring_up_to_date(pool: &SqlitePool) -> Result<i64, SchemaError> {
    // Without this, two processes that start at the same time would both run the first migration.
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
                // A table or column exists already, or an earlier one is missing.
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
