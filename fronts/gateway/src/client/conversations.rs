//! Quotas and remembered answers of clients without a session, by caller and client name.
//!
//! An entry expires when it is idle. An answer holds only for the same name at the same address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::Session;

use crate::client::Party;
use crate::fairness::client_names::{ClientNetwork, NameCount};

/// A conversation expires after this time without a request.
const IDLE: Duration = Duration::from_mins(30);

/// Maximum number of conversations; above it, the least recently used one is removed.
const MAX_CONVERSATIONS: usize = 10_000;

/// Conversations of clients without a session.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<HashMap<Parties, Kept>>);

/// Caller and client of a conversation: the key of the map.
type Parties = (String, Whose);

/// The clients that share one conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Whose {
    /// Clients with this name, for their quota.
    Named(Option<String>),
    /// Clients with this name from this network, for their remembered answers.
    At(Option<String>, ClientNetwork),
    /// All clients of this network beyond the names that count individually, for their quota.
    Among(ClientNetwork),
}

struct Kept {
    session: Arc<Session>,
    used: Duration,
}

// === impl Conversations ===

impl Conversations {
    /// Returns the conversation of a party and client name; creates it if needed.
    pub(crate) fn of(
        &self,
        party: &Party,
        client: Option<String>,
        now: Duration,
        begin: impl FnOnce() -> Session,
    ) -> Arc<Session> {
        let subject = &party.caller.subject;
        match (party.counted, party.caller.from.map(ClientNetwork::of)) {
            // These clients cannot be told apart: they share one quota, and no answer is
            // remembered.
            (NameCount::Among(place), _) => {
                Arc::new(self.find(subject, Whose::Among(place), now, begin).beside())
            }
            (NameCount::Alone, None) => self.find(subject, Whose::Named(client), now, begin),
            (NameCount::Alone, Some(place)) => {
                let named = self.find(subject, Whose::Named(client.clone()), now, begin);
                self.find(subject, Whose::At(client, place), now, || named.beside())
            }
        }
    }

    /// Removes conversations that have been idle for too long.
    pub(crate) fn sweep(&self, now: Duration) {
        self.kept().retain(|_, kept| now.saturating_sub(kept.used) < IDLE);
    }

    fn find(
        &self,
        subject: &str,
        whose: Whose,
        now: Duration,
        begin: impl FnOnce() -> Session,
    ) -> Arc<Session> {
        let mut kept = self.kept();
        let key = (subject.to_owned(), whose);
        if let Some(known) = kept.get_mut(&key) {
            known.used = now;
            return Arc::clone(&known.session);
        }
        if kept.len() >= MAX_CONVERSATIONS {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.remove(&oldest));
        }
        let session = Arc::new(begin());
        kept.insert(key, Kept { session: Arc::clone(&session), used: now });
        drop(kept);
        session
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Parties, Kept>> {
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
        let party = Party { counted, ..Party::new(Arc::new(caller), None, View::All) };
        let (client, now) = (client.map(str::to_owned), Duration::from_secs(now));
        conversations.of(&party, client, now, || Session::new(Some(1)))
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
