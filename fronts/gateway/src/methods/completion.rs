//! `completion/complete`: the server of the item completes the value.

use std::sync::Arc;

use capstan_hub::catalog::typed;
use capstan_hub::{ApprovalFrom, Call, SideOp};
use capstan_model::rpc_code::METHOD_NOT_FOUND;
use capstan_model::{CallError, Caller, ItemId, Kind, Target};
use capstan_wire::{Json, compose, object};

use crate::client::Client;
use crate::client::identity::caller_of;
use crate::exchange::answer::Payload;
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;
use crate::protocol::fault::Fault;
use crate::protocol::messages::refuse_ambiguous;
use crate::protocol::method::Method;

impl Gateway {
    /// `completion/complete`.
    pub(crate) async fn complete(
        self: Arc<Self>,
        client: Arc<Client>,
        params: Option<Json>,
    ) -> Result<Payload, Fault> {
        let params = params.unwrap_or_else(Json::empty_object);
        let (kind, name) = read_reference(&params).inspect_err(|fault| {
            self.record_malformed(&client, Method::Complete, &params, fault.message());
        })?;
        let caller = caller_of(&client.caller, &params);
        let result = self.run_complete(&client, caller, kind, &name, params).await;
        let result = match result {
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

    /// Asks a server to complete a value, under the rules for the item of that value.
    ///
    /// The audit record starts with the search for the item.
    async fn run_complete(
        self: &Arc<Self>,
        client: &Client,
        caller: Arc<Caller>,
        kind: Kind,
        name: &str,
        params: Json,
    ) -> Result<Json, CallError> {
        let op = SideOp::Complete(params.clone());
        let (hub, typed) = (self.hub(), typed(&params));
        let sought = Call::new(Arc::clone(&caller), Target::spelled(kind, name), Some(&typed));
        let attempt = hub.begin_search(&sought).by_method(SideOp::COMPLETE);
        let attempt = attempt.in_lane(client.era.lane());
        let resources = ClientResources { gateway: self, client };
        let target = match kind {
            Kind::Prompt | Kind::Tool => {
                let Some((server, item)) = self.find_prompt(client, name).await else {
                    let (name, nearest) = (name.to_owned(), Vec::new());
                    return Err(attempt.refuse(CallError::Unknown { kind, name, nearest }));
                };
                Target::exact(kind, ItemId { server, item })
            }
            Kind::Resource => client.view.target(kind, name),
        };
        let call = Call::new(caller, target, Some(&typed));
        attempt.side(&client.session, call, op, ApprovalFrom::Memory, Some(&resources)).await
    }
}

/// Reads the item whose value is completed, and refuses params that a server could read otherwise.
fn read_reference(params: &Json) -> Result<(Kind, String), Fault> {
    refuse_ambiguous(params, &["ref", "argument", "context", "_meta"])?;
    let [reference, argument, context] = object::peek(params, ["ref", "argument", "context"]);
    let reference = reference.ok_or_else(|| Fault::invalid("`ref` is missing"))?;
    refuse_ambiguous(&reference, &["type", "name", "uri"])?;
    argument.map_or(Ok(()), |argument| refuse_ambiguous(&argument, &["name", "value"]))?;
    context.map_or(Ok(()), |context| refuse_ambiguous(&context, &["arguments"]))?;
    let (kind, key) = match object::get_string(&reference, "type").as_deref() {
        Some("ref/prompt") => (Kind::Prompt, "name"),
        Some("ref/resource") => (Kind::Resource, "uri"),
        _ => return Err(Fault::invalid("`ref.type` is not known")),
    };
    let name = object::get_string(&reference, key);
    let name = name.ok_or_else(|| Fault::invalid(format!("`ref.{key}` must be a string")))?;
    Ok((kind, name))
}
