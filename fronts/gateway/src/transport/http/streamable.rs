//! Streamable HTTP: a client posts a message, and the response is its answer.

use std::sync::Arc;

use bytes::Bytes;
use capstan_model::Caller;
use capstan_model::rpc_code::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
    PARSE_ERROR, UNSUPPORTED_VERSION,
};
use capstan_wire::protocol::MODERN;
use capstan_wire::{Json, Message, RequestId};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::StatusCode;
use hyper::http::request::Parts;

use crate::protocol::era::{Contact, Era, Hint};
use crate::protocol::messages::{is_batch, messages, one};
use crate::protocol::method::Method;
use crate::transport::http::batch;
use crate::transport::http::connection::connection_state::ConnectionState;
use crate::transport::http::mcp_endpoints::McpEndpoints;
use crate::transport::http::request::caller_header;
use crate::transport::http::request::header_check::{self, MirroredValues};
use crate::transport::http::request::request_body::{self, Accepts, SESSION, VERSION};
use crate::transport::http::request::trace_headers;
use crate::transport::http::response::body::{self, Body};
use crate::transport::http::response::events::{Form, outs};
use crate::transport::http::sessions::{Key, SessionGuard};
use crate::{Answer, Exchange, Next, Out, Revision, View};

/// A posted message.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) mcp: &'a McpEndpoints,
    pub(crate) head: &'a Parts,
    pub(crate) state: &'a ConnectionState,
}

/// A parsed request.
struct ParsedRequest {
    id: RequestId,
    method: String,
    params: Option<Json>,
}

/// The reason why a request has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoSession {
    #[error("the header `Mcp-Session-Id` is missing")]
    Missing,
    #[error("the header `Mcp-Session-Id` has several values; send one")]
    Several,
    #[error("there is no such session")]
    Unknown,
    #[error("this `MCP-Protocol-Version` is not supported; supported are {}", Revision::ALL.map(Revision::as_str).join(", "))]
    Version,
}

/// Handles a posted message.
pub(crate) async fn post(
    post: Post<'_>,
    incoming: Incoming,
    caller: Arc<Caller>,
    view: View,
) -> Response<Body> {
    let Post { mcp, head, .. } = post;
    let accepts = Accepts::of(&head.headers);
    if accepts == Accepts::Neither {
        let words = "answers are `application/json` or `text/event-stream`";
        return body::refusal(StatusCode::NOT_ACCEPTABLE, words);
    }
    let text = match request_body::body(&head.headers, incoming, mcp.limits()).await {
        Ok(text) => text,
        Err(unread) => return body::refusal(unread.status(), unread),
    };
    if is_batch(&text) {
        return match session(mcp, head, &caller, &view) {
            Ok(session) => Box::pin(batch::answer(post, &text, accepts, session)).await,
            Err(missing) => no_batch(&text, missing),
        };
    }
    let message = one(&text);
    // The message holds the bytes that it needs; the buffer is not kept while the request runs.
    drop(text);
    match message {
        Ok(Message::Request { id, method, params }) => {
            let request = ParsedRequest { id, method, params };
            respond(post, accepts, caller, view, request).await
        }
        Ok(message) => tell(mcp, head, &caller, &view, message),
        Err(answer) => body::json(StatusCode::BAD_REQUEST, answer),
    }
}

async fn respond(
    post: Post<'_>,
    accepts: Accepts,
    caller: Arc<Caller>,
    view: View,
    mut request: ParsedRequest,
) -> Response<Body> {
    let Post { mcp, head, .. } = post;
    if !mcp.gateway().is_ready() {
        return body::stopping(Some(&request.id));
    }
    request.params =
        caller_header::adopt(&head.headers, trace_headers::adopt(&head.headers, request.params));
    let contact = Contact::of(hint(&head.headers), &request.method, request.params.as_ref());
    if contact == Contact::Modern {
        return match make_modern(post, caller, view, &mut request) {
            Ok(client) => {
                let ParsedRequest { id, method, params } = request;
                let exchange = ask(mcp, accepts, &client, id, &method, params);
                answer(post, accepts, exchange, None).await
            }
            Err(answer) => body::json(StatusCode::BAD_REQUEST, answer),
        };
    }
    if contact == Contact::Initialize {
        return Box::pin(initialize(mcp, head, caller, view, request)).await;
    }
    let session = match session(mcp, head, &caller, &view) {
        Ok(session) => session,
        Err(missing) => return missing.response(Some(&request.id)),
    };
    let ParsedRequest { id, method, params } = request;
    let exchange = ask(mcp, accepts, session.client(), id, &method, params);
    answer(post, accepts, exchange, Some(session)).await
}

/// Refuses a batch without a session: for its JSON, for being a batch, or for the session.
fn no_batch(text: &Bytes, missing: NoSession) -> Response<Body> {
    match (messages(text, None), missing) {
        (Err(answer), NoSession::Missing) => body::json(StatusCode::BAD_REQUEST, answer),
        (Err(answer), _) if answer.error_code() == Some(PARSE_ERROR) => {
            body::json(StatusCode::BAD_REQUEST, answer)
        }
        (_, missing) => missing.response(None),
    }
}

/// Handles a notification, or the reply to a request of the gateway.
fn tell(
    mcp: &McpEndpoints,
    head: &Parts,
    caller: &Caller,
    view: &View,
    message: Message,
) -> Response<Body> {
    if says_modern(&head.headers) {
        return match message {
            // Without a session, a notification refers to nothing.
            Message::Notification { .. } => body::bare(StatusCode::ACCEPTED),
            // 2026-07-28 has no requests to its clients.
            Message::Reply { .. } | Message::Request { .. } => {
                let words = "a client of 2026-07-28 may send only requests and notifications";
                let answer = Answer::error(None, INVALID_REQUEST, words);
                body::json(StatusCode::BAD_REQUEST, answer)
            }
        };
    }
    let session = match session(mcp, head, caller, view) {
        Ok(session) => session,
        Err(missing) => return missing.response(None),
    };
    match message {
        Message::Notification { method, params } => {
            mcp.gateway().notification(session.client(), &method, params.as_ref());
        }
        Message::Reply { id: Some(id), reply } => session.client().take_reply(&id, reply),
        Message::Reply { id: None, .. } | Message::Request { .. } => {}
    }
    body::bare(StatusCode::ACCEPTED)
}

/// The session that a request belongs to.
pub(crate) fn session(
    mcp: &McpEndpoints,
    head: &Parts,
    caller: &Caller,
    view: &View,
) -> Result<SessionGuard, NoSession> {
    check_version(&head.headers)?;
    let key = head.headers.get(&SESSION).ok_or(NoSession::Missing)?;
    if key.as_bytes().contains(&b',') {
        return Err(NoSession::Several);
    }
    let key = Key::parse(key.as_bytes()).ok_or(NoSession::Unknown)?;
    mcp.sessions().find(key, caller, view).ok_or(NoSession::Unknown)
}

/// True if the header declares a modern request.
pub(crate) fn says_modern(headers: &HeaderMap) -> bool {
    headers.get(&VERSION).is_some_and(|version| version == MODERN)
}

fn check_version(headers: &HeaderMap) -> Result<(), NoSession> {
    let Some(version) = headers.get(&VERSION) else { return Ok(()) };
    let known = version.to_str().ok().and_then(Revision::parse);
    if known.is_some() { Ok(()) } else { Err(NoSession::Version) }
}

/// The era that the headers of a request declare.
fn hint(headers: &HeaderMap) -> Hint {
    if says_modern(headers) {
        Hint::Declared(Era::Modern)
    } else if headers.contains_key(&SESSION) {
        Hint::Declared(Era::Legacy)
    } else {
        Hint::None
    }
}

/// Creates the client of a modern request, or the answer if it is refused.
fn make_modern(
    post: Post<'_>,
    caller: Arc<Caller>,
    view: View,
    request: &mut ParsedRequest,
) -> Result<Arc<crate::Client>, Answer> {
    let Post { mcp, head, state } = post;
    let ParsedRequest { id, method, params } = request;
    let mut context = mcp.gateway().stateless_context(caller, view);
    context.described = Some(Arc::clone(state.described()));
    let call = params.as_ref().filter(|_| Method::is_call(method));
    let cut = call.and_then(|params| state.described().cut(params));
    let (mirrored, meta) = if let Some((meta, rest)) = cut {
        let mirrored = MirroredValues::read_rest(method, &rest);
        *params = Some(rest);
        (mirrored, Some(meta))
    } else {
        let mirrored = MirroredValues::read(method, params.as_ref());
        let meta = mirrored.meta.as_ref().map(|meta| context.read_meta(meta));
        (mirrored, meta)
    };
    let version = meta.as_ref().and_then(|meta| meta.version.as_ref()?.text());
    if let Some(version) = version {
        header_check::check_version(&head.headers, &version)
            .map_err(|mismatch| Answer::error(Some(id), HEADER_MISMATCH, &mismatch.to_string()))?;
    }
    if mirrored.method.is_some_and(Method::has_argument_headers) {
        context.repeated = Some(header_check::repeated_arguments(&head.headers));
    }
    let client = mcp.gateway().described(id, meta, context)?;
    let refused = match mirrored.no_text() {
        Some(member) => {
            let words = format!("`{member}` must be a string");
            Err((INVALID_PARAMS, words))
        }
        None => header_check::check(&head.headers, method, &mirrored)
            .map_err(|mismatch| (HEADER_MISMATCH, mismatch.to_string())),
    };
    if let Err((code, words)) = refused {
        if let (Some(method), Some(params)) = (mirrored.method, params) {
            mcp.gateway().record_malformed(&client, method, params, &words);
        }
        return Err(Answer::error(Some(id), code, &words));
    }
    Ok(client)
}

async fn initialize(
    mcp: &McpEndpoints,
    head: &Parts,
    caller: Arc<Caller>,
    view: View,
    request: ParsedRequest,
) -> Response<Body> {
    if let Err(missing) = check_version(&head.headers) {
        return missing.response(Some(&request.id));
    }
    let full = |id: &RequestId| {
        let answer = Answer::error(
            Some(id),
            -32000,
            "too many sessions; end one, or raise the gateway's session limit",
        );
        body::json(StatusCode::SERVICE_UNAVAILABLE, answer)
    };
    let peer = mcp.gateway().peer(&caller, request.params.as_ref());
    let Ok(place) = mcp.sessions().place(peer) else { return full(&request.id) };
    // Copied, so that a session does not keep the buffer of its connection.
    let params = request.params.as_ref().map(|params| Bytes::copy_from_slice(params.as_bytes()));
    let params = params.and_then(|params| Json::parse(params).ok());
    let context = mcp.gateway().session_context(caller, view);
    let (answer, client) = mcp.gateway().initialize(&request.id, params.as_ref(), context).await;
    let Some(client) = client else { return body::json(StatusCode::OK, answer) };
    let Ok(key) = mcp.sessions().add(Arc::clone(&client), place) else {
        mcp.gateway().leave(&client);
        return full(&request.id);
    };
    let mut response = body::json(StatusCode::OK, answer);
    if let Ok(value) = HeaderValue::try_from(key.to_text()) {
        response.headers_mut().insert(&SESSION, value);
    }
    response
}

/// Starts a request. A large answer may be streamed, but never as an event.
fn ask(
    mcp: &McpEndpoints,
    accepts: Accepts,
    client: &Arc<crate::Client>,
    id: RequestId,
    method: &str,
    params: Option<Json>,
) -> Exchange {
    if accepts == Accepts::Events {
        mcp.gateway().request(client, id, method, params)
    } else {
        mcp.gateway().request_streamed(client, id, method, params)
    }
}

/// The response to a request: its answer, or a stream of events if messages come first.
async fn answer(
    post: Post<'_>,
    accepts: Accepts,
    mut exchange: Exchange,
    session: Option<SessionGuard>,
) -> Response<Body> {
    let first = loop {
        let next = tokio::select! {
            biased;
            next = exchange.next_or_stream() => next,
            () = post.state.probed() => {
                let form = if accepts.events() { Form::Events } else { Form::Json };
                return post.mcp.begun(form, Vec::new(), outs(exchange), session);
            }
        };
        let next = match next {
            Some(Next::Streamed(streamed)) => return body::streamed(*streamed, session),
            Some(Next::Out(out)) => Some(out),
            None => None,
        };
        match next {
            Some(Out::Answer(answer)) if accepts != Accepts::Events => {
                let status = match &session {
                    None => status(&answer),
                    Some(_) => StatusCode::OK,
                };
                return body::json(status, answer);
            }
            // Messages cannot be sent to a client that accepts no events.
            Some(Out::Message(message)) if accepts == Accepts::Json => {
                if let Some(session) = &session {
                    session.client().unheard(&message);
                }
            }
            Some(out) => break out,
            // The request was cancelled.
            None => return body::bare(StatusCode::ACCEPTED),
        }
    };
    post.mcp.streamed(vec![first], outs(exchange), session)
}

/// The HTTP status for the answer to a modern request.
fn status(answer: &Answer) -> StatusCode {
    match answer.error_code() {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION | PARSE_ERROR
            | INVALID_REQUEST,
        ) => StatusCode::BAD_REQUEST,
        Some(_) | None => StatusCode::OK,
    }
}

// === impl NoSession ===

impl NoSession {
    pub(crate) fn response(self, id: Option<&RequestId>) -> Response<Body> {
        let (status, code) = match self {
            Self::Missing | Self::Several => (StatusCode::BAD_REQUEST, INVALID_REQUEST),
            Self::Unknown => (StatusCode::NOT_FOUND, -32001),
            Self::Version => (StatusCode::BAD_REQUEST, INVALID_PARAMS),
        };
        body::json(status, Answer::error(id, code, &self.to_string()))
    }
}
