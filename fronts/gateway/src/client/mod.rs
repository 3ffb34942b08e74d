//! A connected client; a modern client lasts for one request.
//!
//! `identity` reads what a client declares about itself; `described` remembers the client that the
//! requests of a connection describe; `conversations` keeps quotas of clients without a session.

pub(crate) mod identity;
pub(crate) mod described;
pub(crate) mod conversations;
mod running_requests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use capstan_hub::Session;
use capstan_hub::catalog::RepeatedArguments;
use capstan_hub::ports::Lane;
use capstan_model::{CallTools, Caller, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, Message, Reply, RequestId, object};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::client::described::{FoundClient, LastDescription};
use crate::client::running_requests::RunningRequests;
use crate::exchange::Task;
use crate::fairness::client_names::NameCount;
use crate::fairness::fair_share::Peer;
use crate::methods::extensions::MAX_NOTIFICATIONS;
use crate::protocol::capabilities;
use crate::protocol::era::Era;
use crate::protocol::log_level::Level;
use crate::protocol::request_meta::RequestMeta;
use crate::protocol::revision::Revision;

/// Capacity of the queue of messages that belong to no request; messages beyond it are dropped.
const INBOX: usize = 256;

/// Maximum number of concurrent requests of one client.
pub const MAX_RUNNING: usize = 1024;

/// Maximum number of resource subscriptions of one client.
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
    /// The `_meta` of its request; only a modern client has it.
    pub(crate) meta: Option<Arc<RequestMeta>>,
    /// The arguments that its request repeats in headers; only a modern request over HTTP does.
    pub(crate) repeated: Option<RepeatedArguments>,
    /// Capstan's own tools that it has instead of all tools, once that is decided. It never changes,
    /// so that the client's list of tools is stable.
    pub(crate) own_tools: OnceLock<Option<CallTools>>,
    state: Mutex<State>,
    next_ask: AtomicU64,
    /// Limits the notifications that wait for their server; made for the first one.
    notifications: OnceLock<Arc<Semaphore>>,
}

/// The servers that an endpoint shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// All servers.
    All,
    /// One server, whose items keep their own names.
    One(ServerName),
}

/// The context of a client: its caller, session and view.
#[derive(Clone)]
pub struct ClientContext {
    /// The caller.
    pub caller: Arc<Caller>,
    /// The session that the quota counts for; without one, it is found by caller and client name.
    pub session: Option<Arc<Session>>,
    /// The servers that it sees.
    pub view: View,
    /// Unique number; the same for all requests of one connection.
    pub(crate) number: u64,
    /// The way an unauthenticated client is counted.
    pub(crate) counted: NameCount,
    /// The arguments that the request repeats in headers.
    pub(crate) repeated: Option<RepeatedArguments>,
    /// The last client that was described on the connection.
    pub(crate) described: Option<Arc<LastDescription>>,
}

#[derive(Default)]
struct State {
    /// The least severe log messages that it receives; `None` for all.
    level: Option<Level>,
    /// Channel for messages that belong to no request.
    inbox: Option<mpsc::Sender<Bytes>>,
    /// Pending requests of the gateway to the client.
    asks: HashMap<u64, oneshot::Sender<Reply>>,
    /// Running requests of the client.
    running: RunningRequests,
    /// Subscribed resources, each with the name that the client uses for it.
    subscriptions: HashMap<(ServerName, String), String>,
}

// === impl View ===

impl View {
    /// True if the endpoint shows the server.
    pub(crate) fn has(&self, server: &ServerName) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == server,
        }
    }

    /// The item that a client with this view calls by this name.
    pub(crate) fn target(&self, kind: Kind, name: &str) -> Target {
        match self {
            Self::All => Target::spelled(kind, name),
            Self::One(server) => {
                Target::exact(kind, ItemId { server: server.clone(), item: name.to_owned() })
            }
        }
    }
}

// === impl ClientContext ===

impl ClientContext {
    pub(crate) fn new(caller: Arc<Caller>, session: Option<Arc<Session>>, view: View) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let counted = NameCount::Alone;
        Self { caller, session, view, number, counted, repeated: None, described: None }
    }

    /// Reads the `_meta` of a modern request; a repeated one is read once per connection.
    pub(crate) fn read_meta(&self, meta: &Json) -> Arc<RequestMeta> {
        match &self.described {
            Some(last) => last.read(meta),
            None => Arc::new(RequestMeta::read(meta)),
        }
    }
}

// === impl Client ===

impl Client {
    /// A client that has initialized.
    pub(crate) fn new(
        revision: Revision,
        capabilities: Json,
        context: ClientContext,
        session: Arc<Session>,
    ) -> Self {
        let peer = Peer::counted(&context.caller, context.counted);
        let capabilities = capabilities::of_client(revision.era(), capabilities);
        Self::of(revision, capabilities, context, peer, session)
    }

    /// The client of one request, which this `_meta` describes.
    pub(crate) fn described(
        revision: Revision,
        capabilities: Json,
        context: ClientContext,
        client: FoundClient,
        meta: Arc<RequestMeta>,
    ) -> Self {
        let FoundClient { caller, peer, session, .. } = client;
        let context = ClientContext { caller, ..context };
        let capabilities = capabilities::of_client(revision.era(), capabilities);
        let mut client = Self::of(revision, capabilities, context, peer, session);
        client.meta = Some(meta);
        client
    }

    /// The connections of servers that its requests use.
    pub(crate) fn lane(&self) -> Lane {
        self.era.lane().on_behalf_of(&self.caller)
    }

    fn of(
        revision: Revision,
        capabilities: Json,
        context: ClientContext,
        peer: Peer,
        session: Arc<Session>,
    ) -> Self {
        let ClientContext { caller, view, number, repeated, .. } = context;
        Self {
            number,
            era: revision.era(),
            revision,
            view,
            caller,
            peer,
            session,
            capabilities,
            meta: None,
            repeated,
            own_tools: OnceLock::new(),
            state: Mutex::default(),
            next_ask: AtomicU64::new(1),
            notifications: OnceLock::new(),
        }
    }

    /// Begins to forward a notification; `None` if too many wait.
    pub(crate) fn begin_notification(&self) -> Option<OwnedSemaphorePermit> {
        let new = || Arc::new(Semaphore::new(MAX_NOTIFICATIONS));
        Arc::clone(self.notifications.get_or_init(new)).try_acquire_owned().ok()
    }

    /// The protocol revision of the client.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The caller.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// The servers that it sees.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Opens the channel for messages that belong to no request.
    ///
    /// Replaces the previous receiver, which gets no more messages.
    pub fn open_inbox(&self) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(INBOX);
        self.state().inbox = Some(sender);
        receiver
    }

    /// True if messages that belong to no request can be sent.
    pub(crate) fn has_inbox(&self) -> bool {
        self.state().inbox.as_ref().is_some_and(|inbox| !inbox.is_closed())
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

    /// Handles a message that could not be delivered. A question in it counts as declined.
    pub fn unheard(&self, message: &Bytes) {
        if let Ok(Message::Request { id: RequestId::Number(id), .. }) = Message::parse(message)
            && let Ok(id) = u64::try_from(id)
        {
            let waiting = self.state().asks.remove(&id);
            drop(waiting);
        }
    }

    /// Aborts a request that the client has cancelled.
    pub fn cancel(&self, id: &RequestId) {
        let running = self.state().running.remove(id);
        if let Some(running) = running {
            running.abort();
        }
    }

    /// Aborts all running requests of the client.
    pub(crate) fn cancel_all(&self) {
        let running = std::mem::take(&mut self.state().running);
        running.abort();
    }

    /// Sends a message that belongs to no request.
    ///
    /// Returns false without a receiver or room in its queue.
    pub(crate) fn tell(&self, message: Bytes) -> bool {
        let Some(inbox) = self.state().inbox.clone() else { return false };
        let is_told = inbox.try_send(message).is_ok();
        if !is_told {
            tracing::debug!("a client does not read its messages; a message is dropped");
        }
        is_told
    }

    /// Registers a new request to the client; returns its id and a handle for the reply.
    pub(crate) fn ask(self: &Arc<Self>) -> (u64, PendingRequest) {
        let id = self.next_ask.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.state().asks.insert(id, sender);
        (id, PendingRequest { client: Arc::clone(self), id, receiver })
    }

    /// Starts the task of a request, unless the client has too many or one with this id is running.
    ///
    /// The check and the entry are one step, so that a refused request never runs on any thread.
    pub(crate) fn start(
        &self,
        id: &RequestId,
        start: impl FnOnce() -> Task,
    ) -> Result<Task, String> {
        let mut state = self.state();
        if state.running.len() >= MAX_RUNNING {
            return Err(format!(
                "too many requests at the same time (limit {MAX_RUNNING}); wait for an answer"
            ));
        }
        if state.running.contains(id) {
            return Err("a request with this id is still running".to_owned());
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

    /// Removes a request from the running ones.
    pub(crate) fn finished(&self, id: &RequestId) {
        self.state().running.remove(id);
    }

    pub(crate) fn level(&self) -> Option<Level> {
        self.state().level
    }

    pub(crate) fn set_level(&self, level: Level) {
        self.state().level = Some(level);
    }

    /// Subscribes the client to a resource, which it calls `shown`; false if there are too many.
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

    /// The client's name for a subscribed resource.
    pub(crate) fn subscribed(&self, server: &ServerName, uri: &str) -> Option<String> {
        self.state().subscriptions.get(&(server.clone(), uri.to_owned())).cloned()
    }

    pub(crate) fn subscriptions(&self) -> HashSet<(ServerName, String)> {
        self.state().subscriptions.keys().cloned().collect()
    }

    /// True if the client declared this capability.
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

/// A pending request of the gateway to a client.
pub(crate) struct PendingRequest {
    client: Arc<Client>,
    id: u64,
    receiver: oneshot::Receiver<Reply>,
}

// === impl PendingRequest ===

impl PendingRequest {
    /// Waits for the client's reply; `None` if there will be none.
    pub(crate) async fn reply(mut self) -> Option<Reply> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.client.state().asks.remove(&self.id);
    }
}
