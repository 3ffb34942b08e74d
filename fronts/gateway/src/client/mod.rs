//! A connected client; a modern client lasts for one request.
//!
//! [`identity`] reads what a client declares about itself; [`conversations`] keeps quotas of
//! clients without a session.

pub(crate) mod identity;
pub(crate) mod conversations;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use capstan_hub::Session;
use capstan_model::{Caller, ServerName};
use capstan_wire::{Json, Message, Reply, RequestId, object};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::exchange::Task;
use crate::fairness::client_names::NameCount;
use crate::fairness::fair_share::Peer;
use crate::protocol::capabilities;
use crate::protocol::era::Era;
use crate::protocol::revision::Revision;

/// Messages to a client that belong to no request and wait to be sent; more are left out.
const INBOX: usize = 256;

/// Requests of one client that are worked on at the same time.
pub const MAX_RUNNING: usize = 1024;

/// Resources that one client may subscribe to.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1024;

/// A client of the gateway.
pub struct Client {
    /// Identifies the client.
    pub(crate) number: u64,
    pub(crate) revision: Revision,
    /// Chosen at first contact.
    pub(crate) era: Era,
    pub(crate) view: View,
    pub(crate) caller: Arc<Caller>,
    /// The key of its fair shares.
    pub(crate) peer: Peer,
    /// The session that its quota counts for.
    pub(crate) session: Arc<Session>,
    /// Its capabilities, without those that its revision does not have.
    pub(crate) capabilities: Json,
    state: Mutex<State>,
    next_ask: AtomicU64,
}

/// The servers that an endpoint shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// All servers.
    All,
    /// One server, whose items keep their own names.
    One(ServerName),
}

/// The caller behind a connection.
#[derive(Clone)]
pub struct Party {
    /// Who calls.
    pub caller: Arc<Caller>,
    /// The session that the quota counts for; without one, it is found by caller and client name.
    pub session: Option<Arc<Session>>,
    /// The servers that it sees.
    pub view: View,
    /// Tells it apart from others; the same for all requests of one connection.
    pub(crate) number: u64,
    /// How it is counted where it has no identity.
    pub(crate) counted: NameCount,
}

#[derive(Default)]
struct State {
    /// The least severe log messages that it receives; `None` for all.
    level: Option<Level>,
    /// Where messages that belong to no request go.
    inbox: Option<mpsc::Sender<Bytes>>,
    /// Requests of ours that it has not answered yet.
    asks: HashMap<u64, oneshot::Sender<Reply>>,
    /// Requests of its own that are worked on.
    running: HashMap<RequestId, AbortHandle>,
    /// The resources it wants to hear of, with the name by which it knows each.
    subscriptions: HashMap<(ServerName, String), String>,
}

/// How serious a log message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

// === impl Party ===

impl Party {
    pub(crate) fn new(caller: Arc<Caller>, session: Option<Arc<Session>>, view: View) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Self { caller, session, view, number, counted: NameCount::Alone }
    }
}

// === impl Client ===

impl Client {
    pub(crate) fn new(
        revision: Revision,
        capabilities: Json,
        party: Party,
        session: Arc<Session>,
    ) -> Self {
        let Party { caller, view, number, counted, .. } = party;
        let peer = Peer::counted(&caller, counted);
        let capabilities = capabilities::of_client(revision.era(), capabilities);
        Self {
            number,
            era: revision.era(),
            revision,
            view,
            caller,
            peer,
            session,
            capabilities,
            state: Mutex::default(),
            next_ask: AtomicU64::new(1),
        }
    }

    /// The revision it speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Who it is.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The servers that it sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// From now on, messages that belong to no request come out here. Whoever had them before
    /// gets no more.
    pub fn open_inbox(&self) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(INBOX);
        self.state().inbox = Some(sender);
        receiver
    }

    /// Takes the client's reply to a request of the gateway.
    pub fn take_reply(&self, id: &RequestId, reply: Reply) {
        let RequestId::Number(id) = id else { return };
        let Ok(id) = u64::try_from(*id) else { return };
        let waiting = self.state().asks.remove(&id);
        if let Some(waiting) = waiting {
            // The call that asked may have ended meanwhile.
            drop(waiting.send(reply));
        }
    }

    /// A message could not be told to the client. A question in it is as good as declined.
    pub fn unheard(&self, message: &Bytes) {
        if let Ok(Message::Request { id: RequestId::Number(id), .. }) = Message::parse(message)
            && let Ok(id) = u64::try_from(id)
        {
            let waiting = self.state().asks.remove(&id);
            drop(waiting);
        }
    }

    /// Ends a request that the client no longer waits for.
    pub fn cancel(&self, id: &RequestId) {
        let running = self.state().running.remove(id);
        if let Some(running) = running {
            running.abort();
        }
    }

    /// Ends all of its requests.
    pub(crate) fn cancel_all(&self) {
        let running = std::mem::take(&mut self.state().running);
        for running in running.into_values() {
            running.abort();
        }
    }

    /// Sends a message that belongs to no request; whether there is a way and room for it.
    pub(crate) fn tell(&self, message: Bytes) -> bool {
        let Some(inbox) = self.state().inbox.clone() else { return false };
        let is_told = inbox.try_send(message).is_ok();
        if !is_told {
            tracing::debug!("a client does not read what it is told; a message is left out");
        }
        is_told
    }

    /// The number of a new request of ours, and where its reply comes out.
    pub(crate) fn ask(self: &Arc<Self>) -> (u64, Asked) {
        let id = self.next_ask.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.state().asks.insert(id, sender);
        (id, Asked { client: Arc::clone(self), id, receiver })
    }

    /// Starts the task of a request, unless the client has no room for it.
    ///
    /// The check and the entry are one step, so that a refused request never runs on any thread.
    pub(crate) fn start(
        &self,
        id: &RequestId,
        start: impl FnOnce() -> Task,
    ) -> Result<Task, &'static str> {
        let mut state = self.state();
        if state.running.len() >= MAX_RUNNING {
            return Err("too many requests at the same time");
        }
        if state.running.contains_key(id) {
            return Err("a request of this id is still worked on");
        }
        let task = start();
        state.running.insert(id.clone(), task.abort_handle());
        drop(state);
        Ok(task)
    }

    /// Replaces the handle that cancels a running request.
    pub(crate) fn continues(&self, id: &RequestId, handle: AbortHandle) {
        self.state().running.insert(id.clone(), handle);
    }

    /// Removes a request from those that run.
    pub(crate) fn finished(&self, id: &RequestId) {
        self.state().running.remove(id);
    }

    pub(crate) fn level(&self) -> Option<Level> {
        self.state().level
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.state().level = Some(level);
    }

    /// Subscribes it to a resource, which it knows as `shown`; `false` without room.
    pub(crate) fn subscribe(&self, server: ServerName, uri: String, shown: String) -> bool {
        let mut state = self.state();
        let room = state.subscriptions.len() < MAX_SUBSCRIPTIONS;
        if room {
            state.subscriptions.insert((server, uri), shown);
        }
        room
    }

    pub(crate) fn unsubscribe(&self, server: &ServerName, uri: &str) -> bool {
        self.state().subscriptions.remove(&(server.clone(), uri.to_owned())).is_some()
    }

    /// The name by which it knows a resource that it wants to hear of.
    pub(crate) fn subscribed(&self, server: &ServerName, uri: &str) -> Option<String> {
        self.state().subscriptions.get(&(server.clone(), uri.to_owned())).cloned()
    }

    pub(crate) fn subscriptions(&self) -> HashSet<(ServerName, String)> {
        self.state().subscriptions.keys().cloned().collect()
    }

    /// Whether it declared a capability.
    pub(crate) fn can(&self, capability: &str) -> bool {
        object::get(&self.capabilities, capability).is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

/// A request of ours to a client that has not been answered yet.
pub(crate) struct Asked {
    client: Arc<Client>,
    id: u64,
    receiver: oneshot::Receiver<Reply>,
}

// === impl Asked ===

impl Asked {
    /// The client's reply; `None` when there will be none.
    pub(crate) async fn reply(mut self) -> Option<Reply> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.client.state().asks.remove(&self.id);
    }
}

// === impl Level ===

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, word)| *word == text).map(|(level, _)| *level)
    }

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(level, _)| *level == self).map_or("debug", |(_, word)| word)
    }
}
