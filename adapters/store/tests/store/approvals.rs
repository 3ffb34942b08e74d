//! Approvals: one call each, within their time.

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{Binding, KeptQuestion, Store};
use capstan_model::Kind;
use capstan_store::Database;
use tempfile::TempDir;

use crate::{grant, now};

#[tokio::test]
async fn an_approval_is_taken_once() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    let given = grant("a");
    assert!(!store.take(&given.binding, now()).await.unwrap());
    store.grant(&given).await.unwrap();
    assert_eq!(store.list(now(), 10).await.unwrap(), std::slice::from_ref(&given));
    assert!(store.take(&given.binding, now()).await.unwrap());
    assert!(!store.take(&given.binding, now()).await.unwrap());
    assert_eq!(store.list(now(), 10).await.unwrap(), []);
}

#[tokio::test]
async fn two_approvals_are_taken_twice() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    for id in ["a", "b"] {
        store.grant(&grant(id)).await.unwrap();
    }
    let binding = grant("a").binding;
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(store.take(&binding, now()).await.unwrap());
    }
    assert_eq!(taken, [true, true, false]);
}

#[tokio::test]
async fn an_approval_is_good_for_nothing_else_and_not_for_ever() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    let given = grant("a");
    store.grant(&given).await.unwrap();
    let own = || given.binding.clone();
    let others = [
        Binding { subject: "bob".to_owned(), ..own() },
        Binding { kind: Kind::Prompt, ..own() },
        Binding { item: "files__writ".to_owned(), ..own() },
        Binding { arguments: "Digest".to_owned(), ..own() },
        Binding { policy: String::new(), ..own() },
    ];
    for other in others {
        assert!(!store.take(&other, now()).await.unwrap(), "{other:?}");
    }
    let late = given.expires_at;
    assert!(!store.take(&given.binding, late).await.unwrap());
    assert_eq!(store.list(late, 10).await.unwrap(), []);
    assert!(store.take(&given.binding, late - Duration::from_millis(1)).await.unwrap());
}

#[tokio::test]
async fn what_is_no_longer_good_is_forgotten() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    let given = grant("a");
    store.grant(&given).await.unwrap();
    assert_eq!(store.expire(now()).await.unwrap(), 0);
    assert_eq!(store.expire(given.expires_at).await.unwrap(), 1);
    assert_eq!(store.expire(given.expires_at).await.unwrap(), 0);
}

#[tokio::test]
async fn of_many_who_want_one_approval_at_the_same_time_one_gets_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    // As many processes would have it: each has a connection of its own.
    let stores: Vec<Arc<Database>> = (0..8).map(|_| Arc::new(Database::at(&path))).collect();
    stores[0].grant(&grant("a")).await.unwrap();
    let tasks: Vec<_> = stores
        .into_iter()
        .map(|store| {
            tokio::spawn(async move { store.take(&grant("a").binding, now()).await.unwrap() })
        })
        .collect();
    let mut taken = 0;
    for task in tasks {
        taken += usize::from(task.await.unwrap());
    }
    assert_eq!(taken, 1);
}

/// Holes 4 and 5: an approval expires after ten minutes at the latest, by any clock.
#[tokio::test]
async fn a_clock_that_is_set_back_does_not_make_an_approval_last_longer() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    let given = grant("a");
    store.grant(&given).await.unwrap();
    for back in [Duration::from_secs(1), Duration::from_hours(1), Duration::from_hours(9000)] {
        assert!(!store.take(&given.binding, now() - back).await.unwrap(), "{back:?}");
        assert_eq!(store.list(now() - back, 10).await.unwrap(), []);
    }
    assert_eq!(store.list(now(), 10).await.unwrap().len(), 1);
    // The next approval removes it.
    assert_eq!(store.expire(now() - Duration::from_hours(1)).await.unwrap(), 1);
    assert!(!store.take(&given.binding, now()).await.unwrap());
}

#[tokio::test]
async fn a_question_is_kept_until_it_is_answered_or_expires() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    let kept = KeptQuestion { grant: grant("k7f2"), shown: "{}".to_owned() };
    Database::at(path.clone()).keep(&kept).await.unwrap();
    let other = Database::at(path);
    assert_eq!(other.kept(now(), 9).await.unwrap(), std::slice::from_ref(&kept));
    assert_eq!(other.kept(kept.grant.expires_at, 9).await.unwrap(), []);
    assert!(!other.forget("zzzz").await.unwrap());
    assert!(other.forget("k7f2").await.unwrap());
    assert!(!other.forget("k7f2").await.unwrap(), "only one shell answers it");
}

#[tokio::test]
async fn only_the_newest_questions_are_kept() {
    let folder = TempDir::new().unwrap();
    let store = Database::at(folder.path().join("state.db"));
    for number in 0..300_u64 {
        let mut grant = grant(&format!("q{number}"));
        grant.expires_at -= Duration::from_secs(300 - number);
        store.keep(&KeptQuestion { grant, shown: "{}".to_owned() }).await.unwrap();
    }
    let kept = store.kept(now(), 999).await.unwrap();
    assert_eq!((kept.len(), kept.first().unwrap().grant.id.as_str()), (256, "q44"));
}
