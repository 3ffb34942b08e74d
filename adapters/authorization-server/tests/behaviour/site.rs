//! A server with a browser in front of it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use capstan_authorization_server::{
    AuthorizationServer, ClientDocuments, Endpoint, Event, EventLog, Ports, Request, Response,
    Settings, SignIn, Signing, TrustedProxy, hash_password,
};
use capstan_http::Method;
use capstan_http::header::{HeaderMap, HeaderName, HeaderValue};
use capstan_hub::ports::{BoxFuture, Clock as _, StoredUser, UserStore as _};
use capstan_model::Secret;
use capstan_testkit::fakes::TestClock;
use serde_json::{Value, json};

use crate::memory::MemoryStore;

pub(crate) const ISSUER: &str = "https://mcp.example.com";
pub(crate) const CALLBACK: &str = "https://claude.ai/api/mcp/auth_callback";
/// The verifier of RFC 7636, appendix B, and its challenge.
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Documents by their URL.
#[derive(Default)]
pub(crate) struct FakeDocuments(pub(crate) Mutex<Vec<(String, String)>>);

/// Events, as text.
#[derive(Default)]
pub(crate) struct Events(pub(crate) Mutex<Vec<String>>);

/// A server, its state, and a browser.
pub(crate) struct Site {
    pub(crate) server: Arc<AuthorizationServer>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) documents: Arc<FakeDocuments>,
    pub(crate) events: Arc<Events>,
}

impl ClientDocuments for FakeDocuments {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        let documents = self.0.lock().unwrap().clone();
        let found = documents.into_iter().find(|(at, _)| at == url);
        let found = found.map(|(_, text)| Bytes::from(text));
        Box::pin(std::future::ready(found.ok_or_else(|| "there is none".to_owned())))
    }
}

impl EventLog for Events {
    fn record(&self, event: Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

pub(crate) fn settings() -> Settings {
    let proxy = TrustedProxy {
        networks: vec!["10.1.0.0/16".parse().unwrap()],
        user_header: "x-forwarded-user".to_owned(),
        groups_header: "x-forwarded-groups".to_owned(),
    };
    Settings {
        issuer: ISSUER.to_owned(),
        gateway: None,
        signing: Signing::Es256,
        sign_in: SignIn::Proxy(proxy),
        access_token_ttl: Duration::from_hours(1),
        refresh_token_ttl: Duration::from_hours(30 * 24),
        code_ttl: Duration::from_mins(1),
        scopes: vec!["read".to_owned(), "write".to_owned()],
        redirect_patterns: [
            CALLBACK,
            "https://chat.openai.com/aip/*/oauth/callback",
            "http://127.0.0.1/*",
            "http://localhost/*",
        ]
        .map(str::to_owned)
        .to_vec(),
        injected_roles: vec!["via-oauth".to_owned()],
    }
}

impl Site {
    pub(crate) async fn new() -> Self {
        Self::with(settings(), Arc::default()).await
    }

    /// A site where users type a password.
    pub(crate) async fn with_users() -> Self {
        let site =
            Self::with(Settings { sign_in: SignIn::Users, ..settings() }, Arc::default()).await;
        let user = StoredUser {
            name: "ann".to_owned(),
            password: hash_password(&Secret::new("correct horse".to_owned())).unwrap(),
            roles: vec!["dev".to_owned()],
            created_at: site.clock.now(),
        };
        assert!(site.store.add_user(&user).await.unwrap());
        site
    }

    pub(crate) async fn with(settings: Settings, store: Arc<MemoryStore>) -> Self {
        let (clock, documents) = (Arc::new(TestClock::default()), Arc::default());
        let events = Arc::<Events>::default();
        let ports = Ports {
            store: Arc::<MemoryStore>::clone(&store),
            clock: Arc::<TestClock>::clone(&clock),
            documents: Arc::<FakeDocuments>::clone(&documents),
            events: Arc::<Events>::clone(&events),
        };
        let server = AuthorizationServer::start(settings, ports).await.unwrap();
        Self { server, store, clock, documents, events }
    }

    pub(crate) async fn send(&self, endpoint: Endpoint, request: Request) -> Response {
        self.server.serve(endpoint, request).await
    }

    /// Opens the authorization endpoint.
    pub(crate) async fn open(&self, query: &str) -> Response {
        self.send(Endpoint::Authorize, get(query)).await
    }

    pub(crate) async fn post(&self, endpoint: Endpoint, form: &[(&str, &str)]) -> Response {
        self.send(endpoint, form_request(form)).await
    }

    /// Registers a client with one redirect address.
    pub(crate) async fn register(&self, redirect: &str) -> String {
        let answer = self.try_register(&json!({ "redirect_uris": [redirect] })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        body(&answer)["client_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn try_register(&self, metadata: &Value) -> Response {
        let mut request = get("");
        request.method = Method::POST;
        request.body = metadata.to_string().into();
        request.headers.insert("content-type", HeaderValue::from_static("application/json"));
        self.send(Endpoint::Register, request).await
    }

    /// Opens the page of a client and answers it, as a browser does.
    pub(crate) async fn answer(&self, query: &str, fields: &[(&str, &str)]) -> Response {
        let page = self.open(query).await;
        assert_eq!(page.status, 200, "{}", text(&page));
        self.send(Endpoint::Authorize, submit(&page, query, fields)).await
    }

    /// Lets a client in, and returns its code.
    pub(crate) async fn code(&self, client: &str) -> String {
        let sent = self.answer(&query(client, CALLBACK), &[("decision", "allow")]).await;
        assert_eq!(sent.status, 303, "{}", text(&sent));
        param(&sent, "code").unwrap()
    }

    pub(crate) async fn redeem(&self, client: &str, code: &str) -> Response {
        self.post(Endpoint::Token, &redemption(client, code)).await
    }

    /// Lets a client in, and returns its tokens.
    pub(crate) async fn tokens(&self, client: &str) -> Value {
        let code = self.code(client).await;
        let answer = self.redeem(client, &code).await;
        assert_eq!(answer.status, 200, "{}", text(&answer));
        body(&answer)
    }

    pub(crate) async fn refresh(&self, client: &str, token: &str) -> Response {
        let form =
            [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
        self.post(Endpoint::Token, &form).await
    }
}

/// The form that redeems a code.
pub(crate) fn redemption<'a>(client: &'a str, code: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", CALLBACK),
        ("code_verifier", VERIFIER),
    ]
}

/// A query of a well-behaved client.
pub(crate) fn query(client: &str, redirect: &str) -> String {
    encode(&[
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", redirect),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "st&te"),
        ("scope", "read other"),
    ])
}

/// A query with one parameter replaced or removed.
pub(crate) fn changed(client: &str, name: &str, value: Option<&str>) -> String {
    let query = query(client, CALLBACK);
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let mut pairs: Vec<(String, String)> = pairs.into_owned().collect();
    pairs.retain(|(key, _)| key != name);
    pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

pub(crate) fn encode(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// A request through the trusted proxy.
pub(crate) fn get(query: &str) -> Request {
    let mut headers = HeaderMap::new();
    headers.insert("x-forwarded-user", HeaderValue::from_static("ann"));
    headers.insert("x-forwarded-groups", HeaderValue::from_static("dev, ,ops"));
    Request {
        method: Method::GET,
        query: query.to_owned(),
        headers,
        body: Bytes::new(),
        peer: IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)),
    }
}

pub(crate) fn form_request(form: &[(&str, &str)]) -> Request {
    let mut request = get("");
    request.method = Method::POST;
    request.body = encode(form).into();
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert("content-type", kind);
    request
}

/// The request of a browser that submits a page.
pub(crate) fn submit(page: &Response, query: &str, fields: &[(&str, &str)]) -> Request {
    let html = text(page);
    let token = html.split("name=\"form_token\" value=\"").nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    let mut form = vec![("form_token", token)];
    form.extend_from_slice(fields);
    let mut request = form_request(&form);
    query.clone_into(&mut request.query);
    let cookie = header(page, "set-cookie").split(';').next().unwrap().to_owned();
    set(&mut request, "cookie", &cookie);
    set(&mut request, "origin", "null");
    set(&mut request, "sec-fetch-site", "same-origin");
    request
}

pub(crate) fn set(request: &mut Request, name: &'static str, value: &str) {
    request.headers.insert(HeaderName::from_static(name), value.parse().unwrap());
}

pub(crate) fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers.get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) fn text(response: &Response) -> String {
    String::from_utf8(response.body.to_vec()).unwrap()
}

pub(crate) fn body(response: &Response) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

/// The error code of an answer.
pub(crate) fn error(response: &Response) -> String {
    body(response)["error"].as_str().unwrap_or_default().to_owned()
}

/// A parameter of the address that a response redirects to.
pub(crate) fn param(response: &Response, name: &str) -> Option<String> {
    let url = url::Url::parse(header(response, "location")).ok()?;
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}
