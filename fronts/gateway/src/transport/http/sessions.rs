//! Sessions of Streamable HTTP, by id.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use capstan_model::Caller;

use crate::fairness::fair_share::{FairShares, Peer, Share};
use crate::transport::http::serve::SWEEPS;
use crate::{Client, View};

/// Number of random bytes in an id.
const KEY: usize = 18;

/// One peer may have all sessions divided by `PART`, and at least `LEAST`.
const PART: usize = 4;
const LEAST: usize = 64;

/// A session id, as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; KEY]);

/// All sessions.
pub(crate) struct Sessions {
    table: Mutex<HashMap<Key, Arc<Session>>>,
    shares: Arc<FairShares>,
    /// Counts the sweeps, as the clock for idle sessions.
    age: AtomicU32,
}

struct Session {
    client: Arc<Client>,
    _share: Share,
    /// Number of open requests and streams.
    uses: AtomicU32,
    /// The age at the end of the last use.
    used: AtomicU32,
}

/// A session in use. It does not count as idle.
pub(crate) struct SessionGuard {
    sessions: Arc<Sessions>,
    session: Arc<Session>,
}

/// There is no room for another session, or no randomness for its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many sessions; end one, or raise the gateway's session limit")]
pub(crate) struct Full;

// === impl Key ===

impl Key {
    pub(crate) fn new() -> Result<Self, Full> {
        let mut key = [0; KEY];
        // An id that can be guessed would be worse than none.
        getrandom::fill(&mut key).map_err(|_| Full)?;
        Ok(Self(key))
    }

    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut key = [0; KEY];
        if text.len() != KEY / 3 * 4 {
            return None;
        }
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut key).ok()?;
        (length == KEY).then_some(Self(key))
    }

    pub(crate) fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

// === impl Sessions ===

impl Sessions {
    pub(crate) fn new(max: usize) -> Self {
        let shares = FairShares::new(max, (max / PART).max(LEAST));
        Self { table: Mutex::default(), shares, age: AtomicU32::new(0) }
    }

    /// Reserves a slot for a session; streams of HTTP+SSE use these slots too.
    pub(crate) fn place(&self, peer: Peer) -> Result<Share, Full> {
        self.shares.take(peer).ok_or(Full)
    }

    /// Stores a client in its slot and returns the session id.
    pub(crate) fn add(&self, client: Arc<Client>, place: Share) -> Result<Key, Full> {
        let key = Key::new()?;
        let used = AtomicU32::new(self.age.load(Ordering::Relaxed));
        let session = Session { client, _share: place, uses: AtomicU32::new(0), used };
        self.table().insert(key, Arc::new(session));
        Ok(key)
    }

    /// The session with this id, if it belongs to this caller and this endpoint.
    ///
    /// Other callers must not learn that it exists.
    pub(crate) fn find(
        self: &Arc<Self>,
        key: Key,
        caller: &Caller,
        view: &View,
    ) -> Option<SessionGuard> {
        let session = Arc::clone(self.table().get(&key)?);
        let client = &session.client;
        if !client.caller().is_same(caller) || client.view() != view {
            return None;
        }
        session.uses.fetch_add(1, Ordering::Relaxed);
        Some(SessionGuard { sessions: Arc::clone(self), session })
    }

    pub(crate) fn remove(&self, key: Key) -> Option<Arc<Client>> {
        let removed = self.table().remove(&key);
        removed.map(|session| Arc::clone(&session.client))
    }

    /// Removes sessions that have been idle for too long. Called [`SWEEPS`] times in that time.
    pub(crate) fn sweep(&self) -> Vec<Arc<Client>> {
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

    pub(crate) fn clients(&self) -> Vec<Arc<Client>> {
        self.table().values().map(|session| Arc::clone(&session.client)).collect()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Key, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl SessionGuard ===

impl SessionGuard {
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.session.client
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.session.used.store(self.sessions.age.load(Ordering::Relaxed), Ordering::Relaxed);
        self.session.uses.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use capstan_hub::Session as Quota;
    use capstan_model::Front;
    use capstan_wire::Json;

    use super::*;
    use crate::{ClientContext, Revision};

    fn caller(subject: &str) -> Caller {
        Caller::remote(subject, Vec::new())
    }

    fn client(subject: &str) -> Arc<Client> {
        let caller = caller(subject);
        let context = ClientContext::new(Arc::new(caller), None, View::All);
        let (capabilities, quota) = (Json::empty_object(), Arc::new(Quota::new(None)));
        Arc::new(Client::new(Revision::V2025_11_25, capabilities, context, quota))
    }

    #[test]
    fn a_session_is_found_by_its_own_subject_at_its_own_endpoint_only() {
        let sessions = Arc::new(Sessions::new(2));
        let add = |subject| {
            let client = client(subject);
            let place = sessions.place(Peer::of(client.caller()))?;
            sessions.add(client, place)
        };
        let key = add("ann").unwrap();
        let other = View::One("files".parse().unwrap());
        assert!(sessions.find(key, &caller("ann"), &View::All).is_some());
        for (subject, view) in
            [("bob", &View::All), ("Ann", &View::All), ("", &View::All), ("ann", &other)]
        {
            assert!(sessions.find(key, &caller(subject), view).is_none(), "{subject} {view:?}");
        }
        let admin = Caller::remote("ann", vec!["admin".to_owned()]);
        assert!(sessions.find(key, &admin, &View::All).is_none(), "with other roles");
        let here = Caller::named("ann", Front::Gateway);
        assert!(sessions.find(key, &here, &View::All).is_none(), "another front");
        assert!(sessions.find(Key::new().unwrap(), &caller("ann"), &View::All).is_none());
        add("bob").unwrap();
        assert_eq!(add("eve").err(), Some(Full));
        sessions.remove(key);
        assert!(add("eve").is_ok());
    }

    #[test]
    fn a_session_ends_when_it_was_idle_too_long_and_not_while_it_is_used() {
        let sessions = Arc::new(Sessions::new(9));
        let ann = client("ann");
        let place = sessions.place(Peer::of(ann.caller())).unwrap();
        let key = sessions.add(ann, place).unwrap();
        let held = sessions.find(key, &caller("ann"), &View::All).unwrap();
        for _ in 0..SWEEPS * 3 {
            assert!(sessions.sweep().is_empty());
        }
        drop(held);
        for _ in 0..SWEEPS {
            assert!(sessions.sweep().is_empty());
        }
        assert_eq!(sessions.sweep().len(), 1);
        assert!(sessions.find(key, &caller("ann"), &View::All).is_none());
    }

    #[test]
    fn one_peer_has_a_part_of_all_sessions_and_no_more() {
        let sessions = Sessions::new(LEAST * PART * 2);
        let take = |subject: &str| sessions.place(Peer::of(client(subject).caller()));
        let anns: Vec<Share> = (0..LEAST * 2).map(|_| take("ann").unwrap()).collect();
        assert_eq!(take("ann").err(), Some(Full));
        assert!(take("bob").is_ok());
        drop(anns);
        assert!(take("ann").is_ok());
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
