//! The gateway: shared state, and the dispatch of requests to methods.
//!
//! `renew` replaces the hub of a running gateway; `shutdown` drains it and ends its calls.

pub(crate) mod renew;
pub(crate) mod shutdown;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use capstan_hub::ports::Listener;
use capstan_hub::trace::Tracer;
use capstan_hub::{Hub, Session};
use capstan_model::rpc_code::INTERNAL;
use capstan_model::{Caller, ServerName};
use capstan_wire::{Json, RequestId};
use tokio::sync::watch;

use crate::client::conversations::Conversations;
use crate::client::{Client, ClientContext, View};
use crate::exchange::Exchange;
use crate::exchange::answer::Payload;
use crate::exchange::streamed_answer::Form;
use crate::fairness::client_names::ClientNames;
use crate::gateway::shutdown::StopSignal;
use crate::methods::call;
use crate::methods::lists::Lists;
use crate::methods::lists::changes::Changes;
use crate::methods::logging::ServerLevels;
use crate::methods::own_tools::Exposed;
use crate::methods::subscriptions::Subscribers;
use crate::methods::subscriptions::resource_watch::ResourceWatches;
use crate::methods::tasks::task_table::Tasks;
use crate::metrics::server_health;
use crate::metrics::{Metrics, Readings};
use crate::protocol::fault::{Fault, SHUTTING_DOWN};
use crate::protocol::messages::cancelled;
use crate::protocol::method::Method;
use crate::questions::continuation::OpenCalls;
use crate::questions::operator::CallContext;
use crate::questions::parked_calls::ParkedCalls;
use crate::questions::sealed_state::{NoRandomness, Sealer};

/// Interval of the task that removes expired state.
const SWEEP: Duration = Duration::from_secs(5);

/// All servers behind one endpoint.
pub struct Gateway {
    /// The current hub. A request takes it once and keeps it until the request ends.
    hub: RwLock<Arc<Hub>>,
    pub(crate) sealer: Sealer,
    pub(crate) park: ParkedCalls,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) lists: Lists,
    pub(crate) subscribers: Subscribers,
    pub(crate) watches: ResourceWatches,
    pub(crate) changes: Arc<Changes>,
    pub(crate) metrics: Metrics,
    /// Observes calls, if tracing is on.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// Becomes true when no new requests are accepted.
    pub(crate) stopped: watch::Receiver<bool>,
    pub(crate) stop: watch::Sender<bool>,
    /// Ends the calls that still run at the end of a shutdown.
    pub(crate) over: StopSignal,
    /// True if only clients on this machine can connect.
    pub(crate) own: AtomicBool,
    conversations: Conversations,
    pub(crate) names: ClientNames,
    pub(crate) open_calls: OpenCalls,
    pub(crate) levels: ServerLevels,
    pub(crate) exposed: Exposed,
}

// === impl Gateway ===

impl Gateway {
    /// Creates a gateway to the servers of a hub. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn new(hub: Arc<Hub>) -> Result<Arc<Self>, NoRandomness> {
        Self::watched(hub, None)
    }

    /// Creates a gateway whose calls are traced.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn watched(
        hub: Arc<Hub>,
        tracer: Option<Arc<dyn Tracer>>,
    ) -> Result<Arc<Self>, NoRandomness> {
        let sealer = Sealer::new()?;
        let changes = Arc::<Changes>::default();
        let (stop, stopped) = watch::channel(false);
        let gateway = Arc::new(Self {
            hub: RwLock::new(hub),
            sealer,
            park: ParkedCalls::default(),
            tasks: Arc::default(),
            lists: Lists::default(),
            subscribers: Subscribers::default(),
            watches: ResourceWatches::default(),
            changes: Arc::clone(&changes),
            metrics: Metrics::default(),
            tracer,
            stopped,
            stop,
            over: StopSignal::default(),
            own: AtomicBool::new(false),
            conversations: Conversations::default(),
            names: ClientNames::default(),
            open_calls: OpenCalls::default(),
            levels: ServerLevels::default(),
            exposed: Exposed::default(),
        });
        let listener: Arc<dyn Listener> = Arc::<Self>::clone(&gateway);
        gateway.hub().listen(listener);
        tokio::spawn(Self::tell_changes(Arc::downgrade(&gateway), changes));
        tokio::spawn(Self::sweep(Arc::downgrade(&gateway)));
        Ok(gateway)
    }

    /// Starts a new conversation of a caller, with its own quota.
    pub fn session_context(&self, caller: Arc<Caller>, view: View) -> ClientContext {
        ClientContext::new(caller, Some(Arc::new(self.hub().session())), view)
    }

    /// A caller without a conversation; the quota is found by caller and client name.
    pub fn stateless_context(&self, caller: Arc<Caller>, view: View) -> ClientContext {
        ClientContext::new(caller, None, view)
    }

    /// Returns the session with a context's quota and remembered answers; `client` is its client's
    /// name.
    pub(crate) fn session_of(
        &self,
        context: &ClientContext,
        client: Option<String>,
    ) -> Arc<Session> {
        if let Some(session) = &context.session {
            return Arc::clone(session);
        }
        let begin = || self.hub().session();
        self.conversations.of(context, client, self.now(), begin)
    }

    /// True if there is a server with this name.
    pub fn knows(&self, server: &ServerName) -> bool {
        self.hub().has(server)
    }

    /// Handles a request of any method but `initialize`.
    pub fn request(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        method: &str,
        params: Option<Json>,
    ) -> Exchange {
        self.dispatch(client, id, method, params, Form::Whole)
    }

    /// Handles a request of a client that accepts a streamed answer.
    pub fn request_streamed(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        method: &str,
        params: Option<Json>,
    ) -> Exchange {
        self.dispatch(client, id, method, params, Form::Streamed)
    }

    fn dispatch(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        method: &str,
        params: Option<Json>,
        form: Form,
    ) -> Exchange {
        if *self.stopped.borrow() {
            self.record_stopped(client, method, params.as_ref());
            return Exchange::fault(id, Fault::new(INTERNAL, SHUTTING_DOWN));
        }
        if let Some(level) = client.era.level_in(client.meta.as_deref()) {
            self.raise_servers(client, level);
        }
        let Some(known) = Method::of(method, client.revision) else {
            return self.extension(client, id, method, params);
        };
        let (gateway, asker) = (|| Arc::clone(self), || Arc::clone(client));
        match known {
            Method::Call(kind) => call::call(self, client, id, kind, params, form),
            Method::List(listing) => {
                Exchange::silent(id, client, gateway().list(asker(), listing, params))
            }
            Method::Complete => Exchange::silent(id, client, gateway().complete(asker(), params)),
            Method::Discover => Exchange::silent(id, client, gateway().discover(asker())),
            Method::Ping => Exchange::ready(id, Ok(Payload::from(Json::empty_object()))),
            Method::SetLevel => Exchange::ready(id, self.set_level(client, params.as_ref())),
            Method::Subscribe => Exchange::silent(id, client, gateway().subscribe(asker(), params)),
            Method::Unsubscribe => {
                Exchange::silent(id, client, gateway().unsubscribe(asker(), params))
            }
            Method::Listen => self.listen(client, id, params),
            Method::Task(op) => self.handle_task(client, id, Some(op), params),
            Method::ListTasks => self.handle_task(client, id, None, params),
        }
    }

    /// Handles a notification of a client.
    pub fn notification(
        self: &Arc<Self>,
        client: &Arc<Client>,
        method: &str,
        params: Option<&Json>,
    ) {
        if let Some(id) = cancelled(method, params) {
            client.cancel(&id);
            return;
        }
        match method {
            "notifications/roots/list_changed" => self.roots_changed(client),
            // Before this, a client may not be asked anything.
            "notifications/initialized" if client.has_inbox() => {
                self.client_initialized(client);
            }
            _ => self.extension_notification(client, method, params),
        }
    }

    /// True if new requests are accepted.
    pub fn is_ready(&self) -> bool {
        !*self.stopped.borrow()
    }

    /// The metrics of all servers, as text for Prometheus.
    pub fn metrics(&self) -> String {
        self.metrics_of(&|_| true)
    }

    /// The metrics as text for Prometheus, limited to the servers that `caller` may use.
    pub fn metrics_for(&self, caller: &Caller) -> String {
        let hub = self.hub();
        self.metrics_of(&|server| hub.policy().out_of_reach(caller, server).is_none())
    }

    fn metrics_of(&self, shows: &dyn Fn(&ServerName) -> bool) -> String {
        let hub = self.hub();
        let readings = self.metrics.read(&hub, shows, self.sessions(), self.park.len());
        self.metrics.text(&readings) + &server_health::text(&hub, shows)
    }

    /// The metrics as numbers, without the durations of calls, which a tracer measures itself.
    pub fn readings(&self) -> Readings {
        self.metrics.read(&self.hub(), &|_| true, self.sessions(), self.park.len())
    }

    /// The current hub.
    pub fn hub(&self) -> Arc<Hub> {
        Arc::clone(&self.hub.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the hub and returns the previous one.
    pub(crate) fn put(&self, hub: Arc<Hub>) -> Arc<Hub> {
        let mut place = self.hub.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut place, hub)
    }

    /// The servers in a view.
    pub(crate) fn shown(&self, view: &View) -> Vec<ServerName> {
        match view {
            View::All => self.hub().servers().cloned().collect(),
            View::One(server) => vec![server.clone()],
        }
    }

    /// The context of a new call.
    pub(crate) fn call_context(&self) -> CallContext {
        let hub = self.hub();
        let (patience, servers) = (hub.limits().question_wait, hub.servers().len());
        let own = self.own.load(Ordering::Relaxed);
        CallContext { patience, own, servers, tasks: Arc::clone(&self.tasks) }
    }

    pub(crate) fn now(&self) -> Duration {
        self.hub().clock().monotonic()
    }

    async fn sweep(gateway: Weak<Self>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let Some(gateway) = gateway.upgrade() else { return };
            gateway.park.sweep(gateway.now());
            gateway.open_calls.sweep(gateway.now());
            gateway.conversations.sweep(gateway.now());
            gateway.names.sweep(gateway.now());
            gateway.tasks.sweep(gateway.now());
            gateway.subscribers.sweep();
            for (view, listing) in gateway.lists.expired(gateway.hub().clock().now()) {
                gateway.look(view, listing);
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.changes.close();
    }
}
