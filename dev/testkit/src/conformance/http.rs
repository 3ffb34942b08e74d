//! The way in over HTTP: Streamable HTTP at `/mcp`, HTTP with SSE at `/sse` and `/messages`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming as Received;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request as HttpRequest, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::call::META_VERSION;
use super::message::{
    Fault, Incoming, METHOD_NOT_FOUND, MISSING_CAPABILITY, MODERN, Reply, Request,
};
use super::options::Era;
use super::server::Server;
use super::session::{Abandon, Session};
use super::sse::{Body, Marks, Sse, whole};
use super::stream::Stream;
use super::{legacy, modern};

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 512;

/// The largest body that is read.
const MOST_BYTES: usize = 4 << 20;

const PARSE_ERROR: i64 = -32700;

pub(super) async fn serve(server: Arc<Server>, listener: TcpListener) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        let server = Arc::clone(&server);
        connections.spawn(async move {
            let answer = service_fn(move |request| {
                let server = Arc::clone(&server);
                async move { Ok::<_, Infallible>(answer(&server, request).await) }
            });
            // A connection that breaks concerns its client only.
            drop(http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await);
        });
    }
}

async fn answer(server: &Arc<Server>, request: HttpRequest<Received>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if !is_local(&parts.headers) {
        return refuse(StatusCode::FORBIDDEN, "only loopback names are served");
    }
    let legacy = server.options.era != Era::Modern;
    match (&parts.method, parts.uri.path()) {
        (&Method::POST, "/mcp") => post(server, &parts, body).await,
        (&Method::GET, "/mcp") if legacy => legacy::get(server, &parts.headers),
        (&Method::DELETE, "/mcp") if legacy => legacy::delete(server, &parts.headers),
        (&Method::GET, "/sse") if legacy => legacy::open_sse(server),
        (&Method::POST, "/messages") if legacy => match read(body).await {
            Ok(message) => legacy::post_message(server, parts.uri.query(), message),
            Err(response) => response,
        },
        (_, "/mcp") => refuse(StatusCode::METHOD_NOT_ALLOWED, "not allowed"),
        (_, _) => refuse(StatusCode::NOT_FOUND, "nothing is here"),
    }
}

async fn post(server: &Arc<Server>, parts: &Parts, body: Received) -> Response<Body> {
    let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if !header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/json")) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be JSON");
    }
    let accepts = header(ACCEPT).unwrap_or_default();
    if !["application/json", "text/event-stream"].iter().all(|kind| accepts.contains(kind)) {
        return refuse(StatusCode::NOT_ACCEPTABLE, "accept JSON and event streams");
    }
    let message = match read(body).await {
        Ok(message) => message,
        Err(response) => return response,
    };
    let is_modern = match server.options.era {
        Era::Legacy => false,
        Era::Modern => true,
        Era::Both => says_modern(&parts.headers, &message),
    };
    if !is_modern {
        return legacy::post(server, &parts.headers, message).await;
    }
    match Incoming::read(message) {
        Ok(Incoming::Request(request)) => serve_modern(server, &parts.headers, request).await,
        Ok(Incoming::Notification { .. }) => empty(StatusCode::ACCEPTED),
        // Nothing is ever asked over modern HTTP.
        Ok(Incoming::Answer { .. }) => refuse(StatusCode::BAD_REQUEST, "nothing was asked"),
        Err(fault) => json_response(StatusCode::BAD_REQUEST, fault.line(&Value::Null)),
    }
}

/// Whether a message to a server of both eras is of the modern one.
fn says_modern(headers: &HeaderMap, message: &Value) -> bool {
    let version = message.get("params").and_then(|params| params.get("_meta")?.get(META_VERSION));
    let header = headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
    version.is_some() || header == Some(MODERN.name())
}

async fn serve_modern(
    server: &Arc<Server>,
    headers: &HeaderMap,
    request: Request,
) -> Response<Body> {
    if let Err(fault) = modern::check_headers(headers, &request) {
        return json_response(StatusCode::BAD_REQUEST, fault.line(&request.id));
    }
    let (session, out) = (Session::new(), Stream::new(0));
    // Whoever goes away has cancelled.
    let abandon = Abandon(Arc::clone(&session));
    // Lists could be sent whole; one of them is streamed so that clients meet both.
    let streams = request.method == "tools/list";
    let mut reader = out.reader();
    let (owner, stream) = (Arc::clone(server), Arc::clone(&out));
    let serving = tokio::spawn(async move {
        let id = request.id.clone();
        let reply = owner.serve(&session, &stream, request).await;
        let status = status(&reply);
        stream.end(reply.line(&id));
        status
    });
    let Some(first) = reader.next().await else { return empty(StatusCode::OK) };
    if let (Some(line), false) = (out.only(), streams) {
        let status = serving.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return json_response(status, line.to_string());
    }
    let mut sse = Sse::new(reader, Marks::None);
    sse.head = format!("data: {}\n\n", first.line);
    sse.guard = Some(Box::new(abandon));
    sse.response()
}

fn status(reply: &Reply) -> StatusCode {
    match reply {
        Reply::Fault(Fault { code: METHOD_NOT_FOUND, .. }) => StatusCode::NOT_FOUND,
        Reply::Fault(Fault { code: MISSING_CAPABILITY, .. }) => StatusCode::BAD_REQUEST,
        Reply::Fault(_) | Reply::Result(_) | Reply::Raw(_) | Reply::Special(_) | Reply::Silence => {
            StatusCode::OK
        }
    }
}

/// The message in a body.
async fn read(body: Received) -> Result<Value, Response<Body>> {
    let Ok(body) = Limited::new(body, MOST_BYTES).collect().await else {
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"));
    };
    serde_json::from_slice(&body.to_bytes()).map_err(|_| {
        let fault = Fault::new(PARSE_ERROR, "not JSON");
        json_response(StatusCode::BAD_REQUEST, fault.line(&Value::Null))
    })
}

/// Refuses names under which a web page could reach us through its own name.
fn is_local(headers: &HeaderMap) -> bool {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = header(HOST).is_some_and(is_loopback);
    let origin = header(ORIGIN).is_none_or(|origin| {
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        name.is_some_and(is_loopback)
    });
    host && origin
}

fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(whole(""));
    *response.status_mut() = status;
    response
}

pub(super) fn json_response(status: StatusCode, line: String) -> Response<Body> {
    let mut response = Response::new(whole(line));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A refusal of what is not even a message.
pub(super) fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    json_response(status, Fault::new(-32000, why).line(&json!(null)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        is_local(&headers)
    }

    #[test]
    fn only_loopback_names_are_served() {
        for host in ["localhost", "localhost:80", "127.0.0.1:1234", "[::1]:9", "LOCALHOST:1"] {
            assert!(local(Some(host), None), "{host}");
            assert!(local(Some(host), Some(&format!("http://{host}"))), "{host}");
        }
        for host in ["evil.example.com", "127.0.0.1.example.com", "localhost:80:x", "", "::1"] {
            assert!(!local(Some(host), None), "{host}");
            assert!(!local(Some("localhost"), Some(&format!("http://{host}"))), "{host}");
        }
        assert!(!local(None, None));
        assert!(!local(Some("localhost"), Some("null")));
    }
}
