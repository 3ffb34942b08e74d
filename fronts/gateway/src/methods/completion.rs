//! `completion/complete`: the server of the item completes the value.

use std::sync::Arc;

use capstan_hub::catalog::typed;
use capstan_hub::{ApprovalFrom, Call, Hub, OpenAttempt, SideOp};
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_model::{CallError, Caller, ItemId, Kind, Target};
use capstan_wire::{Json, compose, object};

use crate::client::Client;
use crate::client::identity::caller_of;
use crate::exchange::answer::Payload;
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;
use crate::protocol::fault::Fault;
use crate::protocol::method::Method;

/// A completion whose audit record is open.
struct Completion {
    hub: Arc<Hub>,
    attempt: OpenAttempt,
    caller: Arc<Caller>,
    kind: Kind,
    /// The client's name for the item.
    name: String,
    params: Json,
}

impl Gateway {
    /// `completion/complete`.
    pub(crate) fn complete(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
    ) -> impl Future<Output = Result<Payload, Fault>> + Send {
        let params = params.unwrap_or_else(Json::empty_object);
        // Opened here and not in the future, which may be dropped before it runs.
        let completion = self.begin_complete(&client, params);
        async move {
            let completion = completion?;
            let (kind, name) = (completion.kind, completion.name.clone());
            let result = match self.run_complete(&client, completion).await {
                // A server without completion offers no values.
                Err(CallError::Server { code: METHOD_NOT_FOUND, .. }) => {
                    let none = compose::object(&[("values", &compose::array(&[]))]);
                    compose::object(&[("completion", &none)])
                }
                Ok(result) => result,
                Err(error) => return Err(Fault::of_call(&error, kind, &name, client.era)),
            };
            Ok(Payload::from(client.era.completion(result)))
        }
    }

    /// Opens the audit record of a completion, before the search for its item.
    fn begin_complete(&self, client: &Client, params: Json) -> Result<Completion, Fault> {
        let (kind, name) = read_reference(&params).inspect_err(|fault| {
            self.record_malformed(client, Method::Complete, &params, fault.message());
        })?;
        let (hub, caller) = (self.hub(), caller_of(&client.caller, &params));
        let target = Target::spelled(kind, &name);
        let sought = Call::new(Arc::clone(&caller), target, Some(&typed(&params)));
        let attempt = hub.begin_search(&sought).by_method(SideOp::COMPLETE).open();
        Ok(Completion { hub, attempt, caller, kind, name, params })
    }

    /// Asks a server to complete a value, under the rules for the item of that value.
    async fn run_complete(
        self: &Arc<Self>,
        client: &Client,
        completion: Completion,
    ) -> Result<Json, CallError> {
        let Completion { hub, attempt, caller, kind, name, params } = completion;
        let attempt = attempt.resume(&hub).in_lane(client.lane());
        let resources = ClientResources { gateway: self, client };
        let target = match kind {
            Kind::Prompt | Kind::Tool => {
                let Some((server, item)) = self.find_prompt(client, &name).await else {
                    let nearest = Vec::new();
                    return Err(attempt.refuse(CallError::Unknown { kind, name, nearest }));
                };
                Target::exact(kind, ItemId { server, item })
            }
            Kind::Resource => client.view.target(kind, &name),
        };
        let call = Call::new(caller, target, Some(&typed(&params)));
        let (op, from) = (SideOp::Complete(params), ApprovalFrom::Memory);
        attempt.side(&client.session, call, op, from, Some(&resources)).await
    }
}

/// Reads the item whose value is completed. The pipeline refuses params that a server could read
/// otherwise.
fn read_reference(params: &Json) -> Result<(Kind, String), Fault> {
    let reference = object::get(params, "ref");
    let reference = reference.ok_or_else(|| Fault::invalid("`ref` is missing"))?;
    let (kind, key) = match object::get_string(&reference, "type").as_deref() {
        Some("ref/prompt") => (Kind::Prompt, "name"),
        Some("ref/resource") => (Kind::Resource, "uri"),
        _ => return Err(Fault::invalid("`ref.type` is not known")),
    };
    let name = object::get_string(&reference, key);
    let name = name.ok_or_else(|| Fault::invalid(format!("`ref.{key}` must be a string")))?;
    Ok((kind, name))
}
