//! A server with its authorization server on one port, a person, and a clock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_http::{Client, PlainRequest, PlainResponse, WebAddress};
use capstan_hub::ports::{BoxFuture, Clock, LoginPerson, LoginStep};
use capstan_login::{LoggedIn, Login, LoginError, LoginRequest, LoginSettings, OAuthSettings};
use capstan_model::Secret;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use capstan_testkit::MemoryVault;
use futures::FutureExt;
use futures::future::pending;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

/// A request that a server got.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: String,
}

/// An answer: status, further headers, body.
pub(crate) type Answer = (u16, Vec<(&'static str, String)>, String);

type Script = Arc<dyn Fn(&Seen) -> Option<Answer> + Send + Sync>;

type Visit = Box<dyn Fn(&Page) -> Vec<String> + Send + Sync>;

type Line = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// A server on this machine that answers by a script and keeps what it got.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) origin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A clock that stands still until a test moves it.
#[derive(Default)]
pub(crate) struct SetClock(AtomicI64);

/// A login at a server with everything around it.
pub(crate) struct Stage {
    pub(crate) peer: Peer,
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) clock: Arc<SetClock>,
}

/// A person whose browser sends these requests to the callback, one after the other.
pub(crate) struct Visitor {
    visit: Visit,
    /// What the browser got for them.
    pages: watch::Sender<Vec<String>>,
    /// What was shown.
    shown: Mutex<Vec<String>>,
    /// The line to paste, if any.
    pub(crate) line: Line,
    url: Mutex<String>,
}

/// The page that a person is sent to.
pub(crate) struct Page {
    query: HashMap<String, String>,
    /// The host and port of the callback.
    pub(crate) callback: String,
}

// === impl Peer ===

impl Peer {
    pub(crate) async fn new(
        script: impl Fn(&str, &Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (own, log) = (origin.clone(), Arc::clone(&seen));
        let script: Script = Arc::new(move |seen| script(&own, seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self { origin, seen }
    }

    /// The requests whose path begins like this.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.path.starts_with(path)).cloned().collect()
    }
}

async fn serve(mut stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Seen>>>) {
    let Some(seen) = receive(&mut stream).await else { return };
    log.lock().unwrap().push(seen.clone());
    let (status, headers, body) = script(&seen).unwrap_or_else(|| (404, Vec::new(), String::new()));
    let mut head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head.extend([name, ": ", &value, "\r\n"]);
    }
    drop(stream.write_all(format!("{head}\r\n{body}").as_bytes()).await);
    drop(stream.shutdown().await);
}

async fn receive(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length =
                length.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
                let mut words = line.split(' ');
                let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
                return Some(Seen {
                    method,
                    path,
                    headers: headers.to_owned(),
                    body: body.to_owned(),
                });
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend(piece.iter().take(read)),
        }
    }
}

impl Seen {
    /// A header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// A field of the form in the body.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = url::form_urlencoded::parse(self.body.as_bytes());
        fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

// === impl SetClock ===

impl SetClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_000_000 + self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.0.load(Ordering::SeqCst)).unwrap())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.advance(i64::try_from(duration.as_secs()).unwrap());
        tokio::task::yield_now().boxed()
    }
}

// === impl Stage ===

impl Stage {
    pub(crate) async fn new(
        script: impl Fn(&str, &Seen) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let peer = Peer::new(script).await;
        Self { peer, vault: Arc::default(), clock: Arc::default() }
    }

    /// A login, as a process of its own has it.
    pub(crate) fn login(&self) -> Login {
        self.login_with(OAuthSettings::default())
    }

    pub(crate) fn login_with(&self, oauth: OAuthSettings) -> Login {
        let settings = LoginSettings {
            server: "s".parse().unwrap(),
            url: Secret::new(format!("{}/mcp", self.peer.origin)),
            addresses: AddressPolicy::default(),
            login: None,
            oauth,
        };
        let (vault, clock) = (Arc::clone(&self.vault), Arc::clone(&self.clock));
        Login::new(settings, vault, clock).unwrap()
    }

    /// The client of a server that uses the login.
    pub(crate) fn client(&self, login: &Login) -> Client {
        let address = WebAddress::parse(&format!("{}/mcp", self.peer.origin)).unwrap();
        let masker = Arc::new(Masker::default());
        let client = Client::new(&address, &[], masker, &AddressPolicy::default()).unwrap();
        client.with(Arc::new(login.clone()))
    }
}

/// Sends a request to the server.
pub(crate) async fn call(client: &Client) -> Result<PlainResponse, String> {
    let request =
        PlainRequest { method: "POST", path: "/mcp".to_owned(), ..PlainRequest::default() };
    client.send(request, 1 << 20).await.map_err(|error| error.to_string())
}

/// Logs in with a browser.
pub(crate) async fn log_in(login: &Login, person: &Visitor) -> Result<LoggedIn, LoginError> {
    login.log_in(&wish(), person).await
}

pub(crate) fn wish() -> LoginRequest {
    let wait = Duration::from_secs(20);
    LoginRequest { scopes: None, browser: true, port: None, wait, routes: None }
}

// === impl Visitor ===

impl Visitor {
    /// A person who logs in as expected.
    pub(crate) fn willing() -> Self {
        Self::new(|page| vec![page.answer("code=c0de")])
    }

    pub(crate) fn new(visit: impl Fn(&Page) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self {
            visit: Box::new(visit),
            pages: watch::Sender::default(),
            shown: Mutex::default(),
            line: Box::new(|_| None),
            url: Mutex::default(),
        }
    }
}

impl Visitor {
    /// What the browser got, once it is this many pages.
    pub(crate) async fn pages(&self, count: usize) -> Vec<String> {
        let mut pages = self.pages.subscribe();
        pages.wait_for(|pages| pages.len() >= count).await.unwrap().clone()
    }

    /// What was shown.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }
}

impl LoginPerson for Visitor {
    fn show(&self, step: LoginStep<'_>) {
        self.shown.lock().unwrap().push(format!("{step:?}"));
    }

    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, ()> {
        url.clone_into(&mut self.url.lock().unwrap());
        let page = Page::read(url);
        let (requests, pages) = ((self.visit)(&page), self.pages.clone());
        tokio::spawn(async move {
            for request in requests {
                let mut stream = TcpStream::connect(&page.callback).await.unwrap();
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                drop(stream.read_to_string(&mut answer).await);
                pages.send_modify(|pages| pages.push(answer));
            }
        });
        async {}.boxed()
    }

    fn paste(&self) -> BoxFuture<'_, String> {
        match (self.line)(&self.url.lock().unwrap()) {
            Some(line) => async { line }.boxed(),
            None => pending().boxed(),
        }
    }
}

// === impl Page ===

impl Page {
    pub(crate) fn read(url: &str) -> Self {
        let url = Url::parse(url).unwrap();
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let redirect = Url::parse(query.get("redirect_uri").unwrap()).unwrap();
        let callback = format!("127.0.0.1:{}", redirect.port().unwrap());
        Self { query, callback }
    }

    /// The request with which a browser brings these parameters and the right state.
    pub(crate) fn answer(&self, parameters: &str) -> String {
        self.get(&format!("{parameters}&state={}", self.of("state")))
    }

    /// A parameter of the page.
    pub(crate) fn of(&self, name: &str) -> &str {
        self.query.get(name).unwrap()
    }

    pub(crate) fn get(&self, query: &str) -> String {
        let host = &self.callback;
        format!("GET /callback?{query} HTTP/1.1\r\nhost: {host}\r\n\r\n")
    }
}

/// An answer with a JSON body.
pub(crate) fn json_answer(status: u16, body: &Value) -> Answer {
    (status, vec![("content-type", "application/json".to_owned())], body.to_string())
}

/// The metadata of a server and of its authorization server, and registration.
pub(crate) fn metadata(origin: &str, seen: &Seen) -> Option<Answer> {
    let body = match seen.path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [format!("{origin}/as")],
            "scopes_supported": ["read"],
        }),
        "/.well-known/oauth-authorization-server/as" => json!({
            "issuer": format!("{origin}/as"),
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "revocation_endpoint": format!("{origin}/revoke"),
            "device_authorization_endpoint": format!("{origin}/device"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": false,
        }),
        "/register" => json!({ "client_id": "client-1", "token_endpoint_auth_method": "none" }),
        _ => return None,
    };
    Some(json_answer(200, &body))
}

/// The refusal of a request without a token that the server accepts.
pub(crate) fn unauthorized() -> Answer {
    (401, vec![("www-authenticate", "Bearer scope=\"read\"".to_owned())], String::new())
}
