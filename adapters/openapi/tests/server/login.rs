//! What requests make themselves known by, in front of an interface that has its own tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_model::Credentials;
use capstan_openapi::OpenApiSettings;
use serde_json::{Value, json};

use crate::scene::{Scene, secret};
use crate::web::{Sent, Web, reply};

/// What the client of the tests proves itself by.
const SECRET: &str = "s3cret:with/signs";

/// A bank: it gives tokens to whom it knows, and takes the latest of them.
#[derive(Default)]
struct Bank {
    given: AtomicUsize,
    /// How long tokens last, as it says.
    lasts: Option<u64>,
    /// Whether it knows clients by their body only.
    in_body: bool,
    /// Tokens up to this one are no longer taken.
    withdrawn: Arc<AtomicUsize>,
}

// === impl Bank ===

impl Bank {
    fn answer(&self, sent: &Sent) -> String {
        if sent.line.starts_with("POST /oauth/token ") {
            return self.give(sent);
        }
        let Some(token) =
            sent.header("authorization").and_then(|held| held.strip_prefix("Bearer "))
        else {
            return reply(401, "application/json", r#"{"error":"who are you"}"#);
        };
        let number: usize = token.strip_prefix("token-number-").unwrap().parse().unwrap();
        if number <= self.withdrawn.load(Ordering::SeqCst) {
            return reply(401, "text/plain", &format!("{token} is no longer good"));
        }
        // Banks repeat what they are told.
        reply(200, "application/json", &format!("{{\"you\":\"{token}\"}}"))
    }

    fn give(&self, sent: &Sent) -> String {
        let pair = BASE64_STANDARD.encode("me:s3cret%3Awith%2Fsigns");
        let by_header = sent.header("authorization") == Some(&format!("Basic {pair}"));
        let by_body = sent.body.ends_with("&client_id=me&client_secret=s3cret%3Awith%2Fsigns");
        if !(if self.in_body { by_body } else { by_header }) {
            let words =
                format!(r#"{{"error":"invalid_client","error_description":"{}"}}"#, sent.body);
            return reply(401, "application/json", &words);
        }
        assert!(sent.body.starts_with("grant_type=client_credentials&scope=read%20pay"));
        let number = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        let name = format!("token-number-{number}");
        let token = match self.lasts {
            Some(lasts) => {
                json!({ "access_token": name, "token_type": "Bearer", "expires_in": lasts })
            }
            None => json!({ "access_token": name }),
        };
        reply(200, "application/json", &token.to_string())
    }
}

fn client(secret_word: &str, token_url: Option<String>) -> Credentials {
    let scopes = vec!["read".to_owned(), "pay".to_owned()];
    Credentials::Client { id: "me".to_owned(), secret: secret(secret_word), token_url, scopes }
}

/// The bank with what the configuration has for its schemes.
async fn scene(bank: Bank, auth: Vec<(&str, Credentials)>) -> Scene {
    let auth: Vec<_> = auth.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    let change = |settings: &mut OpenApiSettings, _: &str| {
        settings.headers = Vec::new();
        settings.secrets = auth.iter().map(|(_, one)| one.secret().clone()).collect();
        settings.auth = auth;
    };
    Scene::with("bank.json", move |sent| bank.answer(sent), change).await
}

fn lines(scene: &Scene) -> Vec<String> {
    let sent = scene.web.sent();
    sent.iter().skip(1).map(|sent| sent.line.replace(" HTTP/1.1", "")).collect()
}

fn text(answer: &Value) -> &str {
    answer.pointer("/content/0/text").unwrap().as_str().unwrap()
}

#[tokio::test]
async fn a_token_is_got_once_for_all_calls_and_never_shown() {
    let scene = scene(Bank::default(), vec![("login", client(SECRET, None))]).await;
    let day = || scene.call("balance", json!({ "day": "1" }));
    let (first, second) = futures::join!(day(), day());
    for answer in [first.unwrap(), second.unwrap(), scene.call("pay", json!({})).await.unwrap()] {
        assert_eq!(text(&answer), r#"{"you":"***"}"#);
        assert!(!answer.to_string().contains("token-number"), "{answer}");
    }
    let lines = lines(&scene);
    assert_eq!(lines.iter().filter(|line| *line == "POST /oauth/token").count(), 1, "{lines:?}");
    assert_eq!(scene.state(), "connected");
    // An operation that wants nothing is sent nothing, and no secret goes to the interface.
    let sent = scene.sends("open", json!({})).await;
    assert_eq!(sent.header("authorization"), None);
    assert!(
        scene.web.sent().iter().all(|sent| sent.line.contains("/token") || sent.body.is_empty())
    );
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once_for_all() {
    let withdrawn = Arc::new(AtomicUsize::new(0));
    let bank = Bank { withdrawn: Arc::clone(&withdrawn), ..Bank::default() };
    let scene = scene(bank, vec![("login", client(SECRET, None))]).await;
    scene.call("pay", json!({})).await.unwrap();
    withdrawn.store(1, Ordering::SeqCst);
    let pay = || scene.call("pay", json!({}));
    let (first, second) = futures::join!(pay(), pay());
    assert_eq!(text(&first.unwrap()), text(&second.unwrap()));
    let count = |line: &str| lines(&scene).iter().filter(|sent| *sent == line).count();
    assert_eq!((count("POST /oauth/token"), count("POST /balance")), (2, 5));
    // Who refuses every token is asked twice a call and no more, and repeats no token.
    withdrawn.store(100, Ordering::SeqCst);
    let answer = scene.call("pay", json!({})).await.unwrap();
    assert_eq!(
        (answer["isError"].as_bool(), text(&answer)),
        (Some(true), "HTTP status 401\n\n*** is no longer good")
    );
    assert_eq!((count("POST /oauth/token"), count("POST /balance")), (3, 7));
}

#[tokio::test]
async fn a_token_is_replaced_before_it_ends() {
    for (lasts, got) in [(Some(0), 3), (Some(3600), 1), (None, 1)] {
        let bank = Bank { lasts, ..Bank::default() };
        let scene = scene(bank, vec![("login", client(SECRET, None))]).await;
        for _ in 0..3 {
            scene.call("pay", json!({})).await.unwrap();
        }
        let tokens = lines(&scene).iter().filter(|line| *line == "POST /oauth/token").count();
        assert_eq!(tokens, got, "{lasts:?}");
    }
}

#[tokio::test]
async fn a_client_is_known_by_the_body_where_the_header_is_refused() {
    let bank = Bank { in_body: true, ..Bank::default() };
    let scene = scene(bank, vec![("login", client(SECRET, None))]).await;
    assert_eq!(text(&scene.call("pay", json!({})).await.unwrap()), r#"{"you":"***"}"#);
    assert_eq!(lines(&scene), ["POST /oauth/token", "POST /oauth/token", "POST /balance"]);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_and_the_error_says_why_and_no_secret() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let elsewhere = Arc::new(Web::start(Box::new(|_| reply(200, "text/plain", "ok"))).await);
    let target = elsewhere.origin.clone();
    let redirect = move |_: &Sent| {
        format!("HTTP/1.1 307 X\r\nlocation: {target}/oauth/token\r\ncontent-length: 0\r\n\r\n")
    };
    let redirecting = Web::start(Box::new(redirect)).await;
    let odd =
        Web::start(Box::new(|_| reply(200, "application/json", r#"{"access_token":"a b"}"#))).await;
    for (word, token_url, expected) in [
        ("wrong-secret-9", None, "refuses this client (invalid_client); check `client_id`"),
        (SECRET, Some(format!("http://{gone}/oauth/token")), "no connection"),
        (SECRET, Some(format!("{}/oauth/token", redirecting.origin)), "which is another server"),
        (SECRET, Some(format!("{}/oauth/token", odd.origin)), "without a bearer token"),
        (SECRET, Some(format!("http://127.1:{}/token", gone.port())), "address of this machine"),
    ] {
        let scene = scene(Bank::default(), vec![("login", client(word, token_url))]).await;
        let error = scene.call("pay", json!({})).await.unwrap_err();
        let error = format!("{error} {error:?}");
        assert!(error.contains(expected) && error.contains("openapi.auth.login"), "{error}");
        assert!(!error.contains(word) && !error.contains("wrong"), "{error}");
        assert!(lines(&scene).iter().all(|line| line == "POST /oauth/token"));
    }
    assert!(elsewhere.sent().is_empty());
}

#[tokio::test]
async fn keys_names_and_tokens_go_where_the_document_wants_them() {
    let token = |text: &str| Credentials::Token(secret(text));
    let name =
        || Credentials::Password { username: "ann".to_owned(), password: secret("pass:word") };
    let both = vec![
        ("key", token("first-key")),
        ("second", token("sec&ond=key")),
        ("name", name()),
        ("bearer", token("borne-token")),
        ("biscuit", token("crumbly-cookie")),
    ];
    let echo = |sent: &Sent| reply(200, "text/plain", &format!("{sent:?}"));
    let change = |settings: &mut OpenApiSettings, _: &str| {
        settings.headers = Vec::new();
        settings.auth = both.into_iter().map(|(name, one)| (name.to_owned(), one)).collect();
    };
    let scene = Scene::with("bank.json", echo, change).await;
    let sent = scene.sends("balance", json!({ "day": "1" })).await;
    assert_eq!(sent.line, "GET /balance?day=1&sec%20ond=sec%26ond%3Dkey HTTP/1.1");
    assert_eq!((sent.header("x-key"), sent.header("authorization")), (Some("first-key"), None));
    let properties = &scene.tool("balance").await["inputSchema"]["properties"];
    assert_eq!(properties.as_object().unwrap().keys().collect::<Vec<_>>(), ["day"]);
    let basic = format!("Basic {}", BASE64_STANDARD.encode("ann:pass:word"));
    for (tool, header, value) in [
        ("named", "authorization", Some(basic.as_str())),
        // Where it may be left out, what is there is sent.
        ("maybe", "authorization", Some(basic.as_str())),
        ("borne", "authorization", Some("Bearer borne-token")),
        ("sweet", "cookie", Some("sid=crumbly-cookie")),
        ("open", "authorization", None),
    ] {
        let told = scene.call(tool, json!({})).await.unwrap().to_string();
        assert_eq!(scene.web.last().header(header), value, "{tool}");
        for shown in ["borne-token", "crumbly", &basic, "pass:word"] {
            assert!(!told.contains(shown), "{tool}: {told}");
        }
    }
}

#[tokio::test]
async fn what_is_wanted_and_not_there_is_named_with_the_key_to_set() {
    let refuse = |_: &Sent| reply(403, "text/plain", "no");
    let bare = |settings: &mut OpenApiSettings, _: &str| settings.headers = Vec::new();
    let scene = Scene::with("bank.json", refuse, bare).await;
    scene.tools().await.unwrap();
    assert_eq!(
        scene.state(),
        "degraded: it requires a login: set `openapi.auth.login.client_id` and `openapi.auth.login.client_secret`"
    );
    for (tool, expected) in [
        ("named", ": it requires a name and a password: set `openapi.auth.name.username`"),
        ("borne", ": it requires a token: set `openapi.auth.bearer.token`"),
        ("sweet", ": it requires a key in the cookie `sid`: set `openapi.auth.biscuit.token`"),
        ("people", ": it requires a login: set `openapi.auth.people.token`, or"),
        ("openid", ": it requires a login: set `openapi.auth.openid.token`, or"),
        (
            "certain",
            ": it requires `mutualTLS` for its scheme `certificate`, which Capstan does not support",
        ),
        ("open", "\n\nno"),
        ("maybe", "\n\nno"),
    ] {
        let answer = scene.call(tool, json!({})).await.unwrap();
        assert!(text(&answer).starts_with(&format!("HTTP status 403{expected}")), "{answer}");
    }
    let with_header = |settings: &mut OpenApiSettings, _: &str| {
        settings.headers = vec![("authorization".to_owned(), secret("Bearer mine"))];
    };
    let scene = Scene::with("bank.json", refuse, with_header).await;
    let answer = scene.call("named", json!({})).await.unwrap();
    assert_eq!((text(&answer), scene.state().as_str()), ("HTTP status 403\n\nno", "connected"));
}

#[tokio::test]
async fn what_does_not_fit_the_document_is_said_and_never_sent() {
    let token = || Credentials::Token(secret("a-token-of-ours"));
    for (name, credentials, expected) in [
        ("nobody", token(), "is not a security scheme of the document, which has `"),
        (
            "key",
            Credentials::Token(secret("a-key\n")),
            "`openapi.auth.key.token` contains a line break",
        ),
        ("bearer", Credentials::Token(secret("a-token\r\n")), "contains a line break or another"),
        ("login", Credentials::Token(secret("tokén")), "another character that cannot be sent"),
        ("biscuit", Credentials::Token(secret("crumb\0")), "another character that cannot be sent"),
        ("name", token(), "the wrong kind of credentials: it requires a name and a password"),
        (
            "key",
            client(SECRET, None),
            "the wrong kind of credentials: it requires a key in the header",
        ),
        (
            "far",
            client(SECRET, None),
            "gets tokens from `https://far.example`, which is not the host",
        ),
        ("people", client(SECRET, None), "set `openapi.auth.people.token_url`"),
        ("openid", client(SECRET, None), "set `openapi.auth.openid.token_url`"),
        (
            "login",
            client(SECRET, Some("http://far.example/t".to_owned())),
            "must begin with `https://`",
        ),
        ("login", client(SECRET, Some("file:///etc/passwd".to_owned())), "not HTTP"),
    ] {
        let scene = scene(Bank::default(), vec![(name, credentials)]).await;
        scene.tools().await.unwrap();
        let state = scene.state();
        assert!(state.starts_with("degraded: ") && state.contains(expected), "{name}: {state}");
        let answer = scene.call("pay", json!({})).await.unwrap();
        assert!(text(&answer).starts_with("HTTP status 401"), "{answer}");
        assert_eq!(lines(&scene), ["POST /balance"], "{name}");
    }
}
