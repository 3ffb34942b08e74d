//! The state of the authorization server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{
    ClientSource, ClientStore, GrantStore, KeyStore, StoredClient, StoredCode, StoredGrant,
    StoredKey, StoredToken, StoredUser, UserStore,
};
use capstan_model::Secret;
use capstan_store::Database;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::now;

pub(crate) fn client(id: &str) -> StoredClient {
    StoredClient {
        id: id.to_owned(),
        name: Some("Claude".to_owned()),
        redirect_uris: vec!["https://claude.ai/cb".to_owned()],
        source: ClientSource::Registered,
        created_at: now(),
        used_at: now(),
        expires_at: now() + Duration::from_hours(1),
    }
}

pub(crate) fn grant(id: &str, client: &str) -> StoredGrant {
    StoredGrant {
        id: id.to_owned(),
        client: client.to_owned(),
        subject: "ann".to_owned(),
        roles: vec!["dev".to_owned(), "with \"quotes\"".to_owned()],
        scopes: Vec::new(),
        resource: "https://hub.example/mcp".to_owned(),
        expires_at: now() + Duration::from_mins(1),
        revoked: false,
    }
}

pub(crate) fn code(digest: &str, grant: &str) -> StoredCode {
    StoredCode {
        digest: digest.to_owned(),
        redirect_uri: "https://claude.ai/cb".to_owned(),
        challenge: "challenge".to_owned(),
        grant: grant.to_owned(),
        expires_at: now() + Duration::from_mins(1),
    }
}

pub(crate) fn token(digest: &str, grant: &str) -> StoredToken {
    StoredToken {
        digest: digest.to_owned(),
        grant: grant.to_owned(),
        expires_at: now() + Duration::from_hours(1),
        used_at: None,
    }
}

fn store() -> (TempDir, Arc<Database>) {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(Database::at(folder.path().join("state.db")));
    (folder, store)
}

/// Another process that uses the file.
fn another(folder: &Path) -> Arc<Database> {
    Arc::new(Database::at(folder.join("state.db")))
}

#[tokio::test]
async fn clients_and_tokens_outlive_a_restart() {
    let (folder, store) = store();
    assert!(store.add_client(&client("a"), 10).await.unwrap());
    store.add_code(&code("c", "g"), &grant("g", "a")).await.unwrap();
    assert!(store.add_token(&token("t", "g")).await.unwrap());
    drop(store);
    let again = another(folder.path());
    assert_eq!(again.client("a", now()).await.unwrap(), Some(client("a")));
    let (found, owner) = again.token("t").await.unwrap().unwrap();
    assert_eq!(found, token("t", "g"));
    assert_eq!(owner.roles, grant("g", "a").roles);
    assert_eq!(owner.expires_at, found.expires_at, "a grant lasts as long as its token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_gateways_never_take_one_code_twice() {
    let (folder, store) = store();
    let stores = [Arc::clone(&store), another(folder.path())];
    for round in 0..20 {
        let (digest, owner) = (format!("c{round}"), format!("g{round}"));
        store.add_code(&code(&digest, &owner), &grant(&owner, "a")).await.unwrap();
        let takers: Vec<_> = (0..10)
            .map(|number: usize| {
                let (store, digest) = (Arc::clone(&stores[number % 2]), digest.clone());
                tokio::spawn(async move { store.take_code(&digest, now()).await.unwrap() })
            })
            .collect();
        let mut firsts = 0;
        for taker in takers {
            firsts += usize::from(taker.await.unwrap().unwrap().taken_before.is_none());
        }
        assert_eq!(firsts, 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_gateways_never_replace_one_token_twice() {
    let (folder, store) = store();
    let stores = [Arc::clone(&store), another(folder.path())];
    store.add_code(&code("c", "g"), &grant("g", "a")).await.unwrap();
    assert!(store.add_token(&token("t", "g")).await.unwrap());
    let takers: Vec<_> = (0..10)
        .map(|number: usize| {
            let store = Arc::clone(&stores[number % 2]);
            let next = token(&format!("next{number}"), "g");
            tokio::spawn(async move { store.rotate("t", &next, now()).await.unwrap() })
        })
        .collect();
    let mut replaced = 0;
    for taker in takers {
        replaced += usize::from(taker.await.unwrap());
    }
    assert_eq!(replaced, 1);
    let (old, _) = store.token("t").await.unwrap().unwrap();
    assert_eq!(old.used_at, Some(now()));
}

#[tokio::test]
async fn codes_and_tokens_end_with_their_time_and_their_grant() {
    let (_folder, store) = store();
    let late = now() + Duration::from_mins(1);
    store.add_code(&code("c", "g"), &grant("g", "a")).await.unwrap();
    assert_eq!(store.take_code("c", late).await.unwrap(), None);
    assert_eq!(store.take_code("madeup", now()).await.unwrap(), None);
    assert!(!store.add_token(&token("t", "madeup")).await.unwrap());
    assert!(store.revoke_grant("g").await.unwrap());
    assert!(!store.revoke_grant("g").await.unwrap());
    assert!(!store.add_token(&token("t", "g")).await.unwrap());
    // A token of a grant that is revoked later is not replaced.
    store.add_code(&code("c2", "g2"), &grant("g2", "a")).await.unwrap();
    assert!(store.add_token(&token("t2", "g2")).await.unwrap());
    let expired = now() + Duration::from_hours(1);
    assert!(!store.rotate("t2", &token("t3", "g2"), expired).await.unwrap());
    assert_eq!(store.revoke_subject("ann").await.unwrap(), 1);
    assert!(!store.rotate("t2", &token("t3", "g2"), now()).await.unwrap());
    assert!(store.find_grant("g2").await.unwrap().unwrap().revoked);
}

#[tokio::test]
async fn clients_are_limited_in_number_expire_and_take_their_tokens_with_them() {
    let (_folder, store) = store();
    assert!(store.add_client(&client("a"), 2).await.unwrap());
    assert!(!store.add_client(&client("a"), 2).await.unwrap(), "the id is taken");
    assert!(store.add_client(&client("b"), 2).await.unwrap());
    assert!(!store.add_client(&client("c"), 2).await.unwrap(), "there are two");
    let late = now() + Duration::from_hours(1);
    assert_eq!(store.client("a", late).await.unwrap(), None);
    store.use_client("a", now(), now() + Duration::from_hours(2)).await.unwrap();
    assert!(store.client("a", late).await.unwrap().is_some());
    assert_eq!(store.clients(late, 10).await.unwrap().len(), 1);
    store.add_code(&code("c", "g"), &grant("g", "a")).await.unwrap();
    store.add_token(&token("t", "g")).await.unwrap();
    assert!(store.remove_client("a").await.unwrap());
    assert!(!store.remove_client("a").await.unwrap());
    assert_eq!(store.token("t").await.unwrap(), None);
    assert_eq!(store.find_grant("g").await.unwrap(), None);
    assert_eq!(store.delete_expired(late).await.unwrap(), 1, "the other client");
}

#[tokio::test]
async fn users_are_known_by_name() {
    let (_folder, store) = store();
    let user = StoredUser {
        name: "ann".to_owned(),
        password: Secret::new("$argon2id$…".to_owned()),
        roles: vec!["dev".to_owned()],
        created_at: now(),
    };
    assert!(store.add_user(&user).await.unwrap());
    assert!(!store.add_user(&user).await.unwrap());
    assert_eq!(store.user("ann").await.unwrap(), Some(user.clone()));
    assert_eq!(store.user("Ann").await.unwrap(), None);
    let other = Secret::new("other".to_owned());
    assert!(store.set_password("ann", &other).await.unwrap());
    assert!(!store.set_password("bob", &other).await.unwrap());
    assert_eq!(store.users(10).await.unwrap().first().unwrap().password, other);
    assert!(store.remove_user("ann").await.unwrap());
    assert!(!store.remove_user("ann").await.unwrap());
}

#[tokio::test]
async fn of_several_gateways_one_makes_a_key() {
    let (folder, store) = store();
    let second = another(folder.path());
    let key = |id: &str, created_at| StoredKey {
        id: id.to_owned(),
        usage: "ES256".to_owned(),
        secret: Secret::new("secret".to_owned()),
        created_at,
    };
    assert!(store.add_key(&key("a", now()), Timestamp::MIN).await.unwrap());
    assert!(!second.add_key(&key("b", now()), Timestamp::MIN).await.unwrap());
    let later = now() + Duration::from_hours(1);
    assert!(second.add_key(&key("c", later), later).await.unwrap());
    let ids: Vec<String> = store.keys().await.unwrap().into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["c", "a"]);
    assert_eq!(store.delete_keys("ES256", later).await.unwrap(), 1);
    assert_eq!(store.delete_keys("EdDSA", Timestamp::MAX).await.unwrap(), 0);
}
