//! A store in memory, with the semantics that the port promises.

use std::collections::BTreeMap;
use std::sync::Mutex;

use capstan_hub::ports::{
    BoxFuture, ClientStore, GrantStore, KeyStore, StoreError, StoredClient, StoredCode,
    StoredGrant, StoredKey, StoredToken, StoredUser, TakenCode, UserStore,
};
use capstan_model::Secret;
use futures::FutureExt as _;
use futures::future::ready;
use jiff::Timestamp;

type Answer<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// The state.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) clients: BTreeMap<String, StoredClient>,
    codes: BTreeMap<String, (StoredCode, Option<Timestamp>)>,
    pub(crate) grants: BTreeMap<String, StoredGrant>,
    tokens: BTreeMap<String, StoredToken>,
    users: BTreeMap<String, StoredUser>,
    pub(crate) keys: Vec<StoredKey>,
}

/// A store in memory.
#[derive(Default)]
pub(crate) struct MemoryStore(Mutex<State>);

impl MemoryStore {
    pub(crate) fn with<'a, T: Send + 'a>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    fn answer<'a, T: Send + 'a>(&self, act: impl FnOnce(&mut State) -> T) -> Answer<'a, T> {
        ready(Ok(self.with(act))).boxed()
    }
}

impl ClientStore for MemoryStore {
    fn add_client<'a>(&'a self, client: &'a StoredClient, most: u32) -> Answer<'a, bool> {
        self.answer(|state| {
            let is_new = !state.clients.contains_key(&client.id);
            let fits = is_new && state.clients.len() < usize::try_from(most).unwrap();
            if fits {
                state.clients.insert(client.id.clone(), client.clone());
            }
            fits
        })
    }

    fn client<'a>(&'a self, id: &'a str, now: Timestamp) -> Answer<'a, Option<StoredClient>> {
        self.answer(|state| state.clients.get(id).filter(|c| c.expires_at > now).cloned())
    }

    fn clients(&self, _: Timestamp, _: u32) -> Answer<'_, Vec<StoredClient>> {
        self.answer(|state| state.clients.values().cloned().collect())
    }

    fn use_client<'a>(
        &'a self,
        id: &'a str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Answer<'a, ()> {
        self.answer(|state| {
            if let Some(client) = state.clients.get_mut(id) {
                (client.used_at, client.expires_at) = (now, expires_at);
            }
        })
    }

    fn remove_client<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        self.answer(|state| {
            state.grants.retain(|_, grant| grant.client != id);
            state.clients.remove(id).is_some()
        })
    }
}

impl GrantStore for MemoryStore {
    fn add_code<'a>(&'a self, code: &'a StoredCode, grant: &'a StoredGrant) -> Answer<'a, ()> {
        self.answer(|state| {
            state.grants.insert(grant.id.clone(), grant.clone());
            state.codes.insert(code.digest.clone(), (code.clone(), None));
        })
    }

    fn take_code<'a>(&'a self, digest: &'a str, now: Timestamp) -> Answer<'a, Option<TakenCode>> {
        self.answer(|state| {
            let (code, taken) = state.codes.get_mut(digest)?;
            let grant = state.grants.get(&code.grant)?.clone();
            if code.expires_at <= now {
                return None;
            }
            let taken_before = *taken;
            taken.get_or_insert(now);
            Some(TakenCode { code: code.clone(), grant, taken_before })
        })
    }

    fn add_token<'a>(&'a self, token: &'a StoredToken) -> Answer<'a, bool> {
        self.answer(|state| match state.grants.get_mut(&token.grant) {
            Some(grant) if !grant.revoked => {
                grant.expires_at = token.expires_at;
                state.tokens.insert(token.digest.clone(), token.clone());
                true
            }
            _ => false,
        })
    }

    fn token<'a>(&'a self, digest: &'a str) -> Answer<'a, Option<(StoredToken, StoredGrant)>> {
        self.answer(|state| {
            let token = state.tokens.get(digest)?.clone();
            let grant = state.grants.get(&token.grant)?.clone();
            Some((token, grant))
        })
    }

    fn rotate<'a>(
        &'a self,
        digest: &'a str,
        next: &'a StoredToken,
        now: Timestamp,
    ) -> Answer<'a, bool> {
        self.answer(|state| {
            let is_live = state.grants.get(&next.grant).is_some_and(|grant| !grant.revoked);
            match state.tokens.get_mut(digest) {
                Some(old) if is_live && old.used_at.is_none() && old.expires_at > now => {
                    old.used_at = Some(now);
                    state.tokens.insert(next.digest.clone(), next.clone());
                    true
                }
                _ => false,
            }
        })
    }

    fn find_grant<'a>(&'a self, id: &'a str) -> Answer<'a, Option<StoredGrant>> {
        self.answer(|state| state.grants.get(id).cloned())
    }

    fn revoke_grant<'a>(&'a self, id: &'a str) -> Answer<'a, bool> {
        self.answer(|state| {
            let grant = state.grants.get_mut(id).filter(|grant| !grant.revoked);
            grant.map(|grant| grant.revoked = true).is_some()
        })
    }

    fn revoke_subject<'a>(&'a self, subject: &'a str) -> Answer<'a, u64> {
        self.answer(|state| {
            let grants = state.grants.values_mut().filter(|grant| grant.subject == subject);
            grants.map(|grant| grant.revoked = true).count() as u64
        })
    }

    fn delete_expired(&self, now: Timestamp) -> Answer<'_, u64> {
        self.answer(|state| {
            state.codes.retain(|_, (code, _)| code.expires_at > now);
            state.tokens.retain(|_, token| token.expires_at > now);
            state.grants.retain(|_, grant| grant.expires_at > now);
            state.clients.retain(|_, client| client.expires_at > now);
            0
        })
    }
}

impl UserStore for MemoryStore {
    fn add_user<'a>(&'a self, user: &'a StoredUser) -> Answer<'a, bool> {
        self.answer(|state| state.users.insert(user.name.clone(), user.clone()).is_none())
    }

    fn user<'a>(&'a self, name: &'a str) -> Answer<'a, Option<StoredUser>> {
        self.answer(|state| state.users.get(name).cloned())
    }

    fn users(&self, _: u32) -> Answer<'_, Vec<StoredUser>> {
        self.answer(|state| state.users.values().cloned().collect())
    }

    fn set_password<'a>(&'a self, name: &'a str, password: &'a Secret<String>) -> Answer<'a, bool> {
        self.answer(|state| {
            let user = state.users.get_mut(name);
            user.map(|user| user.password = password.clone()).is_some()
        })
    }

    fn remove_user<'a>(&'a self, name: &'a str) -> Answer<'a, bool> {
        self.answer(|state| state.users.remove(name).is_some())
    }
}

impl KeyStore for MemoryStore {
    fn add_key<'a>(&'a self, key: &'a StoredKey, after: Timestamp) -> Answer<'a, bool> {
        self.answer(|state| {
            let same = |old: &StoredKey| old.usage == key.usage && old.created_at >= after;
            let is_new = !state.keys.iter().any(same);
            if is_new {
                state.keys.insert(0, key.clone());
            }
            is_new
        })
    }

    fn keys(&self) -> Answer<'_, Vec<StoredKey>> {
        self.answer(|state| state.keys.clone())
    }

    fn delete_keys<'a>(&'a self, usage: &'a str, before: Timestamp) -> Answer<'a, u64> {
        self.answer(|state| {
            let is_kept = |key: &StoredKey| key.usage != usage || key.created_at >= before;
            state.keys.retain(is_kept);
            0
        })
    }
}
