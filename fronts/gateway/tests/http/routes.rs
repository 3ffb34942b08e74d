//! Mounted routes, and the authentication of their requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use capstan_gateway::http::{
    Authentication, Authenticator, Body, HttpRequest, PublicEndpoint, RemotePeer, Unauthenticated,
};
use capstan_model::Caller;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use hyper::Response;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::http::request::Parts;

use crate::harness::{Harness, initialize};
use capstan_testkit::http::{HttpConnection, post, request};

/// Takes the token for the caller's name. `slow` names take a future.
#[derive(Default)]
struct Tokens {
    asked: Arc<AtomicUsize>,
}

/// Answers with the segment of its path.
struct Echo;

impl Authenticator for Tokens {
    fn authenticate<'a>(&'a self, head: &'a Parts, _: &'a RemotePeer) -> Authentication<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let token = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let name = token.and_then(|token| token.strip_prefix("Bearer "));
        let Some(name) = name else {
            let challenge = HeaderValue::from_static("Bearer");
            return Authentication::Ready(Err(Unauthenticated::Challenge(challenge)));
        };
        let caller = Arc::new(Caller::remote(name, Vec::new()));
        if name == "slow" {
            return Authentication::Wait(ready(Ok(caller)).boxed());
        }
        Authentication::Ready(Ok(caller))
    }
}

impl PublicEndpoint for Echo {
    fn serve(&self, request: HttpRequest) -> BoxFuture<'_, Response<Body>> {
        ready(Response::new(Body::from(Bytes::from(request.segment)))).boxed()
    }
}

async fn harness() -> (Harness, Arc<AtomicUsize>) {
    let tokens = Tokens::default();
    let asked = Arc::clone(&tokens.asked);
    let harness = Harness::serving(|mut site| {
        site.authenticator = Arc::new(tokens);
        site
    });
    (harness.await, asked)
}

#[tokio::test]
async fn a_route_that_needs_a_caller_refuses_requests_without_one() {
    let (harness, _) = harness().await;
    let hello = || post("/mcp", &initialize("2025-11-25"));
    for request in [
        hello(),
        hello().at("/servers/files/mcp"),
        hello().at("/messages"),
        request("GET", "/sse"),
        request("GET", "/metrics"),
        request("DELETE", "/mcp"),
    ] {
        let answer = harness.ask(&request).await;
        assert_eq!(answer.head.status, 401, "{}", request.text());
        assert_eq!(answer.head.get("www-authenticate"), Some("Bearer"));
    }
    for token in ["Bearer ann", "Bearer slow"] {
        let answer = harness.ask(&hello().with("Authorization", token)).await;
        assert_eq!(answer.head.status, 200, "{token}");
    }
}

#[tokio::test]
async fn requests_that_need_no_caller_are_not_authenticated() {
    let (harness, asked) = harness().await;
    for (request, status) in [
        (request("GET", "/health"), 200),
        (request("GET", "/ready"), 200),
        (request("GET", "/nowhere"), 404),
        (request("POST", "/mcp").with("Host", "evil.example"), 403),
        (request("POST", "/mcp").with("Origin", "http://evil.example"), 403),
    ] {
        assert_eq!(harness.ask(&request).await.head.status, status, "{}", request.text());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn two_requests_of_one_connection_can_have_two_callers() {
    let (harness, _) = harness().await;
    let mut peer = HttpConnection::new(harness.address).await;
    let hello = post("/mcp", &initialize("2025-11-25")).with("Authorization", "Bearer ann");
    let hello = peer.ask(&hello).await;
    let session = hello.head.get("mcp-session-id").unwrap();
    let ping = post("/mcp", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let ping = ping.with("Mcp-Session-Id", session);
    for (token, status) in [("Bearer bob", 404), ("Bearer ann", 200)] {
        let answer = peer.ask(&ping.clone().with("Authorization", token)).await;
        assert_eq!(answer.head.status, status, "{token}");
    }
}

#[tokio::test]
async fn an_endpoint_can_be_mounted_beside_the_others() {
    let harness = Harness::serving(|mut site| {
        site.routes = site.routes.public("/echo/{}/end", Echo);
        site
    })
    .await;
    assert_eq!(harness.ask(&request("GET", "/echo/x-y/end")).await.body, "x-y");
    assert_eq!(harness.ask(&request("GET", "/echo/x/y/end")).await.head.status, 404);
    assert_eq!(harness.ask(&request("GET", "/health")).await.body, "ok\n");
}
