//! Requests that are refused before the pipeline. Like all others, they leave an audit entry.

use std::sync::Arc;

use capstan_hub::{Call, Part, SideOp, TaskSubscription};
use capstan_model::{CallError, Kind, Target};
use capstan_wire::{Json, object};

use crate::client::Client;
use crate::gateway::Gateway;
use crate::protocol::method::Method;

impl Gateway {
    /// Records a request whose params are malformed, so that its item cannot be read or must not be
    /// used.
    pub(crate) fn record_malformed(
        &self,
        client: &Client,
        method: Method,
        params: &Json,
        problem: &str,
    ) {
        let name = method.name_key().and_then(|key| object::get_string(params, key));
        let (item, problem) = (name.unwrap_or_default(), problem.to_owned());
        let error = CallError::InvalidArguments { item: item.clone(), problem };
        self.record_refused(client, method, params, &item, error);
    }

    /// Records an operation on a task that is unknown, or belongs to another client.
    pub(crate) fn record_unknown_task(
        &self,
        client: &Client,
        method: Method,
        params: &Json,
        id: &str,
    ) {
        let (kind, name, nearest) = (Kind::Tool, id.to_owned(), Vec::new());
        let error = CallError::Unknown { kind, name, nearest };
        self.record_refused(client, method, params, id, error);
    }

    /// Records a request that comes while the gateway shuts down.
    pub(crate) fn record_stopped(&self, client: &Client, method: &str, params: Option<&Json>) {
        let Some(method) = Method::of(method, client.revision) else { return };
        let params = params.cloned().unwrap_or_else(Json::empty_object);
        let name = method.name_key().and_then(|key| object::get_string(&params, key));
        let name = name.unwrap_or_default();
        self.record_refused(client, method, &params, &name, CallError::Stopped);
    }

    fn record_refused(
        &self,
        client: &Client,
        method: Method,
        params: &Json,
        name: &str,
        error: CallError,
    ) {
        let (kind, method) = match method {
            Method::Call(kind) => (kind, None),
            Method::Complete => (Kind::Prompt, Some(SideOp::COMPLETE)),
            Method::Subscribe => (Kind::Resource, Some(SideOp::SUBSCRIBE)),
            Method::Listen => (Kind::Resource, Some(TaskSubscription::METHOD)),
            Method::Task(op) => (Kind::Tool, Some(op.method())),
            // These use no item.
            Method::List(_)
            | Method::Discover
            | Method::Ping
            | Method::SetLevel
            | Method::Unsubscribe
            | Method::ListTasks => return,
        };
        let (caller, target) = (Arc::clone(&client.caller), Target::spelled(kind, name));
        let call = Call { caller, target, params: params.clone(), part: Part::First };
        let hub = self.hub();
        let attempt = hub.begin_search(&call);
        let attempt = match method {
            Some(method) => attempt.by_method(method),
            None => attempt,
        };
        drop(attempt.refuse(error));
    }
}
