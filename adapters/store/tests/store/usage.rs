//! The number of calls per server survives restarts.

use capstan_hub::ports::{UsageLog, UsageRow};
use capstan_store::Database;

fn row(server: &str, hour: i64, calls: u64, seconds: u64) -> UsageRow {
    UsageRow { server: server.parse().unwrap(), hour, calls, seconds }
}

#[tokio::test]
async fn what_is_added_is_there_after_a_restart_and_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    Database::at(&path).add(&[row("a", 10, 3, 60), row("b", 10, 0, 60)], 0).await.unwrap();
    let again = Database::at(&path);
    again.add(&[row("a", 10, 2, 40), row("a", 11, 1, 10)], 0).await.unwrap();
    let expected = [row("b", 10, 0, 60), row("a", 10, 5, 100), row("a", 11, 1, 10)];
    assert_eq!(Database::at(&path).read(0).await.unwrap(), expected);
    assert_eq!(again.read(11).await.unwrap(), [row("a", 11, 1, 10)]);
}

#[tokio::test]
async fn what_is_old_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    store.add(&[row("a", 10, 3, 60), row("a", 20, 1, 60)], 0).await.unwrap();
    store.add(&[], 15).await.unwrap();
    assert_eq!(store.read(0).await.unwrap(), [row("a", 20, 1, 60)]);
}

#[tokio::test]
async fn reading_makes_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    assert_eq!(Database::at(&path).read(0).await.unwrap(), []);
    assert!(!path.exists());
}

#[tokio::test]
async fn after_damage_the_counts_begin_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    std::fs::write(&path, "no database, but long enough to look like one to a hasty reader")
        .unwrap();
    let database = Database::at(&path);
    assert_eq!(database.read(0).await.unwrap(), []);
    assert_eq!(database.check().await.unwrap().len(), 1);
}
