//! Approved definitions, in a real file.

use capstan_hub::ports::{Pin, PinOwner, PinStore};
use capstan_store::Database;

fn owner(server: &str, identity: &str) -> PinOwner {
    PinOwner { server: server.parse().unwrap(), identity: identity.to_owned() }
}

fn pin(tool: &str, fingerprint: &str) -> Pin {
    let text = format!("description:\n  {fingerprint}\n");
    Pin { tool: tool.to_owned(), fingerprint: fingerprint.to_owned(), text }
}

#[tokio::test]
async fn what_is_approved_is_found_again_and_replaced_by_what_is_approved_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.db");
    let (database, s) = (Database::at(&path), owner("s", "1"));
    assert_eq!(database.pins(&s).await.unwrap(), None);
    database.begin(&s, &[pin("a", "1"), pin("b", "1")]).await.unwrap();
    database.approve(&s, &[pin("b", "2"), pin("c", "1")]).await.unwrap();
    // Another process.
    let kept = Database::at(&path).pins(&s).await.unwrap();
    assert_eq!(kept, Some(vec![pin("a", "1"), pin("b", "2"), pin("c", "1")]));
}

#[tokio::test]
async fn a_server_begins_once_also_with_nothing_and_others_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::at(folder.path().join("state.db"));
    let (s, other, t) = (owner("s", "1"), owner("s", "2"), owner("t", "1"));
    database.begin(&s, &[]).await.unwrap();
    database.begin(&s, &[pin("a", "1")]).await.unwrap();
    assert_eq!(database.pins(&s).await.unwrap(), Some(Vec::new()));
    database.begin(&other, &[pin("a", "2")]).await.unwrap();
    assert_eq!(database.pins(&s).await.unwrap(), Some(Vec::new()));
    assert_eq!(database.pins(&other).await.unwrap(), Some(vec![pin("a", "2")]));
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
            database.begin(&owner("s", "1"), &[pin("a", &fingerprint)]).await.unwrap();
        })
    });
    for one in begun.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    assert_eq!(Database::at(&path).pins(&owner("s", "1")).await.unwrap().unwrap().len(), 1);
}
