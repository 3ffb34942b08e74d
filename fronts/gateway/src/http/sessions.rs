//! The clients of Streamable HTTP that have shaken hands, by the id that each was given.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::serve::SWEEPS;
use crate::{Client, View};

/// Random bytes of an id.
const KEY: usize = 18;

/// An id, as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key([u8; KEY]);

/// All sessions.
pub(super) struct Sessions {
    table: Mutex<HashMap<Key, Arc<Session>>>,
    max: usize,
    /// Counts the sweeps; the clock by which sessions grow old.
    age: AtomicU32,
}

struct Session {
    client: Arc<Client>,
    /// Requests and streams that are open.
    uses: AtomicU32,
    /// The age at which the last of them ended.
    used: AtomicU32,
}

/// A session that is in use, and not idle for as long.
pub(super) struct Held {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
}

/// There is no room for another session, or no randomness for its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are too many sessions")]
pub(super) struct Full;

// === impl Key ===

impl Key {
    pub(super) fn new() -> Result<Self, Full> {
        let mut key = [0; KEY];
        // An id that can be guessed is worse than none.
        getrandom::fill(&mut key).map_err(|_| Full)?;
        Ok(Self(key))
    }

    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut key = [0; KEY];
        if text.len() != KEY / 3 * 4 {
            return None;
        }
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut key).ok()?;
        (length == KEY).then_some(Self(key))
    }

    pub(super) fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

// === impl Sessions ===

impl Sessions {
    pub(super) fn new(max: usize) -> Self {
        Self { table: Mutex::default(), max, age: AtomicU32::new(0) }
    }

    /// Whether another would find no room.
    pub(super) fn is_full(&self) -> bool {
        self.table().len() >= self.max
    }

    /// Keeps a client, and says by which id.
    pub(super) fn add(&self, client: Arc<Client>) -> Result<Key, Full> {
        let key = Key::new()?;
        let used = AtomicU32::new(self.age.load(Ordering::Relaxed));
        let session = Arc::new(Session { client, uses: AtomicU32::new(0), used });
        let mut table = self.table();
        if table.len() >= self.max {
            return Err(Full);
        }
        table.insert(key, session);
        drop(table);
        Ok(key)
    }

    /// The session of that id, if it is that subject's and belongs to that endpoint. Whose it is
    /// otherwise must not be learnt.
    pub(super) fn find(self: &Arc<Self>, key: Key, subject: &str, view: &View) -> Option<Held> {
        let session = Arc::clone(self.table().get(&key)?);
        let client = &session.client;
        if client.caller().subject != subject || client.view() != view {
            return None;
        }
        session.uses.fetch_add(1, Ordering::Relaxed);
        Some(Held { sessions: Arc::clone(self), session })
    }

    pub(super) fn remove(&self, key: Key) -> Option<Arc<Client>> {
        let removed = self.table().remove(&key);
        removed.map(|session| Arc::clone(&session.client))
    }

    /// Takes out those that have been idle too long. Called [`SWEEPS`] times in that time.
    pub(super) fn sweep(&self) -> Vec<Arc<Client>> {
        let age = self.age.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let mut old = Vec::new();
        self.table().retain(|_, session| {
            let idle = age.wrapping_sub(session.used.load(Ordering::Relaxed));
            let keep = session.uses.load(Ordering::Relaxed) > 0 || idle <= SWEEPS;
            if !keep {
                old.push(Arc::clone(&session.client));
            }
            keep
        });
        old
    }

    pub(super) fn clients(&self) -> Vec<Arc<Client>> {
        self.table().values().map(|session| Arc::clone(&session.client)).collect()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Held ===

impl Held {
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.session.client
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.session.used.store(self.sessions.age.load(Ordering::Relaxed), Ordering::Relaxed);
        self.session.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use capstan_hub::Session as Quota;
    use capstan_model::{Caller, Front};
    use capstan_wire::Json;

    use super::*;
    use crate::{Party, Revision};

    fn client(subject: &str) -> Arc<Client> {
        let caller = Caller::named(subject, Front::Gateway);
        let party = Party::new(Arc::new(caller), None, View::All);
        let (able, quota) = (Json::empty_object(), Arc::new(Quota::new(None)));
        Arc::new(Client::new(Revision::V2025_11_25, able, party, quota))
    }

    #[test]
    fn a_session_is_found_by_its_own_subject_at_its_own_endpoint_only() {
        let sessions = Arc::new(Sessions::new(2));
        let key = sessions.add(client("ann")).unwrap();
        let other = View::One("files".parse().unwrap());
        assert!(sessions.find(key, "ann", &View::All).is_some());
        for (subject, view) in
            [("bob", &View::All), ("Ann", &View::All), ("", &View::All), ("ann", &other)]
        {
            assert!(sessions.find(key, subject, view).is_none(), "{subject} {view:?}");
        }
        assert!(sessions.find(Key::new().unwrap(), "ann", &View::All).is_none());
        sessions.add(client("bob")).unwrap();
        assert!(sessions.is_full() && sessions.add(client("eve")).is_err());
    }

    #[test]
    fn a_session_ends_when_it_was_idle_too_long_and_not_while_it_is_used() {
        let sessions = Arc::new(Sessions::new(9));
        let key = sessions.add(client("ann")).unwrap();
        let held = sessions.find(key, "ann", &View::All).unwrap();
        for _ in 0..SWEEPS * 3 {
            assert!(sessions.sweep().is_empty());
        }
        drop(held);
        for _ in 0..SWEEPS {
            assert!(sessions.sweep().is_empty());
        }
        assert_eq!(sessions.sweep().len(), 1);
        assert!(sessions.find(key, "ann", &View::All).is_none());
    }

    #[test]
    fn an_id_is_long_url_safe_and_comes_back() {
        let key = Key::new().unwrap();
        let text = key.to_text();
        assert_eq!(text.len(), 24);
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert!(Key::parse(text.as_bytes()) == Some(key));
        for bad in
            ["", "x", "AAAAAAAAAAAAAAAAAAAAAAA", &format!("{text}A"), "########################"]
        {
            assert!(Key::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
