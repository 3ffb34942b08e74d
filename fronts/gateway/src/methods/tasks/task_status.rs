//! Forwards status notifications of tasks to their owners.
//!
//! A legacy client gets them on its stream, a modern client if it names the tasks in
//! `subscriptions/listen`.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use capstan_hub::ports::{BoxFuture, Subscriber};
use capstan_hub::{TaskHandle, life};
use capstan_model::{CallError, ServerName};
use capstan_wire::{Json, compose, object};
use futures::future::{join_all, select_all};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use crate::client::{Client, MAX_SUBSCRIPTIONS, View};
use crate::exchange::event_channel::{EventReceiver, EventSender, Size, channel};
use crate::gateway::Gateway;
use crate::methods::subscriptions::Subscription;
use crate::methods::tasks::task_table::Owner;
use crate::questions::operator::{ClientOperator, Event};

/// Timeout for a server's acknowledgement of a subscription.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

/// Tasks whose status one client follows. Dropping it ends the subscriptions at the servers.
pub(crate) struct TaskWatch {
    servers: BTreeMap<ServerName, ServerTaskWatch>,
    client: Arc<Client>,
    events: EventSender<Event>,
    notices: EventReceiver<StatusNotice>,
    overflow: Arc<Notify>,
}

/// The subscription at one server.
struct ServerTaskWatch {
    /// The ids towards the client, by the ids of the server.
    ids: BTreeMap<String, String>,
    /// Completes when the server ends the subscription.
    running: BoxFuture<'static, Result<Json, CallError>>,
}

/// A status notification of a server.
struct StatusNotice {
    server: ServerName,
    task: Json,
}

/// Receives the notifications of a subscription.
struct TaskSubscriber {
    server: ServerName,
    /// Receives the ids of the tasks that the server has accepted.
    acknowledged: Mutex<Option<oneshot::Sender<Vec<String>>>>,
    notices: EventSender<StatusNotice>,
    /// Maximum size of a notification, in bytes.
    limit: usize,
    /// Signals that a notification was dropped.
    overflow: Arc<Notify>,
}

impl Gateway {
    /// Subscribes to the status of these tasks at their servers; `None` without tasks.
    ///
    /// Unknown tasks and tasks of other clients are left out.
    pub(crate) async fn follow(
        &self,
        client: &Arc<Client>,
        ids: Vec<String>,
        events: &EventSender<Event>,
    ) -> Option<TaskWatch> {
        let (hub, owner) = (self.hub(), Owner::of(client));
        let mut wanted: BTreeMap<ServerName, BTreeMap<String, (String, Arc<TaskHandle>)>> =
            BTreeMap::new();
        for id in ids.into_iter().take(MAX_SUBSCRIPTIONS) {
            if let Some(task) = self.tasks.find(&id, &owner) {
                wanted.entry(task.server).or_default().insert(task.own, (id, task.handle));
            }
        }
        let (sender, notices) = channel();
        let overflow = Arc::new(Notify::new());
        let begun = wanted.into_iter().map(|(server, tasks)| {
            let (ids, handles): (BTreeMap<String, String>, Vec<Arc<TaskHandle>>) =
                tasks.into_iter().map(|(own, (id, handle))| ((own, id), handle)).unzip();
            let (acknowledged, accepted) = oneshot::channel();
            let subscriber = TaskSubscriber {
                server: server.clone(),
                acknowledged: Mutex::new(Some(acknowledged)),
                notices: sender.clone(),
                limit: hub.limits().max_answer,
                overflow: Arc::clone(&overflow),
            };
            let running = hub.follow(
                &client.caller,
                &handles,
                client.capabilities.clone(),
                Arc::new(subscriber),
            );
            ServerTaskWatch::begin(server, ids, running, accepted)
        });
        let begun = join_all(begun).await.into_iter().flatten();
        let servers: BTreeMap<ServerName, ServerTaskWatch> = begun.collect();
        if servers.is_empty() {
            return None;
        }
        let (client, events) = (Arc::clone(client), events.clone());
        Some(TaskWatch { servers, client, events, notices, overflow })
    }

    /// Sends status notifications to a client.
    ///
    /// Ends when one cannot be delivered for a task that is not over, so that the client polls
    /// instead.
    pub(crate) async fn tell_tasks(
        &self,
        mut watch: TaskWatch,
        subscription: &Subscription,
    ) -> Option<()> {
        while !watch.servers.is_empty() {
            let running = watch.servers.values_mut().map(|of_server| &mut of_server.running);
            let next = tokio::select! {
                biased;
                notice = watch.notices.next() => Ok(notice),
                () = watch.overflow.notified() => return None,
                (_, at, _) = select_all(running) => Err(at),
            };
            match next {
                Ok(notice) => self.tell_task(&mut watch, notice, subscription).await?,
                Err(at) => {
                    let ended = watch.servers.keys().nth(at).cloned()?;
                    // Its last notifications may report that all of its tasks are over.
                    while let Some(notice) = watch.notices.try_next() {
                        self.tell_task(&mut watch, notice, subscription).await?;
                    }
                    if watch.servers.contains_key(&ended) {
                        return None;
                    }
                }
            }
        }
        pending().await
    }

    /// Sends one notification; `None` if the task is no longer the client's, or the client is gone.
    async fn tell_task(
        &self,
        watch: &mut TaskWatch,
        notice: StatusNotice,
        subscription: &Subscription,
    ) -> Option<()> {
        let StatusNotice { server, task: said } = notice;
        let own = object::get_string(&said, "taskId").unwrap_or_default();
        let Some(of_server) = watch.servers.get_mut(&server) else { return Some(()) };
        let Some(id) = of_server.ids.get(&own) else { return Some(()) };
        // The server may have reused the id for a task of another client.
        let task = self.tasks.find(id, &Owner::of(&watch.client))?;
        // Access may have been revoked since the subscription.
        if !self.shows(&server, &watch.client.caller) {
            return None;
        }
        let is_over = life::is_over(&said);
        // Created for each notification, because the number of servers decides on attribution.
        let (client, events) = (Arc::clone(&watch.client), watch.events.clone());
        let operator = ClientOperator::new(client, None, events, self.call_context());
        let hub = self.hub();
        let is_merged = watch.client.view == View::All && hub.servers().len() > 1;
        let uris = is_merged.then(|| &hub.catalog().uris);
        let mapped = uris.and_then(|uris| uris.shown_result(&server, &said));
        let said = mapped.unwrap_or(said);
        let shown = self.as_shown(&task, said, &Arc::new(operator)).await;
        subscription.tell_in_turn("notifications/tasks", &shown).await?;
        if is_over {
            of_server.ids.remove(&own);
            if of_server.ids.is_empty() {
                watch.servers.remove(&server);
            }
        }
        Some(())
    }

    /// Sends a status notification to the owner of the task only.
    pub(crate) fn tell_status(&self, server: &ServerName, method: &str, params: &Json) {
        let own = object::get_string(params, "taskId");
        let owner = own.and_then(|own| self.tasks.shown(server, &own)?.1);
        let client = owner.and_then(|number| self.subscribers.clients().get(&number)?.upgrade());
        if let Some(client) = client.filter(|client| self.shows(server, &client.caller)) {
            let params = self.tasks.translate(server, params);
            client.tell(compose::notification(method, Some(&params)).into());
        }
    }
}

// === impl TaskWatch ===

impl TaskWatch {
    /// The ids of the tasks that the client follows.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &String> {
        self.servers.values().flat_map(|of_server| of_server.ids.values())
    }
}

// === impl ServerTaskWatch ===

impl ServerTaskWatch {
    /// Waits for the acknowledgement; `None` if the server accepts none of these tasks.
    async fn begin(
        server: ServerName,
        mut ids: BTreeMap<String, String>,
        mut running: BoxFuture<'static, Result<Json, CallError>>,
        accepted: oneshot::Receiver<Vec<String>>,
    ) -> Option<(ServerName, Self)> {
        let accepted = tokio::select! {
            biased;
            accepted = timeout(ACKNOWLEDGED, accepted) => accepted.ok()?.ok()?,
            _ = &mut running => return None,
        };
        ids.retain(|own, _| accepted.contains(own));
        (!ids.is_empty()).then_some((server, Self { ids, running }))
    }
}

// === impl StatusNotice ===

impl Size for StatusNotice {
    fn size(&self) -> usize {
        self.task.len()
    }
}

// === impl TaskSubscriber ===

impl Subscriber for TaskSubscriber {
    fn notify(&self, method: &str, params: &Json) {
        if method == "notifications/tasks" {
            let (server, task) = (self.server.clone(), params.clone());
            let fits = task.len() <= self.limit;
            if !fits || self.notices.try_send(StatusNotice { server, task }).is_err() {
                self.overflow.notify_one();
            }
            return;
        }
        let ids = object::get(params, "notifications").and_then(|all| object::get(&all, "taskIds"));
        let ids = ids.and_then(|ids| ids.read().ok()).unwrap_or_default();
        let first = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The waiting side may have timed out.
        first.map(|acknowledged| acknowledged.send(ids));
    }
}
