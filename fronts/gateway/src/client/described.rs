//! The client that the modern requests of one connection describe.
//!
//! Each modern request describes its client, and nearly all requests of a connection do so with the
//! same bytes. The last description is remembered, so that the client behind it is looked up once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::Session;
use capstan_model::Caller;
use capstan_wire::{Json, object};

use crate::fairness::fair_share::Peer;
use crate::protocol::request_meta::RequestMeta;

/// The longest description that is remembered, in bytes.
const MAX_REMEMBERED: usize = 2048;

/// Time after which a remembered client is looked up again, so that its limits do not expire while
/// it is used. It is far below the time after which they do.
const FRESH: Duration = Duration::from_secs(1);

/// The last description on a connection.
#[derive(Default)]
pub(crate) struct LastDescription(Mutex<Option<Description>>);

/// A description, and the client that it stands for.
struct Description {
    /// The `_meta` of the request.
    text: Json,
    meta: Arc<RequestMeta>,
    client: Option<FoundClient>,
}

/// A client that was looked up by its description.
#[derive(Clone)]
pub(crate) struct FoundClient {
    /// The caller of the request, before the client's name was added.
    pub(crate) base: Arc<Caller>,
    /// The caller with the client's name.
    pub(crate) caller: Arc<Caller>,
    /// The key of its fair shares.
    pub(crate) peer: Peer,
    /// The session that its quota counts for.
    pub(crate) session: Arc<Session>,
    /// The time of the look-up.
    pub(crate) since: Duration,
}

// === impl LastDescription ===

impl LastDescription {
    /// Reads a `_meta`, unless it is the same as the last one.
    pub(crate) fn read(&self, meta: &Json) -> Arc<RequestMeta> {
        let mut last = self.last();
        if let Some(last) = last.as_ref().filter(|last| last.text == *meta) {
            return Arc::clone(&last.meta);
        }
        if meta.len() > MAX_REMEMBERED {
            return Arc::new(RequestMeta::read(meta));
        }
        // Copied, so that it does not keep the buffer of its connection.
        let text = meta.detached();
        let meta = Arc::new(RequestMeta::read_once(&text));
        // A token or a trace is new in each request; the client is not.
        let client = last.take().filter(|last| last.meta.client == meta.client);
        let client = client.and_then(|last| last.client);
        *last = Some(Description { text, meta: Arc::clone(&meta), client });
        meta
    }

    /// Takes the last `_meta` out of the params of a call, if it only describes the client and they
    /// have the same. Returns what was read of it, and the rest of the params.
    ///
    /// Servers get descriptions of their own, so that the steps of a call need not check and copy
    /// this one.
    pub(crate) fn cut(&self, params: &Json) -> Option<(Arc<RequestMeta>, Json)> {
        let last = self.last();
        let cut = last.as_ref().filter(|last| last.meta.only_describes).and_then(|last| {
            let rest = object::cut_known(params, "_meta", &last.text)?;
            Some((Arc::clone(&last.meta), rest))
        });
        drop(last);
        cut
    }

    /// Returns the client that a caller described by this last `_meta`, if it was looked up a
    /// moment ago.
    pub(crate) fn client(
        &self,
        meta: &Arc<RequestMeta>,
        caller: &Arc<Caller>,
        now: Duration,
    ) -> Option<FoundClient> {
        let last = self.last();
        let same = last.as_ref().filter(|last| Arc::ptr_eq(&last.meta, meta));
        let client = same.and_then(|last| last.client.clone());
        drop(last);
        client.filter(|client| client.is_of(caller, now))
    }

    /// Remembers the client that this last `_meta` describes.
    pub(crate) fn remember(&self, meta: &Arc<RequestMeta>, client: FoundClient) {
        if let Some(last) = self.last().as_mut().filter(|last| Arc::ptr_eq(&last.meta, meta)) {
            last.client = Some(client);
        }
    }

    fn last(&self) -> MutexGuard<'_, Option<Description>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl FoundClient ===

impl FoundClient {
    fn is_of(&self, caller: &Arc<Caller>, now: Duration) -> bool {
        let is_same = Arc::ptr_eq(&self.base, caller) || self.base == *caller;
        is_same && now.saturating_sub(self.since) < FRESH
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::Front;

    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn meta(client: &str, rest: &str) -> Json {
        json(&format!(r#"{{"io.modelcontextprotocol/clientInfo":{{"name":"{client}"}}{rest}}}"#))
    }

    fn found(base: &Arc<Caller>, since: Duration) -> FoundClient {
        let (caller, session) = (Arc::clone(base), Arc::new(Session::new(None)));
        FoundClient { base: Arc::clone(base), peer: Peer::of(&caller), caller, session, since }
    }

    #[test]
    fn a_description_is_read_once_while_it_stays_the_same() {
        let last = LastDescription::default();
        let first = last.read(&meta("a", ""));
        assert!(Arc::ptr_eq(&first, &last.read(&meta("a", ""))));
        let other = last.read(&meta("a", r#","progressToken":1"#));
        assert_eq!(other.progress, Some(json("1")));
        assert_eq!(last.read(&meta("a", "")).progress, None);
        let long = meta("a", &format!(r#","x":"{}""#, "y".repeat(MAX_REMEMBERED)));
        let before = last.read(&meta("a", ""));
        assert!(!Arc::ptr_eq(&last.read(&long), &last.read(&long)), "too long to be kept");
        assert!(Arc::ptr_eq(&before, &last.read(&meta("a", ""))));
    }

    #[test]
    fn only_the_last_description_is_taken_out_of_params_and_only_if_it_has_nothing_else() {
        let last = LastDescription::default();
        let params = |meta: &Json| json(&format!(r#"{{"name":"t","_meta":{meta}}}"#));
        let (plain, token) = (meta("a", ""), meta("a", r#","progressToken":1"#));
        assert!(last.cut(&params(&plain)).is_none(), "there is none");
        let read = last.read(&plain);
        let (found, rest) = last.cut(&params(&plain)).unwrap();
        assert!(Arc::ptr_eq(&found, &read));
        assert_eq!(rest.as_str(), r#"{"name":"t"}"#);
        assert!(last.cut(&params(&token)).is_none(), "another one");
        last.read(&token);
        assert!(last.cut(&params(&token)).is_none(), "it is more than a description");
    }

    #[test]
    fn a_client_is_looked_up_again_for_another_name_another_caller_and_after_a_while() {
        let (last, now) = (LastDescription::default(), Duration::from_secs(10));
        let ann = Arc::new(Caller::named("ann", Front::Gateway));
        let same = Arc::new(Caller::named("ann", Front::Gateway));
        let bob = Arc::new(Caller::named("bob", Front::Gateway));
        let read = last.read(&meta("a", ""));
        assert!(last.client(&read, &ann, now).is_none());
        last.remember(&read, found(&ann, now));
        assert!(last.client(&read, &ann, now).is_some());
        assert!(last.client(&read, &same, now).is_some());
        assert!(last.client(&read, &bob, now).is_none());
        assert!(last.client(&read, &ann, now + FRESH).is_none());
        let with_token = last.read(&meta("a", r#","progressToken":1"#));
        assert!(last.client(&with_token, &ann, now).is_some(), "the client is the same");
        assert!(last.client(&read, &ann, now).is_none(), "no longer the last description");
        let other = last.read(&meta("b", ""));
        assert!(last.client(&other, &ann, now).is_none());
        let again = last.read(&meta("a", ""));
        assert!(last.client(&again, &ann, now).is_none());
    }
}
