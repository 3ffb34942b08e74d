//! What a quota counts for, and what answers are remembered for, when clients come without a session:
//! caller and client name, until both have been quiet for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use capstan_hub::Session;

use crate::names::Place;

/// After so long without a request a conversation is over.
const IDLE: Duration = Duration::from_mins(30);

/// Conversations that are kept; when there are more, the one that was quiet longest is over.
const MAX_CONVERSATIONS: usize = 10_000;

/// Conversations of clients without a session.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<HashMap<Parties, Kept>>);

/// A caller, and which of its clients.
type Parties = (String, Whose);

/// Whose conversation it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// That of clients of this name.
    Named(Option<String>),
    /// That of all from there who come under ever new names.
    Among(Place),
}

struct Kept {
    session: Arc<Session>,
    used: Duration,
}

// === impl Conversations ===

impl Conversations {
    /// The conversation of these two, which may begin now.
    pub(crate) fn of(
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

    /// Ends what has been quiet for too long.
    pub(crate) fn sweep(&self, now: Duration) {
        self.kept().retain(|_, kept| now.saturating_sub(kept.used) < IDLE);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Parties, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_conversation_for_caller_and_client_until_both_are_quiet() {
        let conversations = Conversations::default();
        let of = |subject, client: Option<&str>, now: u64| {
            let (now, whose) = (Duration::from_secs(now), Whose::Named(client.map(str::to_owned)));
            conversations.of(subject, whose, now, || Session::new(Some(1)))
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
}
