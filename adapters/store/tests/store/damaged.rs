//! A store that is damaged, emptied or gone loosens nothing. Holes 5.

use std::fs::{self, OpenOptions};
use std::future::poll_fn;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use capstan_hub::ports::{PinStore, Store, UsageLog};
use capstan_store::Database;
use tempfile::TempDir;

use crate::pins::{newcomer, owner};
use crate::{grant, now};

/// Tools of a server whose definitions fill many pages.
const TOOLS: usize = 500;

/// A folder with a store that has approved definitions of `s` and `t`, and an approval; nothing of
/// it is open.
async fn filled() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let names: Vec<String> = (0..TOOLS).map(|number| format!("tool_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let store = Database::at(&path);
    for server in ["s", "t"] {
        store.begin(&[newcomer(&owner(server, "1"), "x", &names)]).await.unwrap();
    }
    store.grant(&grant("a")).await.unwrap();
    drop(store);
    // All of it is in one file.
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&pool).await.unwrap();
    pool.close().await;
    (folder, path)
}

/// Does something to the file that must not go unnoticed.
type Harm = fn(&Path);

fn overwrite(path: &Path, at: u64, bytes: usize) {
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![0xa5; bytes]).unwrap();
}

fn remove_all(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        drop(fs::remove_file(format!("{}{ending}", path.display())));
    }
}

/// Each harm, and whether something of the old file can be kept.
const HARMS: [(&str, Harm, bool); 6] = [
    ("deleted", remove_all, false),
    ("emptied", |path| fs::write(path, "").unwrap(), false),
    ("no database", |path| fs::write(path, "no database at all ".repeat(500)).unwrap(), true),
    ("a damaged header", |path| overwrite(path, 0, 64), true),
    ("a damaged first page", |path| overwrite(path, 100, 3000), true),
    (
        "damaged in the middle",
        |path| {
            let len = fs::metadata(path).unwrap().len();
            overwrite(path, 8192, usize::try_from(len).unwrap() - 8192);
        },
        true,
    ),
];

/// The servers whose definitions are known to be lost.
async fn lost(store: &Database) -> Vec<String> {
    let mut lost = Vec::new();
    for whose in store.approved_digests().await.unwrap().into_keys() {
        let approved = store.pins(&whose).await.unwrap().unwrap();
        if approved.is_lost && approved.pins.is_empty() {
            lost.push(whose.server.to_string());
        }
    }
    lost.sort();
    lost
}

#[tokio::test]
async fn whatever_happens_to_the_file_the_servers_in_it_are_not_taken_for_new_ones() {
    for (what, harm, is_kept) in HARMS {
        let (_folder, path) = filled().await;
        harm(&path);
        let store = Database::at(&path);
        // Some damage is found only when the file is read.
        drop(store.pins(&owner("s", "1")).await);
        assert_eq!(lost(&store).await, ["s", "t"], "{what}");
        assert_eq!(store.check().await.unwrap().len(), usize::from(is_kept), "{what}");
        // A server that comes now with a list of the same name is not approved by that.
        store.begin(&[newcomer(&owner("s", "1"), "y", &["evil"])]).await.unwrap();
        assert!(store.pins(&owner("s", "1")).await.unwrap().unwrap().pins.is_empty(), "{what}");
        // An approval that was lost is asked for again, and what is new is kept.
        assert!(!store.take(&grant("a").binding, now()).await.unwrap(), "{what}");
        store.grant(&grant("b")).await.unwrap();
        assert!(UsageLog::read(&store, 0).await.unwrap().is_empty());
        // The next process finds it as it is now, and keeps nothing aside again.
        let next = Database::at(&path);
        assert!(next.take(&grant("b").binding, now()).await.unwrap(), "{what}");
        assert_eq!(lost(&next).await, ["s", "t"], "{what}");
        assert_eq!(next.check().await.unwrap().len(), usize::from(is_kept), "{what}");
    }
}

#[tokio::test]
async fn a_file_that_is_harmed_while_it_is_used_is_noticed() {
    for (what, harm, _) in HARMS {
        let (_folder, path) = filled().await;
        let store = Database::at(&path);
        assert!(lost(&store).await.is_empty());
        // As another program would: with nothing left of the journal.
        for ending in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{ending}", path.display())));
        }
        harm(&path);
        // Data in memory may still be returned, but no server counts as new.
        for whose in [owner("s", "1"), owner("t", "1")] {
            for _ in 0..2 {
                if let Ok(found) = store.pins(&whose).await {
                    let found = found.unwrap();
                    assert!(found.is_lost || found.pins.len() == TOOLS, "{what}");
                }
            }
        }
        let next = Database::at(&path);
        drop(next.pins(&owner("s", "1")).await);
        assert_eq!(lost(&next).await, ["s", "t"], "{what}");
        drop(store.pins(&owner("t", "1")).await);
        assert_eq!(lost(&store).await, ["s", "t"], "{what}");
    }
}

#[tokio::test]
async fn a_database_that_has_nothing_in_it_is_kept_aside() {
    let (folder, path) = filled().await;
    let other = folder.path().join("other.db");
    Database::at(&other).grant(&grant("foreign")).await.unwrap();
    remove_all(&path);
    fs::rename(&other, &path).unwrap();
    fs::rename(folder.path().join("other.db-wal"), folder.path().join("state.db-wal")).unwrap();
    let store = Database::at(&path);
    assert_eq!(lost(&store).await, ["s", "t"]);
    assert_eq!(store.check().await.unwrap().len(), 1);
    assert!(!store.take(&grant("foreign").binding, now()).await.unwrap());
}

#[tokio::test]
async fn a_database_whose_tables_do_not_fit_its_version_is_kept_aside() {
    for harm in [
        "DELETE FROM capstan_schema",
        "DELETE FROM capstan_schema WHERE version > 3",
        "DROP TABLE capstan_schema",
        "DROP TABLE pinned_servers",
        "ALTER TABLE pinned_servers DROP COLUMN lost",
    ] {
        let (_folder, path) = filled().await;
        let file = format!("sqlite://{}", path.display());
        let pool = sqlx::SqlitePool::connect(&file).await.unwrap();
        sqlx::query(harm).execute(&pool).await.unwrap();
        pool.close().await;
        let (store, s) = (Database::at(&path), owner("s", "1"));
        assert_eq!(lost(&store).await, ["s", "t"], "{harm}");
        assert_eq!(store.check().await.unwrap().len(), 1, "{harm}");
        let new = newcomer(&s, "y", &["a"]);
        store.approve(&s, &new.pins().collect::<Vec<_>>()).await.unwrap();
        store.note(&s, "y", 1).await.unwrap();
        assert_eq!(lost(&Database::at(&path)).await, ["t"], "{harm}");
    }
}

#[tokio::test]
async fn a_server_that_is_missing_is_lost_and_the_others_stay() {
    let (_folder, path) = filled().await;
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query("DELETE FROM pinned_servers WHERE server = 's'").execute(&pool).await.unwrap();
    pool.close().await;
    let store = Database::at(&path);
    assert_eq!(lost(&store).await, ["s"]);
    assert_eq!(store.pins(&owner("t", "1")).await.unwrap().unwrap().pins.len(), TOOLS);
    assert!(store.take(&grant("a").binding, now()).await.unwrap());
}

#[tokio::test]
async fn what_was_lost_is_good_again_when_it_is_approved() {
    let (_folder, path) = filled().await;
    fs::write(&path, "").unwrap();
    let (store, s) = (Database::at(&path), owner("s", "1"));
    let new = newcomer(&s, "y", &["a"]);
    let pins: Vec<_> = new.pins().collect();
    store.approve(&s, &pins).await.unwrap();
    assert!(store.pins(&s).await.unwrap().unwrap().is_lost);
    store.note(&s, "y", 1).await.unwrap();
    assert!(!Database::at(&path).pins(&s).await.unwrap().unwrap().is_lost);
    assert_eq!(lost(&Database::at(&path)).await, ["t"]);
}

#[tokio::test]
async fn where_the_second_record_is_damaged_too_every_server_is_lost() {
    let (_folder, path) = filled().await;
    let witness = path.with_extension("pins");
    // Alone it is made anew.
    fs::write(&witness, "").unwrap();
    assert!(lost(&Database::at(&path)).await.is_empty());
    assert!(fs::read_to_string(&witness).unwrap().contains("servers: 2"));
    fs::write(&witness, "").unwrap();
    remove_all(&path);
    let (store, any) = (Database::at(&path), owner("any", "1"));
    store.begin(&[newcomer(&any, "x", &["a"])]).await.unwrap();
    assert_eq!(lost(&store).await, ["any"]);
    assert_eq!(lost(&Database::at(&path)).await, ["any"]);
}

/// A future is dropped when a client disconnects, or when the process ends.
#[tokio::test]
async fn a_repair_that_is_interrupted_at_any_moment_loosens_nothing() {
    for polls in 0..30 {
        let (_folder, path) = filled().await;
        fs::remove_file(path.with_extension("pins")).unwrap();
        fs::write(&path, "").unwrap();
        {
            let (store, mut left) = (Database::at(&path), polls);
            let mut opening = pin!(store.check());
            poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                opening.as_mut().poll(context).map(drop)
            })
            .await;
        }
        let (store, s) = (Database::at(&path), owner("s", "1"));
        store.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
        assert_eq!(lost(&store).await, ["s"], "after {polls} polls");
    }
}

/// As an earlier version left it: without the second record.
#[tokio::test]
async fn where_there_is_no_second_record_a_file_without_tables_makes_every_server_lost() {
    let harms: [(&str, Harm); 3] = [
        ("damaged", |path| overwrite(path, 0, 64)),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("another database", |path| {
            let other = path.with_file_name("other.db");
            fs::rename(other, path).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let (folder, path) = filled().await;
        let url = format!("sqlite://{}?mode=rwc", folder.path().join("other.db").display());
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        sqlx::query("CREATE TABLE other (a TEXT)").execute(&pool).await.unwrap();
        pool.close().await;
        fs::remove_file(path.with_extension("pins")).unwrap();
        harm(&path);
        let (store, s) = (Database::at(&path), owner("s", "1"));
        store.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
        assert_eq!(lost(&store).await, ["s"], "{what}");
    }
}

#[tokio::test]
async fn a_first_run_that_is_killed_before_there_are_tables_raises_no_alarm() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    Database::at(&path).check().await.unwrap();
    remove_all(&path);
    fs::write(&path, "").unwrap();
    let (store, s) = (Database::at(&path), owner("s", "1"));
    store.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
    assert!(lost(&store).await.is_empty());
    assert_eq!(store.pins(&s).await.unwrap().unwrap().pins.len(), 1);
}

#[tokio::test]
async fn that_every_server_is_lost_ends_when_the_operator_says_so() {
    let (_folder, path) = filled().await;
    fs::remove_file(path.with_extension("pins")).unwrap();
    overwrite(&path, 0, 64);
    let store = Database::at(&path);
    store.begin(&[newcomer(&owner("s", "1"), "x", &["a"])]).await.unwrap();
    // Not by itself, and not for the next process.
    let again = Database::at(&path);
    again.begin(&[newcomer(&owner("early", "1"), "x", &["a"])]).await.unwrap();
    assert_eq!(lost(&again).await, ["early", "s"]);
    // `t` is configured and could not be reached.
    let all = [owner("s", "1"), owner("t", "1")];
    assert!(store.end_loss(&all).await.unwrap());
    assert!(!store.end_loss(&[owner("u", "1")]).await.unwrap());
    for store in [store, Database::at(&path)] {
        for name in ["t", "later"] {
            store.begin(&[newcomer(&owner(name, "1"), "x", &["a"])]).await.unwrap();
        }
        assert_eq!(lost(&store).await, ["early", "s", "t"]);
        assert_eq!(store.pins(&owner("later", "1")).await.unwrap().unwrap().pins.len(), 1);
        assert!(store.pins(&owner("u", "1")).await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_first_run_and_a_store_without_approved_definitions_raise_no_alarm() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    for _ in 0..2 {
        let store = Database::at(&path);
        store.grant(&grant("a")).await.unwrap();
        assert!(store.approved_digests().await.unwrap().is_empty());
        assert!(store.check().await.unwrap().is_empty());
        drop(store);
        remove_all(&path);
    }
    let (store, s) = (Database::at(&path), owner("s", "1"));
    store.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
    assert!(lost(&Database::at(&path)).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_find_the_damage_at_once_one_keeps_the_file_aside() {
    let (_folder, path) = filled().await;
    fs::write(&path, "no database at all ".repeat(500)).unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let store = Database::at(&path);
            tokio::spawn(async move { lost(&store).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), ["s", "t"]);
    }
    assert_eq!(Database::at(&path).check().await.unwrap().len(), 1);
}

/// Statements that wait for the connection to the old file fail after the new one is open.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_error_from_the_damaged_file_leaves_the_new_one_alone() {
    let (_folder, path) = filled().await;
    let store = Arc::new(Database::at(&path));
    assert_eq!(store.approved_digests().await.unwrap().len(), 2);
    let len = fs::metadata(&path).unwrap().len();
    overwrite(&path, 8192, usize::try_from(len).unwrap() - 8192);
    let tasks: Vec<_> = (0..64)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let whose = owner(["s", "t"][number % 2], "1");
                let found = store.pins(&whose).await.unwrap().unwrap();
                assert!(found.is_lost && found.pins.is_empty());
                store.grant(&grant(&number.to_string())).await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.check().await.unwrap().len(), 1);
    assert_eq!(store.list(now(), 100).await.unwrap().len(), 64);
    assert_eq!(lost(&store).await, ["s", "t"]);
}

#[tokio::test]
async fn only_a_few_damaged_files_are_kept() {
    let (_folder, path) = filled().await;
    for round in 0..8 {
        remove_all(&path);
        fs::write(&path, format!("damage {round} ").repeat(1000)).unwrap();
        Database::at(&path).approved_digests().await.unwrap();
    }
    let kept = Database::at(&path).check().await.unwrap();
    assert_eq!(kept.len(), 5);
    assert_eq!(lost(&Database::at(&path)).await, ["s", "t"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_an_error_and_stays_as_it_is() {
    let (folder, path) = filled().await;
    let aside = folder.path().join("aside");
    fs::rename(&path, &aside).unwrap();
    // A folder cannot be opened as a file, not even by root.
    fs::create_dir_all(path.join("full")).unwrap();
    let store = Database::at(&path);
    assert!(store.approved_digests().await.is_err());
    assert!(store.take(&grant("a").binding, now()).await.is_err());
    fs::remove_dir_all(&path).unwrap();
    fs::rename(&aside, &path).unwrap();
    assert!(lost(&store).await.is_empty());
    assert!(store.take(&grant("a").binding, now()).await.unwrap());
}

/// As on a full disk: the second record cannot be written, so the database is not created either.
#[tokio::test]
async fn a_first_run_that_fails_is_a_first_run_the_next_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let in_the_way = folder.path().join("state.pins.new");
    fs::create_dir(&in_the_way).unwrap();
    let s = owner("s", "1");
    assert!(Database::at(&path).begin(&[newcomer(&s, "x", &["a"])]).await.is_err());
    assert!(!path.exists());
    fs::remove_dir(&in_the_way).unwrap();
    let store = Database::at(&path);
    store.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
    assert!(lost(&store).await.is_empty());
    assert_eq!(store.pins(&s).await.unwrap().unwrap().pins.len(), 1);
}
