//! Approved definitions, in a real file.

use capstan_hub::ports::{Approved, Item, Newcomer, Pin, PinOwner, PinStore};
use capstan_store::Database;
use capstan_wire::Json;
use serde_json::json;

pub(crate) fn owner(server: &str, identity: &str) -> PinOwner {
    PinOwner { server: server.parse().unwrap(), identity: identity.to_owned() }
}

fn pin(tool: &str, fingerprint: &str) -> Pin {
    let text = format!("description:\n  {fingerprint}\n");
    Pin { tool: tool.to_owned(), fingerprint: fingerprint.to_owned(), text }
}

/// A server with these tools, whose list has this sum.
pub(crate) fn newcomer(whose: &PinOwner, sum: &str, tools: &[&str]) -> Newcomer {
    let item = |name: &&str| {
        let definition = Json::from_value(&json!({ "name": name, "description": sum })).unwrap();
        Item { name: (*name).to_owned(), definition }
    };
    let items = tools.iter().map(item).collect();
    Newcomer { owner: whose.clone(), sum: sum.to_owned(), items }
}

async fn is_approved(database: &Database, whose: &PinOwner, sum: &str) -> bool {
    database
        .approved_digests()
        .await
        .unwrap()
        .get(whose)
        .is_some_and(|known| known.as_deref() == Some(sum))
}

#[tokio::test]
async fn what_is_approved_is_found_again_and_replaced_by_what_is_approved_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (database, s) = (Database::at(&path), owner("s", "1"));
    assert_eq!(database.pins(&s).await.unwrap(), None);
    let new = newcomer(&s, "x", &["a", "b"]);
    let first = new.pins().next().unwrap();
    database.begin(&[new]).await.unwrap();
    database.approve(&s, &[pin("b", "2"), pin("c", "1")]).await.unwrap();
    // Another process.
    let pins = vec![first, pin("b", "2"), pin("c", "1")];
    let kept = Database::at(&path).pins(&s).await.unwrap();
    assert_eq!(kept, Some(Approved { pins, changes: 1, is_lost: false }));
}

#[tokio::test]
async fn a_server_begins_once_also_with_nothing_and_others_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("state.db"));
    let (s, other, t) = (owner("s", "1"), owner("s", "2"), owner("t", "1"));
    let kept = |pins: &[Pin]| Some(Approved { pins: pins.to_vec(), ..Approved::default() });
    database.begin(&[newcomer(&s, "x", &[])]).await.unwrap();
    // Also beside one that was never seen, and twice in one step.
    let new = newcomer(&other, "z", &["a"]);
    let again = newcomer(&s, "y", &["a"]);
    database.begin(&[again.clone(), new.clone(), newcomer(&other, "y", &["b"])]).await.unwrap();
    database.begin(&[again]).await.unwrap();
    assert_eq!(database.pins(&s).await.unwrap(), kept(&[]));
    let pins: Vec<Pin> = new.pins().collect();
    assert_eq!(database.pins(&other).await.unwrap(), kept(&pins));
    assert_eq!(database.pins(&t).await.unwrap(), None);
}

#[tokio::test]
async fn a_list_of_any_length_is_kept_whole_and_of_two_tools_of_one_name_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("state.db"));
    for count in [1, 31, 32, 33, 1000] {
        let names: Vec<String> = (0..count).map(|number| format!("t{number:04}")).collect();
        let mut tools: Vec<&str> = names.iter().map(String::as_str).collect();
        tools.push("t0000");
        let s = owner("s", &count.to_string());
        let new = newcomer(&s, "x", &tools);
        let pins: Vec<Pin> = new.pins().collect();
        database.begin(&[new]).await.unwrap();
        let kept = database.pins(&s).await.unwrap().unwrap().pins;
        assert_eq!((kept.len(), kept == pins), (count, true));
    }
}

#[tokio::test]
async fn of_many_who_begin_at_once_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let begun = (0..8).map(|number| {
        let database = Database::at(&path);
        tokio::spawn(async move {
            let new = newcomer(&owner("s", "1"), &number.to_string(), &["a"]);
            database.begin(&[new]).await.unwrap();
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
    database.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
    assert!(is(&s, "x").await && !is(&s, "y").await && !is(&other, "x").await);
    // Of one that was seen before nothing is approved by coming again.
    database.begin(&[newcomer(&s, "y", &["a"])]).await.unwrap();
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
    one.begin(&[newcomer(&s, "x", &["a"])]).await.unwrap();
    let before = one.pins(&s).await.unwrap().unwrap();
    another.approve(&s, &[pin("a", "2")]).await.unwrap();
    one.note(&s, "x", before.changes).await.unwrap();
    assert!(!is_approved(&one, &s, "x").await);
    // Nor for one that was never seen.
    one.note(&owner("t", "1"), "x", 0).await.unwrap();
    assert!(!is_approved(&one, &owner("t", "1"), "x").await);
}
