//! `subscriptions/listen`, and change notifications to all clients that they concern.
//!
//! [`resource_methods`] has the subscriptions of legacy clients, and [`resource_watch`] those at
//! servers; [`server_notifications`] forwards notifications that belong to no call.

pub(crate) mod resource_methods;
pub(crate) mod resource_watch;
pub(crate) mod server_notifications;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use capstan_hub::ports::{Listener, Listing};
use capstan_hub::{ApprovalFrom, BackChannel, TaskSubscription};
use capstan_model::rpc_code::INVALID_REQUEST;
use capstan_model::{Caller, ServerName};
use capstan_wire::protocol::META_SUBSCRIPTION;
use capstan_wire::{Json, RequestId, compose, object};
use futures::FutureExt as _;
use futures::future::pending;

use crate::client::identity::caller_of;
use crate::client::{Client, MAX_SUBSCRIPTIONS, View};
use crate::exchange::answer::Payload;
use crate::exchange::event_channel::{EventSender, channel};
use crate::exchange::{Exchange, Task};
use crate::fairness::fair_share::FairShares;
use crate::gateway::Gateway;
use crate::methods::lists::changes::News;
use crate::methods::lists::visible_lists::Change;
use crate::methods::subscriptions::resource_watch::WatchRequest;
use crate::methods::tasks::needs_tasks;
use crate::methods::tasks::task_status::TaskWatch;
use crate::protocol::fault::Fault;
use crate::protocol::method::Method;
use crate::questions::operator::Event;

/// Maximum number of concurrent subscriptions of modern clients.
const MAX_TOTAL: usize = 10_000;

/// Maximum number of concurrent subscriptions of one peer.
const MAX_OWN: usize = 1000;

/// Receivers of change notifications.
pub(crate) struct Subscribers {
    /// Connected clients, by number.
    clients: Mutex<HashMap<u64, Weak<Client>>>,
    /// Subscriptions of modern clients, by number.
    subscriptions: Mutex<HashMap<u64, Arc<Subscription>>>,
    shares: Arc<FairShares>,
}

/// A subscription of a modern client.
pub(crate) struct Subscription {
    client: Arc<Client>,
    /// The id of its request, which every message repeats.
    id: Json,
    lists: HashSet<&'static str>,
    resources: HashMap<(ServerName, String), String>,
    events: EventSender<Event>,
}

/// A subscription that a modern client asks for.
struct ListenRequest {
    client: Arc<Client>,
    /// The id of the request.
    id: Json,
    lists: HashSet<&'static str>,
    watches: Vec<WatchRequest>,
    tasks: Option<Vec<String>>,
}

/// The notifications that a modern client asks for.
struct Filter {
    lists: HashSet<&'static str>,
    /// The resources, by the client's names.
    uris: Vec<String>,
    tasks: Option<Vec<String>>,
}

/// Ends a subscription when its request ends.
struct SubscriptionGuard {
    gateway: Arc<Gateway>,
    number: u64,
}

impl Gateway {
    /// Registers a connected client.
    pub(crate) fn greet(&self, client: &Arc<Client>) {
        self.subscribers.clients().insert(client.number, Arc::downgrade(client));
    }

    /// Removes a client that is gone: ends its requests and subscriptions.
    pub fn leave(self: &Arc<Self>, client: &Arc<Client>) {
        self.subscribers.clients().remove(&client.number);
        self.tasks.leave(client.number);
        client.cancel_all();
        for (server, uri) in client.subscriptions() {
            client.unsubscribe(&server, &uri);
            self.stop_watching(&server, &uri);
        }
        self.rooted_client_left(client);
    }

    /// `subscriptions/listen`: runs until the client cancels it.
    pub(crate) fn listen(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        params: Option<Json>,
    ) -> Exchange {
        let params = params.unwrap_or_else(Json::empty_object);
        let filter = match Filter::read(&params) {
            Ok(filter) => filter,
            Err(fault) => {
                self.record_malformed(client, Method::Listen, &params, fault.message());
                return Exchange::fault(id, fault);
            }
        };
        let refuse = |fault: Fault| {
            self.record_malformed(client, Method::Listen, &params, fault.message());
            fault
        };
        if filter.tasks.is_some() && !client.knows_tasks() {
            return Exchange::fault(id, refuse(needs_tasks()));
        }
        // Taken first, so that a refused subscription sends nothing to servers.
        let Some(share) = self.subscribers.shares.take(client.peer) else {
            let message = format!(
                "too many subscriptions at the same time (limit {MAX_OWN}); end a subscription first"
            );
            return Exchange::fault(id, refuse(Fault::new(INVALID_REQUEST, message)));
        };
        let caller = caller_of(&client.caller, &params);
        let Filter { lists, uris, tasks } = filter;
        // Opened here and not in the task, which may be dropped before it runs.
        let begin =
            |uri| self.begin_watch(client, Arc::clone(&caller), uri, TaskSubscription::METHOD);
        let watches = uris.into_iter().take(MAX_SUBSCRIPTIONS).map(begin).collect();
        let (events, receiver) = channel();
        let own_id = match &id {
            RequestId::Number(number) => {
                Json::from_value(number).unwrap_or_else(|_| Json::empty_object())
            }
            RequestId::Text(text) => compose::string(text),
        };
        let client_of = Arc::clone(client);
        let request = ListenRequest { client: client_of, id: own_id, lists, watches, tasks };
        let gateway = Arc::clone(self);
        let task = async move {
            let result = gateway.run_listen(request, events).await;
            drop(share);
            result
        };
        Exchange::running(id, client, receiver, || Task::new(task))
    }

    async fn run_listen(
        self: Arc<Self>,
        ListenRequest { client, id, lists, watches, tasks }: ListenRequest,
        events: EventSender<Event>,
    ) -> Result<Payload, Fault> {
        let (mut resources, mut watched) = (HashMap::new(), Vec::new());
        // With several resources, those that need an approval are left out instead of waited for.
        let asks =
            if watches.len() == 1 { ApprovalFrom::OtherShells } else { ApprovalFrom::Memory };
        for request in watches {
            let uri = request.uri.clone();
            if let Ok((id, wanting)) = self.watch_for(&client, request, asks).await {
                watched.push(wanting);
                resources.insert((id.server, id.item), uri);
            }
        }
        let watch = self.follow(&client, tasks.unwrap_or_default(), &events).await;
        let subscription = Arc::new(Subscription { client, id, lists, resources, events });
        // The first message acknowledges the accepted filters.
        let first = subscription.acknowledged(watch.iter().flat_map(TaskWatch::ids));
        if subscription.events.send(Event::Message(first)).await.is_err() {
            return Err(Fault::invalid("the client is gone"));
        }
        let number = self.subscribers.add(Arc::clone(&subscription));
        self.follow_lists(&subscription.client, &subscription.listings());
        let _guard = SubscriptionGuard { gateway: Arc::clone(&self), number };
        drop(watched);
        let telling = match watch {
            Some(watch) => self.tell_tasks(watch, &subscription).boxed(),
            None => pending().boxed(),
        };
        let mut stopped = self.stopped.clone();
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => {}
            _ = telling => {}
        }
        Ok(Payload::from(compose::object(&[("resultType", &compose::string("complete"))])))
    }

    /// Sends a list-changed notification to all clients that can see the change.
    pub(crate) fn tell_list(&self, view: &View, listing: Listing, change: &Change) {
        let known = RefCell::new(HashMap::new());
        let sees = |client: &Client| {
            if client.view != *view {
                return false;
            }
            if let Some(calls) = self.searches(client, listing) {
                return self.sees_other_pins(client, change, calls);
            }
            let mut known = known.borrow_mut();
            self.sees_change(view, listing, change, &client.caller, &mut known)
        };
        self.tell_those(&sees, listing);
    }

    /// Sends a list-changed notification to the clients that are `meant`.
    pub(crate) fn tell_those(&self, meant: &dyn Fn(&Client) -> bool, listing: Listing) {
        let (key, method) = notification_of(listing);
        let message = Bytes::from(compose::notification(method, None));
        for client in self.subscribers.connected() {
            if meant(&client) {
                client.tell(message.clone());
            }
        }
        for subscription in self.subscribers.active() {
            if subscription.lists.contains(key) && meant(&subscription.client) {
                subscription.tell(method, &Json::empty_object());
            }
        }
    }

    /// The number of connected clients.
    pub(crate) fn sessions(&self) -> usize {
        self.subscribers.clients().len()
    }
}

impl Listener for Gateway {
    fn list_changed(&self, server: &ServerName, listing: Listing) {
        self.changes.note(server, listing, News::Reported);
    }

    fn list_may_differ(&self, server: &ServerName, listing: Listing) {
        self.changes.note(server, listing, News::MayDiffer);
    }

    fn resource_updated(&self, server: &ServerName, params: &Json) {
        const METHOD: &str = "notifications/resources/updated";
        let Some(uri) = object::get_string(params, "uri") else { return };
        let params = untagged(params);
        let named = |shown: &str| {
            if shown == uri {
                return params.clone();
            }
            let shown = compose::string(shown);
            object::with_member(&params, "uri", &shown).unwrap_or_else(|_| params.clone())
        };
        // Rules may have changed since the subscription.
        let hub = self.hub();
        let may = |caller: &Caller| hub.shows_resource(caller, server, &uri);
        for client in self.subscribers.connected() {
            if let Some(shown) = client.subscribed(server, &uri).filter(|_| may(&client.caller)) {
                client.tell(compose::notification(METHOD, Some(&named(&shown))).into());
            }
        }
        let key = (server.clone(), uri.clone());
        for subscription in self.subscribers.active() {
            if let Some(shown) =
                subscription.resources.get(&key).filter(|_| may(&subscription.client.caller))
            {
                subscription.tell(METHOD, &named(shown));
            }
        }
    }

    fn told(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        match (method, params) {
            ("notifications/tasks/status", Some(params)) => {
                self.tell_status(server, method, params);
            }
            ("notifications/elicitation/complete", _) => self.tell_visited(server, method, params),
            ("notifications/message", Some(params)) => self.tell_log(server, method, params),
            _ => self.tell_extension(server, method, params),
        }
    }

    fn only_client(&self, server: &ServerName) -> Option<BackChannel> {
        self.way_to_only_client(server)
    }
}

// === impl Subscribers ===

impl Subscribers {
    fn add(&self, subscription: Arc<Subscription>) -> u64 {
        let mut subscriptions = self.subscriptions();
        let number = subscriptions.keys().max().map_or(1, |last| last + 1);
        subscriptions.insert(number, subscription);
        drop(subscriptions);
        number
    }

    /// Removes clients that were dropped without `Gateway::leave`.
    pub(crate) fn sweep(&self) {
        self.clients().retain(|_, client| client.strong_count() > 0);
    }

    /// True if a client has subscribed to the resource.
    pub(crate) fn wants(&self, resource: &(ServerName, String)) -> bool {
        let (server, uri) = resource;
        self.connected().iter().any(|client| client.subscribed(server, uri).is_some())
            || self
                .subscriptions()
                .values()
                .any(|subscription| subscription.resources.contains_key(resource))
    }

    /// View and caller of all receivers.
    pub(crate) fn all(&self) -> Vec<(View, Arc<Caller>)> {
        let subscribed = self.active().into_iter().map(|one| Arc::clone(&one.client));
        let clients = self.connected().into_iter().chain(subscribed);
        clients.map(|one| (one.view.clone(), Arc::clone(&one.caller))).collect()
    }

    /// The subscribed resources, with their clients.
    pub(crate) fn wanted(&self) -> HashMap<(ServerName, String), Vec<Arc<Client>>> {
        let mut wanted: HashMap<_, Vec<Arc<Client>>> = HashMap::new();
        for client in self.connected() {
            for one in client.subscriptions() {
                wanted.entry(one).or_default().push(Arc::clone(&client));
            }
        }
        for subscription in self.active() {
            for one in subscription.resources.keys().cloned() {
                wanted.entry(one).or_default().push(Arc::clone(&subscription.client));
            }
        }
        wanted
    }

    /// The connected clients, which have done a handshake.
    pub(crate) fn connected(&self) -> Vec<Arc<Client>> {
        self.clients().values().filter_map(Weak::upgrade).collect()
    }

    fn active(&self) -> Vec<Arc<Subscription>> {
        self.subscriptions().values().cloned().collect()
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, HashMap<u64, Weak<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscriptions(&self) -> MutexGuard<'_, HashMap<u64, Arc<Subscription>>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Subscribers {
    fn default() -> Self {
        let shares = FairShares::new(MAX_TOTAL, MAX_OWN);
        Self { clients: Mutex::default(), subscriptions: Mutex::default(), shares }
    }
}

// === impl Subscription ===

impl Subscription {
    /// The lists whose changes it reports.
    fn listings(&self) -> Vec<Listing> {
        let all = Listing::ALL.into_iter();
        all.filter(|listing| self.lists.contains(notification_of(*listing).0)).collect()
    }

    fn acknowledged<'a>(&self, tasks: impl Iterator<Item = &'a String>) -> Bytes {
        let yes = Json::from_value(&true).unwrap_or_else(|_| Json::empty_object());
        let mut understood: Vec<(&str, &Json)> =
            self.lists.iter().map(|key| (*key, &yes)).collect();
        understood.sort_by_key(|(key, _)| *key);
        let uris: Vec<Json> = self.resources.values().map(|uri| compose::string(uri)).collect();
        let tasks: Vec<Json> = tasks.map(|id| compose::string(id)).collect();
        let named = [("resourceSubscriptions", uris), ("taskIds", tasks)];
        let named = named.map(|(key, all)| (key, (!all.is_empty()).then(|| compose::array(&all))));
        understood.extend(named.iter().filter_map(|(key, all)| Some((*key, all.as_ref()?))));
        let understood = compose::object(&understood);
        let params = compose::object(&[("notifications", &understood)]);
        self.message("notifications/subscriptions/acknowledged", &params)
    }

    fn tell(&self, method: &str, params: &Json) {
        if self.events.try_send(Event::Message(self.message(method, params))).is_err() {
            tracing::debug!("a client does not read its messages; a message is dropped");
        }
    }

    /// Waits for room and sends a notification; `None` if the client is gone.
    pub(crate) async fn tell_in_turn(&self, method: &str, params: &Json) -> Option<()> {
        self.events.send(Event::Message(self.message(method, params))).await.ok()
    }

    fn message(&self, method: &str, params: &Json) -> Bytes {
        let meta = object::get(params, "_meta").unwrap_or_else(Json::empty_object);
        let tagged = object::with_member(&meta, META_SUBSCRIPTION, &self.id)
            .and_then(|meta| object::with_member(params, "_meta", &meta));
        let params = tagged.unwrap_or_else(|_| params.clone());
        compose::notification(method, Some(&params)).into()
    }
}

// === impl Filter ===

impl Filter {
    fn read(params: &Json) -> Result<Self, Fault> {
        let filter = object::get(params, "notifications");
        let filter = filter.ok_or_else(|| Fault::invalid("`notifications` is missing"))?;
        let wanted = |key| object::get(&filter, key).is_some_and(|json| json.as_bytes() == b"true");
        let lists =
            LIST_FILTERS.into_iter().filter(|(key, _)| wanted(key)).map(|(key, _)| key).collect();
        let named = |key| {
            let read = object::get(&filter, key).map(|all| all.read::<Vec<String>>());
            read.transpose()
                .map_err(|_| Fault::invalid(format!("`{key}` must be a list of strings")))
        };
        let uris = named("resourceSubscriptions")?.unwrap_or_default();
        Ok(Self { lists, uris, tasks: named("taskIds")? })
    }
}

// === impl SubscriptionGuard ===

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        let subscription = self.gateway.subscribers.subscriptions().remove(&self.number);
        for (server, uri) in
            subscription.iter().flat_map(|subscription| subscription.resources.keys())
        {
            self.gateway.stop_watching(server, uri);
        }
    }
}

/// Removes the gateway's own subscription id from params; clients have no use for it.
fn untagged(params: &Json) -> Json {
    let meta = object::get(params, "_meta");
    let Some(meta) = meta.filter(|meta| object::get(meta, META_SUBSCRIPTION).is_some()) else {
        return params.clone();
    };
    let bare = match object::without_member(&meta, META_SUBSCRIPTION) {
        Ok(rest) if object::members(&rest).is_ok_and(|members| !members.is_empty()) => {
            object::with_member(params, "_meta", &rest)
        }
        Ok(_) | Err(_) => object::without_member(params, "_meta"),
    };
    bare.unwrap_or_else(|_| params.clone())
}

const LIST_FILTERS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    ("resourcesListChanged", "notifications/resources/list_changed"),
];

/// The filter and the notification method for a list.
fn notification_of(listing: Listing) -> (&'static str, &'static str) {
    let [tools, prompts, resources] = LIST_FILTERS;
    match listing {
        Listing::Tools => tools,
        Listing::Prompts => prompts,
        Listing::Resources | Listing::Templates => resources,
    }
}
