//! The file itself: whose it is, when it is made, and what is said of one that cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use capstan_hub::ports::{Store, StoreError};
use capstan_store::Database;
use tempfile::TempDir;

use crate::{grant, now};

/// The second record while nothing is approved.
const NOBODY: &str = "capstan: servers with approved definitions, see state.db\nservers: 0\n";

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The error with its cause.
fn told(error: &StoreError) -> String {
    format!("{error}: {}", error.cause.as_ref().unwrap())
}

#[tokio::test]
async fn the_file_is_made_when_it_is_needed_and_for_nobody_else() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("deep/state.db");
    let store = Database::at(&path);
    assert!(!path.exists());
    store.grant(&grant("a")).await.unwrap();
    for beside in ["state.db", "state.db-wal", "state.db-shm"] {
        assert_eq!(mode(&path.with_file_name(beside)), 0o600, "{beside}");
    }
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

#[tokio::test]
async fn a_file_that_others_can_read_is_closed_to_them() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Database::at(&path).grant(&grant("a")).await.unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn what_was_kept_is_there_for_the_next_process() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    Database::at(&path).grant(&grant("a")).await.unwrap();
    assert!(Database::at(&path).take(&grant("a").binding, now()).await.unwrap());
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    Database::at(&path).grant(&grant("a")).await.unwrap();
    let url = format!("sqlite://{}", path.display());
    let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
    sqlx::query("INSERT INTO capstan_schema (version) VALUES (99)").execute(&pool).await.unwrap();
    let error = Database::at(&path).take(&grant("a").binding, now()).await.unwrap_err();
    assert!(told(&error).contains("newer"), "{}", told(&error));
    assert_eq!(Database::at(&path).check().await.unwrap_err().to_string(), error.to_string());
    let left = sqlx::query("SELECT * FROM approvals").fetch_all(&pool).await.unwrap();
    assert_eq!(left.len(), 1);
}

#[tokio::test]
async fn a_path_that_cannot_be_had_is_said_to_be_so() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = Database::at(folder.path().join("file/state.db"));
    let error = store.grant(&grant("a")).await.unwrap_err();
    assert!(error.to_string().contains("cannot be opened"), "{error}");
}

#[tokio::test]
async fn a_new_file_that_somebody_else_is_opening_is_waited_for() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    // The other one has begun.
    fs::write(path.with_extension("pins"), NOBODY).unwrap();
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let other = sqlx::SqlitePool::connect(&url).await.unwrap();
    // The lock of a process that switches the journal mode: others can read, but not switch it.
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let store = Database::at(&path);
    let given = grant("a");
    let mut opening = pin!(store.grant(&given));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut opening).await;
    assert!(early.is_err(), "{early:?}");
    held.rollback().await.unwrap();
    opening.await.unwrap();
}
