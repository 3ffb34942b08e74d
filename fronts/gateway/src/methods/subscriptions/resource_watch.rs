//! Subscriptions to resources at servers, shared by all clients that want them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::{ApprovalFrom, Attempt, Call, Hub, OpenAttempt, SideOp};
use capstan_model::{CallError, Caller, ItemId, Kind, ServerName};
use capstan_wire::Json;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;

/// A resource of a server.
type Resource = (ServerName, String);

/// Resources with a subscription in progress, and a lock per resource.
#[derive(Default)]
pub(crate) struct ResourceWatches {
    wanted: Mutex<HashMap<Resource, usize>>,
    /// Serializes requests about each resource, so that the last one sent is the one that holds.
    turns: Mutex<HashMap<Resource, Arc<tokio::sync::Mutex<()>>>>,
}

/// A place in the queue for a resource, also while it waits. The last one removes the lock.
struct Turn<'a> {
    watches: &'a ResourceWatches,
    resource: Resource,
    lock: Arc<tokio::sync::Mutex<()>>,
}

/// Keeps a subscription at a server. After it is dropped, only subscribed clients keep it.
pub(crate) struct ResourceWatch {
    gateway: Arc<Gateway>,
    resource: Resource,
}

/// A subscription whose audit record is open. Dropping it records an abandoned one.
pub(crate) struct WatchRequest {
    hub: Arc<Hub>,
    attempt: OpenAttempt,
    call: Call,
    /// The client's name for the resource.
    pub(crate) uri: String,
}

impl Gateway {
    /// Opens the audit record of a subscription to the resource that a client calls `uri`.
    pub(crate) fn begin_watch(
        &self,
        client: &Client,
        caller: Arc<Caller>,
        uri: String,
        method: &'static str,
    ) -> WatchRequest {
        let call = Call::new(caller, client.view.target(Kind::Resource, &uri), None);
        let hub = self.hub();
        let attempt = hub.begin_search(&call).by_method(method).open();
        WatchRequest { hub, attempt, call, uri }
    }

    /// Finds the resource and subscribes to it at its server.
    ///
    /// This is recorded like a call.
    pub(crate) async fn watch_for(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: WatchRequest,
        approval_from: ApprovalFrom<'_>,
    ) -> Result<(ItemId, ResourceWatch), CallError> {
        let WatchRequest { hub, attempt, call, .. } = request;
        let mut attempt = attempt.resume(&hub).in_lane(client.lane());
        let watched = self.start_watching(&hub, &mut attempt, client, call, approval_from).await;
        let (_, id, watch) = attempt.end(watched, |(answer, ..)| answer).await?;
        Ok((id, watch))
    }

    /// Subscribes to a resource at its server, and returns the server's answer.
    ///
    /// The caller must register its client while it holds the returned watch.
    async fn start_watching(
        self: &Arc<Self>,
        hub: &Hub,
        attempt: &mut Attempt<'_>,
        client: &Client,
        call: Call,
        approval_from: ApprovalFrom<'_>,
    ) -> Result<(Json, ItemId, ResourceWatch), CallError> {
        let resources = ClientResources { gateway: self, client };
        // Before the lock: an approval may take long and must not block others.
        let admission = attempt
            .admit(&client.session, call, SideOp::Subscribe, approval_from, Some(&resources))
            .await?;
        let id = admission.id().clone();
        let wanting = ResourceWatch::new(self, &id.server, &id.item);
        // Uses the hub that has admitted it.
        let done = self.watches.in_turn(&id.server, &id.item, hub.run_side(admission)).await;
        done.map(|answer| (answer, id, wanting))
    }

    /// Unsubscribes from a resource at its server, unless a client still wants it.
    pub(crate) fn stop_watching(self: &Arc<Self>, server: &ServerName, uri: &str) {
        if self.is_watched(server, uri) {
            return;
        }
        let (gateway, server, uri) = (Arc::clone(self), server.clone(), uri.to_owned());
        tokio::spawn(async move {
            let work = async {
                // A client may have subscribed while this waited for its turn.
                if !gateway.is_watched(&server, &uri) {
                    let done = gateway.hub().unsubscribe(&server, &uri).await;
                    if let Err(error) = done {
                        tracing::debug!(%server, %error, "a subscription could not be cancelled");
                    }
                }
            };
            gateway.watches.in_turn(&server, &uri, work).await;
        });
    }

    /// True if a client has subscribed to the resource.
    fn is_watched(&self, server: &ServerName, uri: &str) -> bool {
        let resource = (server.clone(), uri.to_owned());
        self.watches.wanted().contains_key(&resource) || self.subscribers.wants(&resource)
    }
}

// === impl ResourceWatches ===

impl ResourceWatches {
    /// Runs `work` when no other work on the resource runs.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "the work on one resource is serialized on purpose"
    )]
    async fn in_turn<T>(&self, server: &ServerName, uri: &str, work: impl Future<Output = T>) -> T {
        let turn = Turn::new(self, server, uri);
        let held = Arc::clone(&turn.lock).lock_owned().await;
        let done = work.await;
        drop(held);
        done
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<Resource, Arc<tokio::sync::Mutex<()>>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<Resource, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Turn ===

impl<'a> Turn<'a> {
    fn new(watches: &'a ResourceWatches, server: &ServerName, uri: &str) -> Self {
        let resource = (server.clone(), uri.to_owned());
        let lock = Arc::clone(watches.turns().entry(resource.clone()).or_default());
        Self { watches, resource, lock }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.watches.turns();
        // This turn and the table have one each.
        if Arc::strong_count(&self.lock) <= 2 {
            turns.remove(&self.resource);
        }
    }
}

// === impl ResourceWatch ===

impl ResourceWatch {
    fn new(gateway: &Arc<Gateway>, server: &ServerName, uri: &str) -> Self {
        let resource = (server.clone(), uri.to_owned());
        *gateway.watches.wanted().entry(resource.clone()).or_default() += 1;
        Self { gateway: Arc::clone(gateway), resource }
    }
}

impl Drop for ResourceWatch {
    fn drop(&mut self) {
        let mut wanted = self.gateway.watches.wanted();
        if let Some(count) = wanted.get_mut(&self.resource) {
            *count -= 1;
            if *count == 0 {
                wanted.remove(&self.resource);
            }
        }
        drop(wanted);
        let (server, uri) = &self.resource;
        self.gateway.stop_watching(server, uri);
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;

    use futures::FutureExt as _;
    use futures::poll;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_on_one_resource_takes_turns_and_leaves_no_lock_behind() {
        let (watches, server) = (ResourceWatches::default(), "a".parse().unwrap());
        let (finish, finished) = oneshot::channel::<()>();
        let mut first = pin!(watches.in_turn(&server, "a:1", finished));
        let mut second = pin!(watches.in_turn(&server, "a:1", ready(())));
        assert!(poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending(), "it waits for its turn");
        assert!(watches.in_turn(&server, "a:2", ready(())).now_or_never().is_some());
        drop(watches.in_turn(&server, "a:3", ready(())));
        finish.send(()).unwrap();
        first.await.unwrap();
        second.await;
        assert!(watches.turns().is_empty());
    }
}
