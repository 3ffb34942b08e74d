//! Quotas and remembered answers of clients without a session, by caller and client name.
//!
//! An entry expires when it is idle. An answer holds only for the same name at the same address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::Session;

use crate::client::ClientContext;
use crate::fairness::client_names::{ClientNetwork, NameCount};

/// A conversation expires after this time without a request.
const IDLE: Duration = Duration::from_mins(30);

/// Maximum number of conversations; above it, the least recently used one is removed.
const MAX_CONVERSATIONS: usize = 10_000;

/// Conversations of clients without a session.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<HashMap<Key, Entry>>);

/// Caller and client of a conversation: the key of the map.
type Key = (String, ClientGroup);

/// The clients that share one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ClientGroup {
    /// Clients with this name, for their quota.
    Named(Option<String>),
    /// Clients with this name from this network, for their remembered answers.
    At(Option<String>, ClientNetwork),
    /// All clients of this network beyond the names that count individually, for their quota.
    Among(ClientNetwork),
}

struct Entry {
    session: Arc<Session>,
    used: Duration,
}

// === impl Conversations ===

impl Conversations {
    /// Returns the conversation of a context and client name; creates it if needed.
    pub(crate) fn of(
        &self,
        context: &ClientContext,
        client: Option<String>,
        now: Duration,
        begin: impl FnOnce() -> Session,
    ) -> Arc<Session> {
        let subject = &context.caller.subject;
        match (context.counted, context.caller.from.map(ClientNetwork::of)) {
            // These clients cannot be told apart: they share one quota, and no answer is
            // remembered.
            (NameCount::Among(place), _) => {
                Arc::new(self.find(subject, ClientGroup::Among(place), now, begin).beside())
            }
            // An authenticated caller has one quota, whatever its clients call themselves.
            (NameCount::Alone, None) if context.caller.is_authenticated() => {
                self.find(subject, ClientGroup::Named(None), now, begin)
            }
            (NameCount::Alone, None) => self.find(subject, ClientGroup::Named(client), now, begin),
            (NameCount::Alone, Some(place)) => {
                let named = self.find(subject, ClientGroup::Named(client.clone()), now, begin);
                self.find(subject, ClientGroup::At(client, place), now, || named.beside())
            }
        }
    }

    /// Removes conversations that have been idle for too long.
    pub(crate) fn sweep(&self, now: Duration) {
        self.entries().retain(|_, entry| now.saturating_sub(entry.used) < IDLE);
    }

    fn find(
        &self,
        subject: &str,
        group: ClientGroup,
        now: Duration,
        begin: impl FnOnce() -> Session,
    ) -> Arc<Session> {
        let mut entries = self.entries();
        let key = (subject.to_owned(), group);
        if let Some(known) = entries.get_mut(&key) {
            known.used = now;
            return Arc::clone(&known.session);
        }
        if entries.len() >= MAX_CONVERSATIONS {
            let oldest =
                entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let session = Arc::new(begin());
        entries.insert(key, Entry { session: Arc::clone(&session), used: now });
        drop(entries);
        session
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::{Caller, Front};

    use super::*;
    use crate::client::View;

    fn of(
        conversations: &Conversations,
        caller: Caller,
        client: Option<&str>,
        counted: NameCount,
        now: u64,
    ) -> Arc<Session> {
        let context =
            ClientContext { counted, ..ClientContext::new(Arc::new(caller), None, View::All) };
        let (client, now) = (client.map(str::to_owned), Duration::from_secs(now));
        conversations.of(&context, client, now, || Session::new(Some(1)))
    }

    #[test]
    fn one_conversation_for_caller_and_client_until_both_are_quiet() {
        let conversations = Conversations::default();
        let of = |subject, client: Option<&str>, now: u64| {
            let caller = Caller::named(subject, Front::Gateway);
            of(&conversations, caller, client, NameCount::Alone, now)
        };
        let first = of("ann", Some("editor"), 0);
        assert!(Arc::ptr_eq(&first, &of("ann", Some("editor"), 10)));
        for other in [of("ann", None, 0), of("ann", Some("chat"), 0), of("bob", Some("editor"), 0)]
        {
            assert!(!Arc::ptr_eq(&first, &other));
        }
        conversations.sweep(Duration::from_secs(9) + IDLE);
        assert!(Arc::ptr_eq(&first, &of("ann", Some("editor"), 10)));
        conversations.sweep(Duration::from_secs(10) + IDLE);
        assert!(!Arc::ptr_eq(&first, &of("ann", Some("editor"), 2000)));
    }

    /// Remembered answers belong to one conversation.
    #[test]
    fn strangers_share_a_conversation_only_by_one_name_at_one_address_that_counts_for_itself() {
        let conversations = Conversations::default();
        let of = |client, address: &str, counted| {
            let caller = Caller::stranger(Some(address.parse().unwrap()));
            of(&conversations, caller, Some(client), counted, 0)
        };
        let first = of("editor", "10.0.0.1", NameCount::Alone);
        assert!(Arc::ptr_eq(&first, &of("editor", "10.0.0.1", NameCount::Alone)));
        for (client, address) in [("editor", "10.0.0.2"), ("chat", "10.0.0.1")] {
            assert!(!Arc::ptr_eq(&first, &of(client, address, NameCount::Alone)), "{client}");
        }
        let among = NameCount::Among(ClientNetwork::of("10.0.0.1".parse().unwrap()));
        let ninth = of("ninth", "10.0.0.1", among);
        for client in ["ninth", "tenth", "editor"] {
            let other = of(client, "10.0.0.1", among);
            assert!(!Arc::ptr_eq(&ninth, &other) && !Arc::ptr_eq(&first, &other), "{client}");
        }
    }
}
