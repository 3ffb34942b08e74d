//! `resources/subscribe` and `resources/unsubscribe` of legacy clients.

use std::sync::Arc;

use capstan_hub::{ApprovalFrom, SideOp};
use capstan_model::Kind;
use capstan_wire::{Json, object};

use crate::client::identity::caller_of;
use crate::client::{Client, MAX_SUBSCRIPTIONS};
use crate::exchange::answer::Payload;
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;
use crate::protocol::fault::Fault;
use crate::protocol::messages::refuse_ambiguous;
use crate::protocol::method::Method;

impl Gateway {
    /// `resources/subscribe`.
    pub(crate) fn subscribe(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
    ) -> impl Future<Output = Result<Payload, Fault>> + Send {
        let params = params.unwrap_or_else(Json::empty_object);
        let uri = uri_of(&params).inspect_err(|fault| {
            self.record_malformed(&client, Method::Subscribe, &params, fault.message());
        });
        let caller = caller_of(&client.caller, &params);
        // Opened here and not in the future, which may be dropped before it runs.
        let request = uri.map(|uri| self.begin_watch(&client, caller, uri, SideOp::SUBSCRIBE));
        async move {
            let request = request?;
            let uri = request.uri.clone();
            let watched = self.watch_for(&client, request, ApprovalFrom::OtherShells).await;
            let (id, watch) = watched
                .map_err(|error| Fault::of_call(&error, Kind::Resource, &uri, client.era))?;
            let has_room = client.subscribe(id.server, id.item, uri);
            // Only after the client is registered, so that the subscription at the server stays.
            drop(watch);
            if !has_room {
                return Err(Fault::invalid(format!(
                    "too many subscriptions (limit {MAX_SUBSCRIPTIONS}); end a subscription first"
                )));
            }
            Ok(Payload::from(Json::empty_object()))
        }
    }

    /// `resources/unsubscribe`.
    pub(crate) async fn unsubscribe(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
    ) -> Result<Payload, Fault> {
        let params = params.unwrap_or_else(Json::empty_object);
        let uri = uri_of(&params)?;
        let resources = ClientResources { gateway: &self, client: &client };
        let found = match client.view.target(Kind::Resource, &uri).id() {
            Some(id) => Ok(id),
            None => self.hub().find_resource(&client.caller, &uri, &resources).await,
        };
        let id = found.map_err(|_| Fault::no_such(Kind::Resource, &uri, client.era))?;
        if client.unsubscribe(&id.server, &id.item) {
            self.stop_watching(&id.server, &id.item);
        }
        Ok(Payload::from(Json::empty_object()))
    }
}

/// Reads the URI of the resource.
fn uri_of(params: &Json) -> Result<String, Fault> {
    refuse_ambiguous(params, &["uri", "_meta"])?;
    object::get_string(params, "uri").ok_or_else(|| Fault::invalid("`uri` must be a string"))
}
