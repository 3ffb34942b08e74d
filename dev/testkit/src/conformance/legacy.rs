//! HTTP of the revisions with a handshake: sessions, streams that can be taken up again, and the
//! two endpoints of 2024-11-05.

use std::sync::Arc;

use hyper::header::{ACCEPT, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::http::{empty, json_response, refuse};
use super::message::{Incoming, Request};
use super::server::{EXTENSION_CALL, Server};
use super::session::Session;
use super::sse::{Body, Marks, Sse, place};
use super::stream::Stream;

const SESSION: &str = "mcp-session-id";

/// The methods whose answers are streamed; clients meet both ways.
const STREAMED: [&str; 5] =
    ["tools/list", "tools/call", "prompts/get", "resources/read", EXTENSION_CALL];

/// Ends a session when its only stream ends.
struct Leave {
    server: Arc<Server>,
    session: Arc<Session>,
}

/// Serves a `POST` of Streamable HTTP.
pub(super) async fn post(
    server: &Arc<Server>,
    headers: &HeaderMap,
    message: Value,
) -> Response<Body> {
    let is_batch = message.is_array();
    let messages = if let Value::Array(messages) = message { messages } else { vec![message] };
    let messages: Result<Vec<Incoming>, _> = messages.into_iter().map(Incoming::read).collect();
    let messages = match messages {
        Ok(messages) => messages,
        Err(fault) => return json_response(StatusCode::BAD_REQUEST, fault.line(&Value::Null)),
    };
    if let [Incoming::Request(request)] = messages.as_slice()
        && request.method == "initialize"
        && !headers.contains_key(SESSION)
    {
        return initialize(server, request.clone()).await;
    }
    let session = match find(server, headers) {
        Ok(session) => session,
        Err((status, why)) => return refuse(status, why),
    };
    let batches = session.client().is_some_and(|client| client.revision.name() == "2025-03-26");
    if is_batch && !batches {
        return refuse(StatusCode::BAD_REQUEST, "this revision has no batches");
    }
    let requests = take_requests(&session, messages);
    if requests.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    reply(server, &session, requests).await
}

async fn initialize(server: &Arc<Server>, request: Request) -> Response<Body> {
    let session = Session::new();
    let id = request.id.clone();
    let reply = server.serve(&session, &session.main, request).await;
    if server.join(&session).is_err() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many sessions");
    }
    let mut response = json_response(StatusCode::OK, reply.line(&id).unwrap_or_default());
    if let Ok(value) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION, value);
    }
    response
}

/// Answers requests on one stream, or as JSON where that is enough.
async fn reply(
    server: &Arc<Server>,
    session: &Arc<Session>,
    requests: Vec<Request>,
) -> Response<Body> {
    let is_streamed = requests.len() > 1
        || requests.iter().any(|request| STREAMED.contains(&request.method.as_str()));
    let out = session.open();
    let mut reader = out.reader();
    let (server, owner, stream) = (Arc::clone(server), Arc::clone(session), Arc::clone(&out));
    // Goes on when the client goes away, who may come back for the rest.
    tokio::spawn(async move {
        let all = requests.into_iter().map(|request| async {
            let id = request.id.clone();
            if let Some(line) = server.serve(&owner, &stream, request).await.line(&id) {
                stream.push(line);
            }
        });
        futures::future::join_all(all).await;
        stream.end(None);
    });
    if is_streamed {
        return streamed(session, Sse::new(reader, Marks::Ids), 0);
    }
    match reader.next().await {
        Some(event) => json_response(StatusCode::OK, event.line.to_string()),
        None => empty(StatusCode::ACCEPTED),
    }
}

/// The stream, begun with an id where the revision knows that.
fn streamed(session: &Session, sse: Sse, place: usize) -> Response<Body> {
    let primes = session.client().is_some_and(|client| client.revision.since("2025-11-25"));
    if primes { sse.primed(place).response() } else { sse.response() }
}

/// Takes notifications and answers at once, and gives back the requests.
fn take_requests(session: &Session, messages: Vec<Incoming>) -> Vec<Request> {
    let mut requests = Vec::new();
    for message in messages {
        match message {
            Incoming::Request(request) => requests.push(request),
            Incoming::Notification { method, params } => session.heed(&method, &params),
            Incoming::Answer { id, said } => session.answered(&id, said),
        }
    }
    requests
}

/// Serves a `GET` of Streamable HTTP: messages without a request, or the rest of a stream.
pub(super) fn get(server: &Arc<Server>, headers: &HeaderMap) -> Response<Body> {
    let accepts = text(headers, ACCEPT.as_str()).unwrap_or_default();
    if !accepts.contains("text/event-stream") {
        return refuse(StatusCode::NOT_ACCEPTABLE, "accept event streams");
    }
    let session = match find(server, headers) {
        Ok(session) => session,
        Err((status, why)) => return refuse(status, why),
    };
    let Some(last) = text(headers, "last-event-id") else {
        // A message goes to one stream only: whoever came before is sent away.
        session.main.cut();
        let reader = session.main.reader();
        return Sse::new(reader, Marks::Ids).response();
    };
    let found = place(last).and_then(|(number, place)| Some((session.stream(number)?, place)));
    match found {
        Some((stream, place)) => {
            streamed(&session, Sse::new(stream.reader_after(place), Marks::Ids), place)
        }
        None => refuse(StatusCode::BAD_REQUEST, "no such event"),
    }
}

/// Serves a `DELETE` of Streamable HTTP.
pub(super) fn delete(server: &Arc<Server>, headers: &HeaderMap) -> Response<Body> {
    match find(server, headers) {
        Ok(session) => {
            server.leave(&session.id);
            empty(StatusCode::NO_CONTENT)
        }
        Err((status, why)) => refuse(status, why),
    }
}

/// Serves `GET /sse` of 2024-11-05: everything for the client goes here.
pub(super) fn open_sse(server: &Arc<Server>) -> Response<Body> {
    let session = Session::new();
    if server.join(&session).is_err() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many sessions");
    }
    let mut sse = Sse::new(session.main.reader(), Marks::Names);
    sse.head = format!("event: endpoint\ndata: /messages?sessionId={}\n\n", session.id);
    sse.guard = Some(Box::new(Leave { server: Arc::clone(server), session }));
    sse.response()
}

/// Serves `POST /messages` of 2024-11-05: everything from the client comes here.
pub(super) fn post_message(
    server: &Arc<Server>,
    query: Option<&str>,
    message: Value,
) -> Response<Body> {
    let id = query.and_then(|query| query.strip_prefix("sessionId="));
    let Some(session) = id.and_then(|id| server.session(id)) else {
        return refuse(StatusCode::NOT_FOUND, "no such session");
    };
    match Incoming::read(message) {
        Ok(message) => {
            let out = Arc::clone(&session.main);
            for request in take_requests(&session, vec![message]) {
                serve_apart(server, &session, &out, request);
            }
            empty(StatusCode::ACCEPTED)
        }
        Err(fault) => json_response(StatusCode::BAD_REQUEST, fault.line(&Value::Null)),
    }
}

/// Serves a request beside others of the same stream.
pub(super) fn serve_apart(
    server: &Arc<Server>,
    session: &Arc<Session>,
    out: &Arc<Stream>,
    request: Request,
) {
    let (server, session, out) = (Arc::clone(server), Arc::clone(session), Arc::clone(out));
    tokio::spawn(async move {
        let id = request.id.clone();
        if let Some(line) = server.serve(&session, &out, request).await.line(&id) {
            out.push(line);
        }
    });
}

/// The session that a request names, if it also speaks its revision.
fn find(server: &Server, headers: &HeaderMap) -> Result<Arc<Session>, (StatusCode, &'static str)> {
    let Some(id) = text(headers, SESSION) else {
        return Err((StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"));
    };
    if let Some(version) = text(headers, "mcp-protocol-version")
        && !server.options.speaks(version)
    {
        return Err((StatusCode::BAD_REQUEST, "unsupported protocol version"));
    }
    server.session(id).ok_or((StatusCode::NOT_FOUND, "no such session"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

// === impl Leave ===

impl Drop for Leave {
    fn drop(&mut self) {
        self.server.leave(&self.session.id);
    }
}
