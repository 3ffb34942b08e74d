//! Methods and notifications of extensions of the protocol.
//!
//! The endpoint of one server forwards those of any extension that the server declares. The endpoint
//! of all servers carries the extensions that the gateway understands: [`skills`], tasks, and pages
//! of user interfaces, which are resources. Each request passes through the pipeline as an item that
//! is named after the method.

mod skills;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use capstan_hub::ports::About;
use capstan_hub::{
    ApprovalFrom, Call, ExtensionMethod, ExtensionNotification, Hub, OpenAttempt, Shape, SideOp,
};
use capstan_model::{CallError, ItemId, Kind, ServerName, Target};
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

/// Longest wait for a server that has to start, to learn its extensions.
const WAIT: Duration = Duration::from_secs(30);

/// Maximum number of notifications of one client that wait for their server.
pub(crate) const MAX_NOTIFICATIONS: usize = 64;

/// A request of an extension whose audit record is open. Dropping it records an abandoned one.
struct ExtensionRequest {
    hub: Arc<Hub>,
    attempt: OpenAttempt,
    call: Call,
    op: SideOp,
    /// The client that gets progress, notifications and questions meanwhile.
    operator: Option<Arc<ClientOperator>>,
}

impl Gateway {
    /// Handles a request with a method that is not the protocol's own.
    pub(crate) fn extension(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: RequestId,
        method: &str,
        params: Option<Json>,
    ) -> Exchange {
        let Some(method) = ExtensionMethod::parse(method) else {
            return Exchange::fault(id, Fault::unknown_method(method));
        };
        let params = params.unwrap_or_else(Json::empty_object);
        let (gateway, asker) = (Arc::clone(self), Arc::clone(client));
        match &client.view {
            View::One(server) => {
                let op = SideOp::Extension { method, params };
                // Opened here and not in the task, which may be dropped before it runs.
                let request = ExtensionRequest::begin(self.hub(), client, Some(server), op);
                let (events, receiver) = channel();
                let meta = RequestMeta::of(request.params());
                let context = self.call_context();
                let operator =
                    ClientOperator::new(Arc::clone(client), meta.as_ref(), events, context);
                let operator = Arc::new(operator.beside_calls());
                let server = server.clone();
                let work = async move { gateway.forward(&operator, &server, request).await };
                Exchange::running(id, client, receiver, || Task::new(work))
            }
            View::All => match method.as_str() {
                // Its requests to the servers are recorded, one for each server.
                skills::LIST => {
                    let work = async move { gateway.list_skills(&asker, &params).await };
                    Exchange::silent(id, client, work)
                }
                skills::GET | ExtensionMethod::READ_DIRECTORY => {
                    let op = SideOp::Extension { method, params };
                    let request = ExtensionRequest::begin(self.hub(), client, None, op);
                    let work = async move { gateway.route_by_uri(&asker, request).await };
                    Exchange::silent(id, client, work)
                }
                unknown => Exchange::fault(id, Fault::unknown_method(unknown)),
            },
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
        let Some(method) = ExtensionNotification::parse(method) else { return };
        let Some(turn) = client.begin_notification() else {
            let method = method.as_str();
            tracing::debug!(method, "too many notifications wait for the server; one is dropped");
            return;
        };
        let params = params.cloned().unwrap_or_else(Json::empty_object);
        let op = SideOp::Notify { method, params };
        let request = ExtensionRequest::begin(self.hub(), client, Some(&server), op);
        let client = Arc::clone(client);
        tokio::spawn(async move {
            if let Err(error) = request.run(&client, &server, declares_extensions).await {
                tracing::debug!(%server, %error, "a notification was not forwarded");
            }
            drop(turn);
        });
    }

    /// Sends a server's notification of an extension to the clients that are shown this server only.
    pub(crate) fn tell_extension(&self, server: &ServerName, method: &str, params: Option<&Json>) {
        if ExtensionNotification::parse(method).is_none() {
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
        request: ExtensionRequest,
    ) -> Result<Payload, Fault> {
        let (method, client) = (request.op.method().to_owned(), &operator.client);
        let request = request.heard_by(operator);
        let result = request.run(client, server, declares_extensions).await;
        let result = result.map_err(|error| fault(&error, &method))?;
        Ok(payload(client, &result))
    }

    /// Forwards a request about a resource to the server that the resource belongs to.
    async fn route_by_uri(
        self: &Arc<Self>,
        client: &Arc<Client>,
        request: ExtensionRequest,
    ) -> Result<Payload, Fault> {
        let method = request.op.method().to_owned();
        let Some(uri) = object::get_string(request.params(), "uri") else {
            return Err(request.refuse("`uri` must be a string".to_owned()));
        };
        let hub = Arc::clone(&request.hub);
        let unknown = format!("Unknown URI: {uri}");
        let resources = ClientResources { gateway: self, client };
        let mut found = hub.find_resource(&client.caller, &uri, &resources).await;
        if found.is_err() {
            // Skills need not be among the resources.
            let Ok(params) = object::without_member(request.params(), "cursor") else {
                return Err(request.refuse(unknown));
            };
            drop(self.list_skills(client, &params).await);
            found = hub.find_resource(&client.caller, &uri, &resources).await;
        }
        let Ok(ItemId { server, item }) = found else { return Err(request.refuse(unknown)) };
        let request = request.about(&item);
        let result = match request.run(client, &server, skills::are_offered).await {
            Err(CallError::Unknown { .. }) => return Err(Fault::invalid(unknown)),
            result => result.map_err(|error| fault(&error, &method))?,
        };
        let shown = skills::shown(&hub, &server, &method, &result).unwrap_or(result);
        Ok(payload(client, &shown))
    }
}

// === impl ExtensionRequest ===

impl ExtensionRequest {
    /// Opens the audit record of a request. Without a server, the server is found later.
    fn begin(hub: Arc<Hub>, client: &Client, server: Option<&ServerName>, op: SideOp) -> Self {
        let item = op.own_item().unwrap_or_default();
        let target = match server {
            Some(server) => Target::exact(Kind::Tool, ItemId { server: server.clone(), item }),
            None => Target::spelled(Kind::Tool, item),
        };
        let params = params_of(&op);
        let call = Call::new(caller_of(&client.caller, params), target, Some(params));
        let attempt = if server.is_some() { hub.begin(&call) } else { hub.begin_search(&call) };
        let attempt = attempt.by_method(op.recorded_method()).open();
        Self { hub, attempt, call, op, operator: None }
    }

    /// Sends progress, notifications and questions to the client.
    fn heard_by(self, operator: &Arc<ClientOperator>) -> Self {
        Self { operator: Some(Arc::clone(operator)), ..self }
    }

    fn params(&self) -> &Json {
        params_of(&self.op)
    }

    /// Puts the server's own URI into the params.
    fn about(mut self, item: &str) -> Self {
        if let SideOp::Extension { params, .. } | SideOp::Notify { params, .. } = &mut self.op
            && let Ok(named) = object::with_member(params, "uri", &compose::string(item))
        {
            *params = named;
        }
        self
    }

    /// Records that the request is refused, and returns the error for its client.
    fn refuse(self, problem: String) -> Fault {
        let Self { hub, attempt, call, .. } = self;
        let item = call.target.name;
        let error = CallError::InvalidArguments { item, problem: problem.clone() };
        drop(attempt.resume(&hub).refuse(error));
        Fault::invalid(problem)
    }

    /// Runs the request through the pipeline, as an item that is named after its method. The server
    /// is started to learn what it declares, if the caller may use anything of it.
    async fn run(
        self,
        client: &Client,
        server: &ServerName,
        declares: fn(&About) -> bool,
    ) -> Result<Json, CallError> {
        let Self { hub, attempt, call, op, operator } = self;
        let item = op.own_item().unwrap_or_default();
        let target = Target::exact(Kind::Tool, ItemId { server: server.clone(), item });
        let call = Call { target, ..call };
        let mut attempt = attempt.resume(&hub).in_lane(client.lane());
        if let Some(operator) = &operator {
            attempt = attempt.heard_by(operator.requester());
        }
        if let Err(error) = attempt.reach(&call) {
            return Err(attempt.refuse(error));
        }
        let about = tokio::time::timeout(WAIT, hub.introduce(server, client.lane())).await.ok();
        if !about.and_then(Result::ok).is_some_and(|about| declares(&about)) {
            let (kind, name, nearest) = (Kind::Tool, call.target.name, Vec::new());
            return Err(attempt.refuse(CallError::Unknown { kind, name, nearest }));
        }
        attempt.side(&client.session, call, op, ApprovalFrom::OtherShells, None).await
    }
}

/// The params of a request of an extension.
fn params_of(op: &SideOp) -> &Json {
    static NONE: LazyLock<Json> = LazyLock::new(Json::empty_object);
    match op {
        SideOp::Extension { params, .. }
        | SideOp::Notify { params, .. }
        | SideOp::Complete(params) => params,
        SideOp::Subscribe => &NONE,
    }
}

/// The result of a request of an extension, with the type that the client's era requires.
fn payload(client: &Client, result: &Json) -> Payload {
    let result_type = object::get_string(result, "resultType");
    let shape = Shape { result_type, ..Shape::default() };
    client.era.result(result, &shape, Kind::Tool)
}

/// True if a server declares an extension, or something experimental.
fn declares_extensions(about: &About) -> bool {
    about.capabilities.as_ref().is_some_and(|all| {
        ["extensions", "experimental"].into_iter().any(|key| {
            let some = object::get(all, key).and_then(|some| object::members(&some).ok());
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
