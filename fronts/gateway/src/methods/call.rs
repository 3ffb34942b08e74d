//! Calls of tools, resources and prompts: through the pipeline, and back in the client's era.

use std::borrow::Cow;
use std::sync::Arc;

use capstan_hub::own_tools::{self, OwnTool};
use capstan_hub::ports::{Listing, OwnTools};
use capstan_hub::trace::{Side, Span, Step, TraceContext};
use capstan_hub::{Call, Delivery, Hub, Part, Requester, Screened, Shape};
use capstan_model::rpc_code::URL_REQUIRED;
use capstan_model::{CallError, Kind, Target};
use capstan_wire::protocol::INPUT_REQUIRED;
use capstan_wire::{Json, RequestId, compose, object};

use crate::client::identity::caller_in;
use crate::client::{Client, View};
use crate::exchange::answer::Payload;
use crate::exchange::event_channel::channel;
use crate::exchange::streamed_answer::{self, Begun, Done, Form};
use crate::exchange::{Exchange, Task};
use crate::gateway::Gateway;
use crate::methods::lists::ClientResources;
use crate::methods::own_tools::ClientTools;
use crate::protocol::fault::{Fault, tool_error};
use crate::protocol::method::Method;
use crate::protocol::request_meta::RequestMeta;
use crate::questions::continuation::{Continuation, input_required};
use crate::questions::operator::ClientOperator;
use crate::questions::parked_calls::ParkedCall;
use crate::questions::sealed_state::{BadState, CallDigest, State};

/// Error for a client that returns a state, where its revision has none.
const NO_STATE: &str = "`requestState` is not supported in this revision";

/// One call of a client.
struct CallTask {
    gateway: Arc<Gateway>,
    client: Arc<Client>,
    kind: Kind,
    /// The client's name for the item.
    name: String,
    params: Json,
    /// The `_meta` of the params.
    meta: Option<Arc<RequestMeta>>,
    part: Part,
    /// A digest of the call, if an answer may carry questions and their state.
    call: Option<CallDigest>,
    /// The `task` member of a client of 2025-11-25 that asks for a task.
    task: Option<Json>,
    form: Form,
    /// True from the moment that the call has a task until that task runs.
    is_waiting: bool,
}

/// Handles a call.
pub(crate) fn call(
    gateway: &Arc<Gateway>,
    client: &Arc<Client>,
    id: RequestId,
    kind: Kind,
    params: Option<Json>,
    form: Form,
) -> Exchange {
    let mut params = params.unwrap_or_else(Json::empty_object);
    // As `LastDescription::cut`, for params that are written otherwise.
    if client.meta.as_ref().is_some_and(|meta| meta.only_describes) {
        params = object::cut_member(&params, "_meta").unwrap_or(params);
    }
    let [name, meta, state, responses, mut task] = members(client, kind, &params);
    // A modern client has been described by its `_meta`.
    let meta = client.meta.clone().or_else(|| Some(Arc::new(RequestMeta::read(&meta?))));
    if task.is_some() && !client.revision.has_task_member() {
        // This client's revision has no `task` member, so it must not reach a server.
        task = None;
        params = object::without_member(&params, "task").unwrap_or(params);
    }
    let Some(name) = name.as_ref().and_then(Json::text).map(Cow::into_owned) else {
        let message = format!("`{}` must be a string", kind.name_key());
        gateway.record_malformed(client, Method::Call(kind), &params, &message);
        return Exchange::fault(id, Fault::invalid(message));
    };
    let place = match &client.view {
        View::All => "",
        View::One(server) => server.as_str(),
    };
    let call = || CallDigest::of(place, kind.method(), &params);
    let call = client.era.asks_in_answers().then(call);
    let mut call_task = CallTask {
        gateway: Arc::clone(gateway),
        client: Arc::clone(client),
        kind,
        name,
        params,
        meta,
        part: Part::First,
        call,
        // A result that may become a task is parsed as a whole.
        form: if task.is_some() { Form::Whole } else { form },
        task,
        is_waiting: false,
    };
    match (call_task.call.clone(), state) {
        (Some(call), Some(state)) => {
            let caller = client.caller.identity();
            match gateway.sealer.open(&state, &caller, call.as_str(), gateway.now()) {
                Ok(State::Parked(number)) => call_task.resume(id, number, responses.as_ref()),
                Ok(State::Elsewhere { state, number }) => {
                    // A state that is sent again makes a new call: it is counted and asked about.
                    if let Some(made) = gateway.open_calls.take(number) {
                        call_task.part = Part::Later(made);
                    }
                    match call_task.with_state(state) {
                        Ok(()) => call_task.start(id),
                        Err(fault) => call_task.refuse(id, fault),
                    }
                }
                Err(BadState) => call_task.refuse_state(id),
            }
        }
        _ => call_task.start(id),
    }
}

/// The members of a call's params: the name, `_meta`, and those of few calls.
fn members(client: &Client, kind: Kind, params: &Json) -> [Option<Json>; 5] {
    let rare = ["requestState", "inputResponses", "task"];
    let is_plain = |words: &[&str]| !object::may_mention(params, words);
    if is_plain(&rare) && (client.meta.is_some() || is_plain(&["_meta"])) {
        // The name comes first in nearly all calls, so that the rest is not scanned.
        let [name] = object::peek(params, [kind.name_key()]);
        return [name, None, None, None, None];
    }
    let [state, responses, task] = rare;
    object::peek(params, [kind.name_key(), "_meta", state, responses, task])
}

// === impl CallTask ===

impl CallTask {
    /// Continues a parked call.
    fn resume(&self, id: RequestId, number: u64, responses: Option<&Json>) -> Exchange {
        let Some(mut parked) = self.gateway.park.take(number) else {
            return self.refuse_state(id);
        };
        // First, because an answer lets the call continue on any thread.
        parked.operator.hear(self.meta.as_deref());
        parked.answer(responses);
        let continuation = self.continuation(&parked.operator);
        if !parked.questions.is_empty() {
            let again = continuation.map(|with| with.park(parked).map(Payload::from));
            return Exchange::ready(id, again.unwrap_or_else(|| Err(Fault::invalid(NO_STATE))));
        }
        let ParkedCall { events, task, .. } = parked;
        Exchange::running(id, &self.client, events, || task).continued_by(continuation)
    }

    /// Refuses a call whose state is unknown or not the client's.
    fn refuse_state(&self, id: RequestId) -> Exchange {
        self.refuse(id, Fault::invalid(BadState.to_string()))
    }

    /// Refuses and records a call that does not start.
    fn refuse(&self, id: RequestId, fault: Fault) -> Exchange {
        let method = Method::Call(self.kind);
        self.gateway.record_malformed(&self.client, method, &self.params, fault.message());
        Exchange::fault(id, fault)
    }

    fn continuation(&self, operator: &Arc<ClientOperator>) -> Option<Continuation> {
        let call = self.call.clone()?;
        Some(Continuation {
            operator: Arc::clone(operator),
            gateway: Arc::clone(&self.gateway),
            client: Arc::clone(&self.client),
            call,
        })
    }

    /// Replaces the gateway's state with the server's own state.
    fn with_state(&mut self, state: Option<Json>) -> Result<(), Fault> {
        let params = match state {
            Some(state) => object::with_member(&self.params, "requestState", &state),
            None => object::without_member(&self.params, "requestState"),
        };
        self.params = params.map_err(|_| Fault::invalid("the params are not an object"))?;
        Ok(())
    }

    fn start(self, id: RequestId) -> Exchange {
        let (events, receiver) = channel();
        let context = self.gateway.call_context();
        let client = Arc::clone(&self.client);
        let operator = ClientOperator::new(client, self.meta.as_deref(), events, context);
        let operator = operator.taking(self.form);
        if self.task.is_some() {
            operator.wants_task();
        }
        let operator = Arc::new(operator);
        let (client, continuation) = (Arc::clone(&self.client), self.continuation(&operator));
        // Boxed, because a task's future is moved when it is spawned and when it is done. It exists
        // before the client has room for it, so that a refused call is recorded too.
        let work = Box::pin(self.run(operator));
        let start = || Task::new(work);
        Exchange::running(id, &client, receiver, start).continued_by(continuation)
    }

    /// Runs the call. The task may be dropped before it runs, so it is marked as waiting here.
    fn run(
        mut self,
        operator: Arc<ClientOperator>,
    ) -> impl Future<Output = Result<Done, Fault>> + Send {
        self.is_waiting = true;
        async move {
            self.is_waiting = false;
            // The pipeline copies the params; large ones are not kept twice.
            let mut params = std::mem::replace(&mut self.params, Json::empty_object());
            let span = self.span(&params);
            if let Some(context) = span.as_ref().and_then(|span| span.context()) {
                params = context.put(&params);
            }
            let caller = caller_in(&self.client.caller, self.meta.take().as_deref());
            let part = std::mem::take(&mut self.part);
            let named = self.may_be_own().then(|| own_tools::called_name(&params)).flatten();
            let call = Call { caller, target: self.target(), params, part };
            let walked = tokio::select! {
                biased;
                walked = self.walk(call, span, &operator) => walked,
                () = self.gateway.over.wait() => Begun::Failed(CallError::Stopped),
            };
            if let Some(named) = named
                && self.own_tool().is_some()
            {
                self.name = named;
            }
            match walked {
                Begun::Streamed(streamed) => Ok(Done::Streamed(Box::new(streamed))),
                Begun::Whole(screened) => self.deliver(&screened, &operator).map(Done::Payload),
                Begun::Failed(error) => self.fail(&error, &operator).map(Done::Payload),
            }
        }
    }

    /// Sends a call through the pipeline.
    async fn walk(
        &self,
        call: Call,
        mut span: Option<Box<dyn Span>>,
        operator: &Arc<ClientOperator>,
    ) -> Begun {
        let hub = self.gateway.hub();
        let resources = ClientResources { gateway: &self.gateway, client: &self.client };
        let mut requester = operator.requester();
        if self.searches() {
            requester.resources = Some(&resources);
        } else {
            found(&hub, &call, span.as_mut());
        }
        requester.repeated = self.client.repeated.as_ref();

        let counted = self.gateway.metrics.begin();
        let delivered = if self.may_be_own() {
            // Boxed because it is rare, to keep the future of every call small.
            Box::pin(self.deliver_own(&hub, call, requester)).await
        } else {
            hub.deliver(&self.client.session, call, requester).await
        };
        let is_found_late = self.searches() || self.may_be_own();
        if let (Ok(delivery), Some(span), true) = (&delivered, &mut span, is_found_late) {
            span.found(delivery.server());
        }
        streamed_answer::begin(delivered, self.kind, self.client.era, counted, span, &hub).await
    }

    /// Sends a call that may be for one of Capstan's own tools through the pipeline.
    async fn deliver_own(
        &self,
        hub: &Hub,
        call: Call,
        mut requester: Requester<'_>,
    ) -> Result<Delivery, CallError> {
        // The record is open while the client's own tools are found out.
        let attempt = hub.begin(&call);
        let tools = ClientTools { gateway: &self.gateway, client: &self.client };
        match self.gateway.own_tools_of(&self.client).await {
            Ok(calls) => requester.own_tools = calls.map(|calls| OwnTools { calls, lists: &tools }),
            Err(error) => return Err(attempt.refuse(error)),
        }
        attempt.deliver(&self.client.session, call, requester).await
    }

    /// The call that the client means, if it is for a tool that calls others.
    fn meant(&self, call: Call) -> Call {
        if self.own_tool().and_then(OwnTool::calls).is_none() {
            return call;
        }
        own_tools::called(call.clone()).unwrap_or(call)
    }

    /// The own tool that the call is for, as far as it is known which ones the client has.
    fn own_tool(&self) -> Option<OwnTool> {
        let calls = self.gateway.searches(&self.client, Listing::Tools);
        OwnTool::of(calls.filter(|_| self.may_be_own())?, &self.target())
    }

    /// True if the call has the name of one of Capstan's own tools.
    fn may_be_own(&self) -> bool {
        self.kind == Kind::Tool && self.client.view == View::All && OwnTool::has_name(&self.name)
    }

    /// True if the server of the item must be found first.
    fn searches(&self) -> bool {
        self.client.view == View::All && self.kind == Kind::Resource
    }

    /// The span of the call, if calls are traced.
    fn span(&self, params: &Json) -> Option<Box<dyn Span>> {
        let tracer = self.gateway.tracer.as_deref()?;
        Some(tracer.begin(Step {
            side: Side::Asked,
            kind: self.kind,
            item: &self.name,
            server: None,
            caller: Some(&self.client.caller),
            protocol: Some(self.client.revision.as_str()),
            context: TraceContext::of(params).as_ref(),
        }))
    }

    /// The target of the call.
    fn target(&self) -> Target {
        self.client.view.target(self.kind, &self.name)
    }

    /// Converts the result to the client's revision.
    fn deliver(&self, screened: &Screened, operator: &ClientOperator) -> Result<Payload, Fault> {
        let (result, shape) = (screened.result(), screened.shape());
        let task = self.gateway.adopt_task(&self.client, screened, self.task.as_ref())?;
        if let Some(task) = task {
            operator.became(&task);
            return Ok(Payload::from(task));
        }
        if let Some(call) = &self.call
            && shape.result_type.as_deref() == Some(INPUT_REQUIRED)
        {
            let theirs = object::get(result, "requestState");
            let state = self.gateway.seal(
                &self.client.caller.identity(),
                call,
                self.gateway.elsewhere(theirs, screened.continuation()),
            );
            let signed = operator.signed_requests(screened.server(), result);
            let result = object::with_member(&signed, "requestState", &state);
            return Ok(Payload::from(result.unwrap_or(signed)));
        }
        Ok(self.client.era.result(result, shape, self.kind))
    }

    fn fail(&self, error: &CallError, operator: &ClientOperator) -> Result<Payload, Fault> {
        if let (
            CallError::Server { code: URL_REQUIRED, whole: Some(whole), server, .. },
            Some(call),
        ) = (error, &self.call)
            && operator.can_visit()
            && self.gateway.hub().may_ask(server)
            && let Some(result) = self.visits(whole, call, operator)
        {
            return Ok(Payload::from(operator.signed_requests(server, &result)));
        }
        if self.kind == Kind::Tool
            && let Some(result) = tool_error(error)
        {
            return Ok(self.client.era.result(&result, &Shape::default(), self.kind));
        }
        Err(Fault::of_call(error, self.kind, &self.name, self.client.era))
    }

    /// The questions that replace the URL-required error of 2025-11-25: pages to visit first.
    fn visits(&self, whole: &str, call: &CallDigest, operator: &ClientOperator) -> Option<Json> {
        let whole = Json::parse(whole.to_owned()).ok()?;
        let pages = object::items(&object::at_path(&whole, "data.elicitations")?).ok()?;
        let requests: Vec<(String, Json)> = pages
            .iter()
            .enumerate()
            .map(|(at, page)| {
                let params = object::without_member(page, "elicitationId");
                let params = params.unwrap_or_else(|_| page.clone());
                let method = compose::string("elicitation/create");
                let request = compose::object(&[("method", &method), ("params", &params)]);
                (format!("capstan-{}", at + 1), request)
            })
            .collect();
        let requests: Vec<(&str, &Json)> = requests.iter().map(|(k, v)| (k.as_str(), v)).collect();
        let state = self.gateway.elsewhere(None, operator.continued());
        let state = self.gateway.seal(&self.client.caller.identity(), call, state);
        Some(input_required(&compose::object(&requests), &state))
    }
}

impl Drop for CallTask {
    /// Records a call whose client left before its task ran.
    fn drop(&mut self) {
        if self.is_waiting {
            let caller = caller_in(&self.client.caller, self.meta.as_deref());
            let params = std::mem::replace(&mut self.params, Json::empty_object());
            let part = std::mem::take(&mut self.part);
            let call = self.meant(Call { caller, target: self.target(), params, part });
            let hub = self.gateway.hub();
            drop(if self.searches() { hub.begin_search(&call) } else { hub.begin(&call) });
        }
    }
}

/// Records the server of a call in its span.
fn found(hub: &Hub, call: &Call, span: Option<&mut Box<dyn Span>>) {
    if let Some(span) = span
        && let Some(id) = hub.ids_of(&call.target).next()
    {
        span.found(&id.server);
    }
}
