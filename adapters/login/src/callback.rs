//! Receives the browser after a login: a listener on 127.0.0.1 for one login.
//!
//! **Invariant:** a request that does not belong to this login changes nothing. It must name this
//! machine as its host, the expected path, and the state of this login exactly once.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use capstan_http::Url;
use capstan_http::header::{
    CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, HeaderValue, REFERRER_POLICY,
};
use capstan_model::Secret;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::form_urlencoded;

use crate::error::LoginError;
use crate::random;
use crate::routes::CallbackRoutes;

/// The time limit of a connection, including the exchange of the code.
const CONNECTION: Duration = Duration::from_secs(90);

/// The time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// The largest number of connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// The path of the callback, unless the configuration sets one.
pub(crate) const PATH: &str = "/callback";

/// The callback of one login.
pub(crate) struct Callback {
    receiver: Receiver,
    /// The callback as the authorization server is told.
    pub(crate) redirect_uri: String,
}

/// The way by which the browser comes back.
enum Receiver {
    /// To a listener of this login.
    Listener(TcpListener, Arc<Expected>),
    /// To a route of a server that serves many logins.
    Routed(Arc<CallbackRoutes>),
}

/// The requests that belong to the login.
struct Expected {
    hosts: [String; 2],
    path: String,
}

/// The answer of the authorization server, as the browser brought it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Brought {
    /// A code.
    Code {
        code: Secret<String>,
        /// The issuer that the answer names.
        issuer: Option<String>,
    },
    /// An error.
    Error {
        code: String,
        description: String,
        /// The issuer that the answer names.
        issuer: Option<String>,
    },
}

/// An answer with the browser that waits for the result.
pub(crate) struct Arrival {
    pub(crate) brought: Brought,
    pub(crate) browser: oneshot::Sender<Outcome>,
}

/// The result of a login, as the browser shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tokens are stored.
    LoggedIn,
    /// There is no login; the log says why.
    Failed,
}

// === impl Callback ===

impl Callback {
    /// Listens on a port of this machine, or on a free one for 0. `uri` is the configured callback.
    pub(crate) async fn bind(port: u16, uri: Option<&Url>) -> Result<Self, LoginError> {
        let failed = |error: std::io::Error| LoginError::Port { port, reason: error.to_string() };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let path = uri.map_or(PATH, Url::path).to_owned();
        let redirect_uri = match uri {
            Some(uri) => uri.to_string(),
            None => format!("http://127.0.0.1:{port}{path}"),
        };
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let receiver = Receiver::Listener(listener, Arc::new(Expected { hosts, path }));
        Ok(Self { receiver, redirect_uri })
    }

    /// The callback at a route.
    pub(crate) fn routed(routes: &Arc<CallbackRoutes>) -> Self {
        let redirect_uri = routes.redirect_uri().to_owned();
        Self { receiver: Receiver::Routed(Arc::clone(routes)), redirect_uri }
    }

    /// Waits for the answer with this state. Other requests are refused and do not end the wait.
    pub(crate) async fn arrival(&self, state: &Secret<String>) -> Arrival {
        let (listener, expected) = match &self.receiver {
            Receiver::Listener(listener, expected) => (listener, expected),
            Receiver::Routed(routes) => return routes.arrival(state).await,
        };
        let (found, mut arrivals) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                Some(arrival) = arrivals.recv() => {
                    // The browser still waits for its page.
                    connections.detach_all();
                    return arrival;
                }
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let serving = serve(stream, Arc::clone(expected), state.clone(), found.clone());
                        connections.spawn(serving);
                    }
                }
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    expected: Arc<Expected>,
    state: Secret<String>,
    found: mpsc::Sender<Arrival>,
) {
    let service = service_fn(|request| {
        let (expected, state, found) = (Arc::clone(&expected), state.clone(), found.clone());
        async move { Ok::<_, Infallible>(answer(&request, &expected, &state, &found).await) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // A browser that leaves or is too slow changes nothing.
    drop(timeout(CONNECTION, connection).await);
}

async fn answer(
    request: &Request<Incoming>,
    expected: &Expected,
    state: &Secret<String>,
    found: &mpsc::Sender<Arrival>,
) -> Response<Full<Bytes>> {
    if let Err(status) = expected.check(request) {
        return page(status, NOT_HERE);
    }
    let Some(brought) = Brought::read(request.uri().query().unwrap_or_default(), state) else {
        return page(StatusCode::BAD_REQUEST, OTHER_LOGIN);
    };
    let (browser, outcome) = oneshot::channel();
    // The first answer counts.
    if found.try_send(Arrival { brought, browser }).is_err() {
        return page(StatusCode::BAD_REQUEST, OTHER_LOGIN);
    }
    match outcome.await {
        Ok(Outcome::LoggedIn) => page(StatusCode::OK, LOGGED_IN),
        Ok(Outcome::Failed) | Err(_) => page(StatusCode::BAD_REQUEST, FAILED),
    }
}

// === impl Expected ===

impl Expected {
    fn check(&self, request: &Request<Incoming>) -> Result<(), StatusCode> {
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_ours = self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        if !is_ours || hosts.next().is_some() || request.uri().host().is_some() {
            return Err(StatusCode::FORBIDDEN);
        }
        if request.uri().path() != self.path {
            return Err(StatusCode::NOT_FOUND);
        }
        if request.method() == Method::GET { Ok(()) } else { Err(StatusCode::METHOD_NOT_ALLOWED) }
    }
}

// === impl Brought ===

impl Brought {
    /// Reads the query of an answer; `None` if it does not belong to the login with this state.
    pub(crate) fn read(query: &str, state: &Secret<String>) -> Option<Self> {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        // A parameter that occurs twice has no meaning that both sides agree on.
        let one = |name: &str| -> Result<Option<String>, ()> {
            let mut values = pairs.iter().filter(|(key, _)| key == name);
            match (values.next(), values.next()) {
                (value, None) => Ok(value.map(|(_, value)| value.clone().into_owned())),
                (_, Some(_)) => Err(()),
            }
        };
        let given = one("state").ok()??;
        if !random::same(&given, state.reveal()) {
            return None;
        }
        let issuer = one("iss").ok()?;
        match (one("code").ok()?, one("error").ok()?) {
            (Some(code), None) if !code.is_empty() => {
                Some(Self::Code { code: Secret::new(code), issuer })
            }
            (None, Some(code)) => {
                let description = one("error_description").ok()?.unwrap_or_default();
                Some(Self::Error { code, description, issuer })
            }
            (Some(_), _) | (None, None) => None,
        }
    }

    /// Reads a line that the person pasted: the address that the browser was sent to, or the code.
    pub(crate) fn pasted(line: &str, state: &Secret<String>) -> Result<Self, &'static str> {
        let line = line.trim();
        let query = match (line.split_once('?'), line.contains("state=")) {
            (Some((_, query)), _) => query,
            (None, true) => line,
            (None, false)
                if line.contains(|c: char| c.is_whitespace() || c == '/') || line.is_empty() =>
            {
                return Err("paste the address that the browser was sent to, or the code");
            }
            (None, false) => {
                return Ok(Self::Code { code: Secret::new(line.to_owned()), issuer: None });
            }
        };
        let query = query.split('#').next().unwrap_or_default();
        Self::read(query, state).ok_or("the address does not belong to this login")
    }
}

/// The title and the text of a page.
type Text = (&'static str, &'static str);

const LOGGED_IN: Text =
    ("You are logged in", "Capstan has what it needs. You can close this page.");
const FAILED: Text = ("The login failed", "The terminal says why. You can close this page.");
const OTHER_LOGIN: Text =
    ("This is not the expected login", "Capstan still waits. Use the page that it opened last.");
const NOT_HERE: Text = ("There is nothing here", "Capstan waits for a login at another address.");

/// A page. Nothing in it comes from a request.
fn page(status: StatusCode, (title, text): Text) -> Response<Full<Bytes>> {
    let symbol = if status == StatusCode::OK { "&#10003;" } else { "!" };
    let tone = if status == StatusCode::OK { "#1a7f37" } else { "#9a6700" };
    let body = PAGE
        .replace("{title}", title)
        .replace("{text}", text)
        .replace("{symbol}", symbol)
        .replace("{tone}", tone);
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (
            HeaderName::from_static("content-security-policy"),
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

const PAGE: &str = include_str!("callback.html");

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> Secret<String> {
        Secret::new("s1".to_owned())
    }

    fn code(issuer: Option<&str>) -> Brought {
        Brought::Code { code: Secret::new("c".to_owned()), issuer: issuer.map(ToOwned::to_owned) }
    }

    #[test]
    fn only_an_answer_with_the_state_of_this_login_counts() {
        assert_eq!(Brought::read("code=c&state=s1", &state()), Some(code(None)));
        assert_eq!(
            Brought::read("iss=https%3A%2F%2Fi&state=s1&code=c", &state()),
            Some(code(Some("https://i")))
        );
        for foreign in [
            "",
            "code=c",
            "code=c&state=",
            "code=c&state=s2",
            "code=c&state=s1&state=s1",
            "code=c&state=s1&state=s2",
            "code=c&code=d&state=s1",
            "code=c&state=s1&iss=a&iss=b",
            "code=c&error=x&state=s1",
            "code=&state=s1",
            "state=s1",
        ] {
            assert_eq!(Brought::read(foreign, &state()), None, "{foreign}");
        }
    }

    #[test]
    fn a_person_can_paste_the_address_or_the_code() {
        for line in [
            "http://127.0.0.1:8765/callback?code=c&state=s1",
            "  http://localhost:1/x?state=s1&code=c#top \n",
            "code=c&state=s1",
            "c",
        ] {
            assert_eq!(Brought::pasted(line, &state()), Ok(code(None)), "{line}");
        }
        for line in
            ["", "http://127.0.0.1:8765/", "two words", "http://h/?code=c&state=other", "?code=c"]
        {
            assert!(Brought::pasted(line, &state()).is_err(), "{line}");
        }
    }
}
