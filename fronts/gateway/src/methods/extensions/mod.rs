//! Methods and notifications of extensions of the protocol.
//!
//! The endpoint of one server forwards those of any extension that the server declares. The endpoint
//! of all servers carries the extensions that the gateway understands: [`skills`], tasks, and pages
//! of user interfaces, which are resources. Each request passes through the pipeline as an item that
//! is named after the method.

mod skills;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::ports::About;
use capstan_hub::{ApprovalFrom, Call, Hub, Shape, SideOp};
use capstan_model::{CallError, Caller, ItemId, Kind, ServerName, Target};
use capstan_wire::{Json, RequestId, compose, object};

use crate::client::identity::caller_of;
use crate::client::{Client, View};
use crate::exchange::answer::Payload;
use crate::exchange::event_channel::channel;
use crate::exchange::{Exchange, Task};
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;
use crate::protocol::fault::Fault;
use crate::protocol::request_meta::RequestMeta;
use crate::questions::operator::ClientOperator;

/// Longest name of a method, in bytes.
const MAX_METHOD: usize = 128;

/// Longest wait for a server that has to start, to learn its extensions.
const WAIT: Duration = Duration::from_secs(30);

/// Maximum number of notifications of one client that wait for their server.
pub(crate) const MAX_NOTIFICATIONS: usize = 64;

/// The method of an extension that lists a directory of resources.
const READ_DIRECTORY: &str = "resources/directory/read";

/// The beginnings of the protocol's own methods. No extension has methods that begin like this,
/// except [`READ_DIRECTORY`].
const RESERVED: [&str; 15] = [
    "initialize",
    "ping",
    "rpc.",
    "server/",
    "tools/",
    "prompts/",
    "resources/",
    "completion/",
    "logging/",
    "subscriptions/",
    "tasks/",
    "roots/",
    "sampling/",
    "elicitation/",
    "notifications/",
];

/// The beginnings of the protocol's own notifications.
const RESERVED_NOTIFICATIONS: [&str; 12] = [
    "initialized",
    "cancelled",
    "progress",
    "message",
    "tools/",
    "prompts/",
    "resources/",
    "subscriptions/",
    "tasks",
    "roots/",
    "elicitation/",
    "sampling/",
];

impl Gateway {
    /// Handles a request with a method that is not the protocol's own.
    pub(crate) fn extension(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        method: &str,
        params: Option<Json>,
    ) -> Exchange {
        if !is_extension(method) {
            return Exchange::fault(id, Fault::unknown_method(method));
        }
        let params = params.unwrap_or_else(Json::empty_object);
        let (gateway, asker) = (Arc::clone(self), Arc::clone(client));
        let method: Box<str> = method.into();
        match client.view.clone() {
            View::One(server) => {
                let (events, receiver) = channel();
                let meta = RequestMeta::of(&params);
                let context = self.call_context();
                let operator =
                    ClientOperator::new(Arc::clone(client), meta.as_ref(), events, context);
                let work = async move {
                    let operator = Arc::new(operator);
                    gateway.forward(&operator, &server, method, params).await
                };
                Exchange::running(id, client, receiver, || Task::new(work))
            }
            View::All => {
                let work = async move { gateway.carry(&asker, &method, params).await };
                Exchange::silent(id, client, work)
            }
        }
    }

    /// Forwards a notification of an extension to the server of a client that is shown one only.
    ///
    /// It passes through the pipeline like a request. Its sender learns nothing of the outcome.
    pub(crate) fn extension_notification(
        self: &Arc<Self>,
        client: &Arc<Client>,
        method: &str,
        params: Option<&Json>,
    ) {
        let View::One(server) = client.view.clone() else { return };
        if !is_extension_notification(method) {
            return;
        }
        let Some(turn) = client.begin_notification() else {
            tracing::debug!(method, "too many notifications wait for the server; one is dropped");
            return;
        };
        let params = params.cloned().unwrap_or_else(Json::empty_object);
        let (gateway, client, method) = (Arc::clone(self), Arc::clone(client), method.into());
        tokio::spawn(async move {
            let hub = gateway.hub();
            if declares_extensions(&hub, &client, &server).await {
                let op = SideOp::Notify { method, params: params.clone() };
                let caller = caller_of(&client.caller, &params);
                if let Err(error) = run(&hub, &client, caller, &server, op, &params).await {
                    tracing::debug!(%server, %error, "a notification was not forwarded");
                }
            }
            drop(turn);
        });
    }

    /// Sends a server's notification of an extension to the clients that are shown this server only.
    pub(crate) fn tell_extension(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        if !is_extension_notification(method) {
            return;
        }
        let view = View::One(server.clone());
        for client in self.subscribers.connected() {
            if client.view == view && self.shows(server, &client.caller) {
                client.tell(compose::notification(method, params).into());
            }
        }
    }

    /// Forwards a request to the server that a client is shown. The client gets progress and
    /// notifications that come meanwhile; one with a session also gets questions.
    async fn forward(
        self: &Arc<Self>,
        operator: &Arc<ClientOperator>,
        server: &ServerName,
        method: Box<str>,
        params: Json,
    ) -> Result<Payload, Fault> {
        let (hub, client) = (self.hub(), &operator.client);
        if !declares_extensions(&hub, client, server).await {
            return Err(Fault::unknown_method(&method));
        }
        let caller = caller_of(&client.caller, &params);
        let op = SideOp::Extension { method: method.clone(), params: params.clone() };
        let call = call(caller, server, &op, &params);
        let attempt = hub.begin(&call).in_lane(client.era.lane()).heard_by(operator.requester());
        let from = ApprovalFrom::OtherShells;
        let result = attempt.side(&client.session, call, op, from, None).await;
        let result = result.map_err(|error| fault(&error, &method))?;
        Ok(payload(client, &result))
    }

    /// Handles a request to all servers, of an extension that the gateway understands.
    async fn carry(
        self: &Arc<Self>,
        client: &Arc<Client>,
        method: &str,
        params: Json,
    ) -> Result<Payload, Fault> {
        match method {
            skills::LIST => self.list_skills(client, &params).await,
            skills::GET | READ_DIRECTORY => self.route_by_uri(client, method, params).await,
            _ => Err(Fault::unknown_method(method)),
        }
    }

    /// Forwards a request about a resource to the server that the resource belongs to.
    async fn route_by_uri(
        self: &Arc<Self>,
        client: &Arc<Client>,
        method: &str,
        params: Json,
    ) -> Result<Payload, Fault> {
        let uri = object::get_string(&params, "uri");
        let uri = uri.ok_or_else(|| Fault::invalid("`uri` must be a string"))?;
        let hub = self.hub();
        let unknown = || Fault::invalid(format!("Unknown URI: {uri}"));
        let resources = ClientResources { gateway: self, client };
        let mut found = hub.find_resource(&client.caller, &uri, &resources).await;
        if found.is_err() {
            // Skills need not be among the resources.
            let params = object::without_member(&params, "cursor").map_err(|_| unknown())?;
            self.list_skills(client, &params).await?;
            found = hub.find_resource(&client.caller, &uri, &resources).await;
        }
        let ItemId { server, item } = found.map_err(|_| unknown())?;
        let has = declared(&hub, client, &server).await;
        if !has.is_some_and(|about| skills::are_offered(&about)) {
            return Err(unknown());
        }
        let own = compose::string(&item);
        let params = object::with_member(&params, "uri", &own).map_err(|_| unknown())?;
        let caller = caller_of(&client.caller, &params);
        let op = SideOp::Extension { method: method.into(), params: params.clone() };
        let result = run(&hub, client, caller, &server, op, &params).await;
        let result = result.map_err(|error| fault(&error, method))?;
        let shown = skills::shown(&hub, &server, method, &result).unwrap_or(result);
        Ok(payload(client, &shown))
    }
}

/// Runs a request of an extension through the pipeline, as an item that is named after its method.
async fn run(
    hub: &Hub,
    client: &Client,
    caller: Arc<Caller>,
    server: &ServerName,
    op: SideOp,
    params: &Json,
) -> Result<Json, CallError> {
    let call = call(caller, server, &op, params);
    let attempt = hub.begin(&call).in_lane(client.era.lane());
    attempt.side(&client.session, call, op, ApprovalFrom::OtherShells, None).await
}

/// The call that a request of an extension counts as.
fn call(caller: Arc<Caller>, server: &ServerName, op: &SideOp, params: &Json) -> Call {
    let item = SideOp::extension_item(op.method());
    let target = Target::exact(Kind::Tool, ItemId { server: server.clone(), item });
    // The rules read the params as arguments, without what every request has.
    let arguments = object::without_member(params, "_meta").unwrap_or_else(|_| params.clone());
    Call::new(caller, target, Some(&arguments))
}

/// The result of a request of an extension, with the type that the client's era requires.
fn payload(client: &Client, result: &Json) -> Payload {
    let result_type = object::get_string(result, "resultType");
    let shape = Shape { result_type, ..Shape::default() };
    client.era.result(result, &shape, Kind::Tool)
}

/// The description of a server as the client sees it. The server is started if it is not known.
async fn declared(hub: &Hub, client: &Client, server: &ServerName) -> Option<Arc<About>> {
    tokio::time::timeout(WAIT, hub.introduce(server, client.era.lane())).await.ok()?.ok()
}

/// True if a server declares an extension, or something experimental.
async fn declares_extensions(hub: &Hub, client: &Client, server: &ServerName) -> bool {
    let about = declared(hub, client, server).await;
    let capabilities = about.and_then(|about| about.capabilities.clone());
    capabilities.is_some_and(|all| {
        ["extensions", "experimental"].into_iter().any(|key| {
            let some = object::get(&all, key).and_then(|some| object::members(&some).ok());
            some.is_some_and(|some| !some.is_empty())
        })
    })
}

/// The error of a request of an extension. To callers that a rule stops, the method does not exist.
fn fault(error: &CallError, method: &str) -> Fault {
    if matches!(
        error,
        CallError::Unknown { .. } | CallError::Denied { .. } | CallError::Hidden { .. }
    ) {
        return Fault::unknown_method(method);
    }
    Fault::of_tool(error, method)
}

/// True if a method may belong to an extension.
fn is_extension(method: &str) -> bool {
    is_sound(method)
        && (method == READ_DIRECTORY || !RESERVED.into_iter().any(|it| begins(method, it)))
}

/// True if a notification may belong to an extension.
pub(crate) fn is_extension_notification(method: &str) -> bool {
    let rest = method.strip_prefix("notifications/").filter(|_| is_sound(method));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !RESERVED_NOTIFICATIONS.into_iter().any(|it| begins(rest, it))
    })
}

fn begins(method: &str, reserved: &str) -> bool {
    method.get(..reserved.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(reserved))
}

/// True if a method consists of the characters that rules can name.
fn is_sound(method: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./$".contains(&byte);
    (1..=MAX_METHOD).contains(&method.len()) && method.bytes().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocols_own_methods_are_no_extensions() {
        for own in [
            "tools/call",
            "Tools/call",
            "tools/new",
            "ping",
            "initialize",
            "server/discover",
            "resources/read",
            "notifications/x/y",
            "tasks/get",
            "sampling/createMessage",
            "",
            "a b",
            "a\n",
            "skills/list\u{0}",
            "method:x",
        ] {
            assert!(!is_extension(own), "{own}");
        }
        for method in ["skills/list", "skills/get", READ_DIRECTORY, "acme/search", "com.acme.x"] {
            assert!(is_extension(method), "{method}");
        }
        assert!(!is_extension(&"x".repeat(MAX_METHOD + 1)));
    }

    #[test]
    fn the_protocols_own_notifications_are_no_extensions() {
        for own in [
            "notifications/cancelled",
            "notifications/initialized",
            "notifications/progress",
            "notifications/tools/list_changed",
            "notifications/tasks",
            "notifications/message",
            "acme/changed",
            "notifications/",
            "notifications/a b",
        ] {
            assert!(!is_extension_notification(own), "{own}");
        }
        assert!(is_extension_notification("notifications/acme/changed"));
    }
}
