//! A hub with one server, for the tests of adapters.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::{About, AuditLog, Backend, Item, Lane, Listing, Reply};
use capstan_hub::{Call, Hub, HubBuilder, Requester};
use capstan_model::{CallError, Caller, Front, Target, Trust};
use capstan_wire::Json;
use tokio::time::{Instant, sleep};

use crate::fakes::{AuditTrail, TestClock, TestPerson, allow_all};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(30);

/// A hub with one server. Everything is allowed.
pub struct SingleServerHub<S> {
    /// The server.
    pub server: Arc<S>,
    /// The hub.
    pub hub: Arc<Hub>,
    /// The person on whose behalf calls are made.
    pub person: Arc<TestPerson>,
    /// The audit log.
    pub log: Arc<AuditTrail>,
}

/// Waits until the condition holds.
///
/// # Panics
/// If it does not hold in time.
#[track_caller]
pub fn until(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let end = Instant::now() + LIMIT;
        while !condition() {
            assert!(Instant::now() < end, "{caller}: did not come true in time");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

// === impl SingleServerHub ===

impl<S: Backend + 'static> SingleServerHub<S> {
    /// A hub with this server, and a person who gives this answer to all questions.
    pub fn new(server: S, trust: Trust, reply: Reply) -> Self {
        let (server, log) = (Arc::new(server), Arc::<AuditTrail>::default());
        let policy = allow_all([server.name()], trust).compile();
        let audit = Arc::clone(&log) as Arc<dyn AuditLog>;
        let mut hub = HubBuilder::new(Arc::new(policy), audit, Arc::new(TestClock::default()));
        hub.add(Arc::<S>::clone(&server));
        let (hub, person) = (Arc::new(hub.build()), Arc::new(TestPerson::new(reply)));
        Self { server, hub, person, log }
    }

    /// Connects if need be, and returns the server's description.
    pub async fn about(&self) -> Result<Arc<About>, CallError> {
        Arc::clone(&self.server).connect(Lane::ANY).await?;
        Ok(self.server.about().unwrap_or_default())
    }

    /// Connects if need be, and returns one of the server's lists.
    pub async fn listing(&self, listing: Listing) -> Result<Arc<[Item]>, CallError> {
        Arc::clone(&self.server).connect(Lane::ANY).await?.home.list(listing).await
    }

    /// Connects if need be, and returns the names in one of the server's lists.
    pub async fn names(&self, listing: Listing) -> Result<Vec<String>, CallError> {
        let items = self.listing(listing).await?;
        Ok(items.iter().map(|item| item.name.clone()).collect())
    }

    /// Calls a tool, and returns the whole result.
    pub async fn call_tool(&self, tool: &str, arguments: &Json) -> Result<Json, CallError> {
        let target = Target::tool(format!("{}__{tool}", self.server.name()));
        self.send(Call::new(Caller::operator(Front::Cli), target, Some(arguments))).await
    }

    /// Makes a call on behalf of the person, and returns the whole result.
    pub async fn send(&self, call: Call) -> Result<Json, CallError> {
        self.send_in(Lane::ANY, call).await
    }

    /// Makes a call in this lane, and returns the whole result.
    pub async fn send_in(&self, lane: Lane, call: Call) -> Result<Json, CallError> {
        let client = Arc::<TestPerson>::clone(&self.person);
        let requester = Requester { client, lane, ..Requester::unattended() };
        let screened = self.hub.call(&self.hub.session(), call, requester).await?;
        Ok(screened.result().clone())
    }

    /// The state in one line.
    pub fn state(&self) -> String {
        let state = self.server.state();
        let reason = state.reason().map_or(String::new(), |reason| format!(": {reason}"));
        format!("{}{reason}", state.name().as_str())
    }
}
