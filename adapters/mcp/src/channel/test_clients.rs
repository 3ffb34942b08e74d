//! Clients for tests of requests and replies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capstan_hub::ports::{Ask, AuditLog, BoxFuture, ClientSide, Clock, Notice, Unanswered, Wishes};
use capstan_hub::{BackChannel, ClientIdentity, Entry, HubBuilder};
use capstan_policy::PolicySource;
use capstan_wire::{Json, compose};
use jiff::Timestamp;

/// A client that is never asked anything.
pub(crate) struct TestClient {
    /// Tells it apart from other clients: its capabilities are this number.
    pub(crate) number: u64,
    /// True while it accepts messages about its task.
    pub(crate) outlives_answer: AtomicBool,
}

/// A clock and an audit log that are never used.
struct Unused;

// === impl TestClient ===

impl TestClient {
    pub(crate) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, outlives_answer: AtomicBool::new(true) })
    }

    /// The way back to this client.
    pub(crate) fn back(self: &Arc<Self>, identity: ClientIdentity) -> BackChannel {
        let policy = Arc::new(PolicySource::default().compile());
        let hub = HubBuilder::new(policy, Arc::new(Unused), Arc::new(Unused)).build();
        let client = Arc::<Self>::clone(self);
        BackChannel::new(&hub, &"s".parse().unwrap(), client, identity)
    }
}

impl ClientSide for TestClient {
    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        unreachable!()
    }

    fn notice(&self, _: Notice) {}

    fn capabilities(&self) -> Option<Json> {
        Some(compose::number(self.number))
    }

    fn wishes(&self) -> Wishes {
        Wishes::PERSON
    }

    fn outlives_answer(&self) -> bool {
        self.outlives_answer.load(Ordering::Relaxed)
    }
}

/// The number of the client behind a back channel.
pub(crate) fn number(back: &BackChannel) -> u64 {
    back.capabilities().unwrap().read().unwrap()
}

// === impl Unused ===

impl AuditLog for Unused {
    fn record(&self, _: Entry) {
        unreachable!()
    }
}

impl Clock for Unused {
    fn now(&self) -> Timestamp {
        unreachable!()
    }

    fn monotonic(&self) -> Duration {
        unreachable!()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        unreachable!()
    }
}
