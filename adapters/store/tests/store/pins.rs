//! Approved definitions, in a real file.

use capstan_hub::ports::{Approved, Pin, PinOwner, PinStore};
use capstan_store::Database;

fn owner(server: &str, identity: &str) -> PinOwner {
    PinOwner { server: server.parse().unwrap(), identity: identity.to_owned() }
}

fn pin(tool: &str, fingerprint: &str) -> Pin {
    let text = format!("description:\n  {fingerprint}\n");
    Pin { tool: tool.to_owned(), fingerprint: fingerprint.to_owned(), text }
}

async fn is_approved(database: &Database, whose: &PinOwner, sum: &str) -> bool {
    database.sums().await.unwrap().get(whose).is_some_and(|known| known == sum)
}

#[tokio::test]
async fn what_is_approved_is_found_again_and_replaced_by_what_is_approved_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (database, s) = (Database::at(&path), owner("s", "1"));
    assert_eq!(database.pins(&s).await.unwrap(), None);
    database.begin(&s, &[pin("a", "1"), pin("b", "1")], "x").await.unwrap();
    database.approve(&s, &[pin("b", "2"), pin("c", "1")]).await.unwrap();
    // Another process.
    let pins = vec![pin("a", "1"), pin("b", "2"), pin("c", "1")];
    let kept = Database::at(&path).pins(&s).await.unwrap();
    assert_eq!(kept, Some(Approved { pins, changes: 1 }));
}

#[tokio::test]
async fn a_server_begins_once_also_with_nothing_and_others_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("state.db"));
    let (s, other, t) = (owner("s", "1"), owner("s", "2"), owner("t", "1"));
    let kept = |pins: &[Pin]| Some(Approved { pins: pins.to_vec(), changes: 0 });
    database.begin(&s, &[], "x").await.unwrap();
    database.begin(&s, &[pin("a", "1")], "y").await.unwrap();
    assert_eq!(database.pins(&s).await.unwrap(), kept(&[]));
    database.begin(&other, &[pin("a", "2")], "z").await.unwrap();
    assert_eq!(database.pins(&s).await.unwrap(), kept(&[]));
    assert_eq!(database.pins(&other).await.unwrap(), kept(&[pin("a", "2")]));
    assert_eq!(database.pins(&t).await.unwrap(), None);
}

#[tokio::test]
async fn of_many_who_begin_at_once_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let begun = (0..8).map(|number| {
        let database = Database::at(&path);
        tokio::spawn(async move {
            let fingerprint = number.to_string();
            database.begin(&owner("s", "1"), &[pin("a", &fingerprint)], "x").await.unwrap();
        })
    });
    for one in begun.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    assert_eq!(Database::at(&path).pins(&owner("s", "1")).await.unwrap().unwrap().pins.len(), 1);
}

#[tokio::test]
async fn a_list_is_approved_as_a_whole_until_something_else_is_approved() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("state.db"));
    let (s, other) = (owner("s", "1"), owner("s", "2"));
    let is = async |whose, sum| is_approved(&database, whose, sum).await;
    assert!(!is(&s, "x").await);
    database.begin(&s, &[pin("a", "1")], "x").await.unwrap();
    assert!(is(&s, "x").await && !is(&s, "y").await && !is(&other, "x").await);
    // Of one that was seen before nothing is approved by coming again.
    database.begin(&s, &[pin("a", "2")], "y").await.unwrap();
    assert!(!is(&s, "y").await);
    database.approve(&s, &[pin("a", "2")]).await.unwrap();
    assert!(!is(&s, "x").await && !is(&s, "y").await);
    database.note(&s, "y", 1).await.unwrap();
    assert!(is(&s, "y").await && !is(&s, "x").await);
}

#[tokio::test]
async fn what_was_found_before_something_else_was_approved_is_not_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (path, s) = (folder.path().join("state.db"), owner("s", "1"));
    let (one, another) = (Database::at(&path), Database::at(&path));
    one.begin(&s, &[pin("a", "1")], "x").await.unwrap();
    let before = one.pins(&s).await.unwrap().unwrap();
    another.approve(&s, &[pin("a", "2")]).await.unwrap();
    one.note(&s, "x", before.changes).await.unwrap();
    assert!(!is_approved(&one, &s, "x").await);
    // Nor for one that was never seen.
    one.note(&owner("t", "1"), "x", 0).await.unwrap();
    assert!(!is_approved(&one, &owner("t", "1"), "x").await);
}
