//! Subscriptions to resources at servers, shared by all clients that want them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::{ApprovalFrom, Attempt, Call, Hub, OpenAttempt, SideOp};
use capstan_model::{CallError, Caller, ItemId, Kind, ServerName};
use capstan_wire::Json;
use tokio::sync::OwnedMutexGuard;

use crate::client::Client;
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;

/// A resource of a server.
type Resource = (ServerName, String);

/// Resources with a subscription in progress, and a lock per server.
#[derive(Default)]
pub(crate) struct ResourceWatches {
    wanted: Mutex<HashMap<Resource, usize>>,
    /// Serializes requests to each server, so that the last one sent is the one that holds.
    turns: Mutex<HashMap<ServerName, Arc<tokio::sync::Mutex<()>>>>,
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
        let mut attempt = attempt.resume(&hub).in_lane(client.era.lane());
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
        let turn = self.watches.turn(&id.server).await;
        // Uses the hub that has admitted it.
        let done = hub.run_side(admission).await;
        drop(turn);
        done.map(|answer| (answer, id, wanting))
    }

    /// Unsubscribes from a resource at its server, unless a client still wants it.
    pub(crate) fn stop_watching(self: &Arc<Self>, server: &ServerName, uri: &str) {
        if self.is_watched(server, uri) {
            return;
        }
        let (gateway, server, uri) = (Arc::clone(self), server.clone(), uri.to_owned());
        tokio::spawn(async move {
            let turn = gateway.watches.turn(&server).await;
            // A client may have subscribed while this waited for its turn.
            if !gateway.is_watched(&server, &uri) {
                let done = gateway.hub().unsubscribe(&server, &uri).await;
                if let Err(error) = done {
                    tracing::debug!(%server, %error, "a subscription could not be cancelled");
                }
            }
            drop(turn);
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
    async fn turn(&self, server: &ServerName) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(server.clone()).or_default())
        };
        turn.lock_owned().await
    }

    fn wanted(&self) -> MutexGuard<'_, HashMap<Resource, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
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
