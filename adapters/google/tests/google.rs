//! Tokens from a local server that answers as Google's endpoints do.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use capstan_google::{Endpoints, GoogleTokens, Places, Wanted};
use capstan_http::{HeaderSource as _, Headers};
use capstan_hub::ports::Clock as _;
use capstan_model::Secret;
use capstan_testkit::fakes::TestClock;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::form_urlencoded;

const IAP: &str = "client.apps.googleusercontent.com";
const ACCOUNT: &str = "sa@project.iam.gserviceaccount.com";

/// A request that came in.
#[derive(Clone, Debug)]
struct Seen {
    line: String,
    headers: String,
    body: String,
}

/// Google's endpoints and the metadata server, on one port of this machine.
struct Google {
    origin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Google {
    fn new(script: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let noted = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if let Some(request) = read(&stream) {
                    noted.lock().unwrap().push(request.clone());
                    let (status, body) = script(&request);
                    answer(stream, status, &body.to_string());
                }
            }
        });
        Self { origin, seen }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn endpoints(&self) -> Endpoints {
        Endpoints {
            token: format!("{}/token", self.origin),
            iam: self.origin.clone(),
            metadata: self.origin.strip_prefix("http://").unwrap().to_owned(),
        }
    }
}

fn read(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut headers) = (String::new(), String::new());
    reader.read_line(&mut line).ok()?;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? <= 2 {
            break;
        }
        headers.push_str(&header.to_lowercase());
    }
    let length = headers.lines().find_map(|header| header.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Seen { line: line.trim().to_owned(), headers, body: String::from_utf8(body).ok()? })
}

fn answer(mut stream: TcpStream, status: u16, body: &str) {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    // It may have hung up.
    drop(stream.write_all(format!("{head}{body}").as_bytes()));
}

/// Answers of Google without errors.
fn usual(seen: &Seen) -> (u16, Value) {
    if seen.line.contains("generateIdToken") {
        return (200, json!({"token": id_token(3600)}));
    }
    let token = json!({"access_token": "ya29.access", "expires_in": 3599, "token_type": "Bearer"});
    (200, token)
}

/// An ID token that expires after so many seconds.
fn id_token(seconds: i64) -> String {
    let exp = TestClock::default().now().as_second() + seconds;
    let part = |json: Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
    format!("{}.{}.c2lnbmF0dXJl", part(json!({"alg": "RS256"})), part(json!({"exp": exp})))
}

fn user() -> Value {
    json!({"type": "authorized_user", "client_id": "id", "client_secret": "s3cr3t",
        "refresh_token": "1//refresh"})
}

fn tokens(google: &Google, folder: &TempDir, wanted: Wanted) -> GoogleTokens {
    GoogleTokens {
        server: Secret::new("https://storage.googleapis.com/mcp".to_owned()),
        wanted,
        places: Places { named: None, usual: folder.path().join("adc.json") },
        endpoints: google.endpoints(),
        clock: Arc::new(TestClock::default()),
    }
}

fn access() -> Wanted {
    Wanted::Access { scopes: Vec::new() }
}

fn identity() -> Wanted {
    Wanted::Identity { audience: IAP.to_owned(), account: ACCOUNT.to_owned() }
}

fn write(folder: &TempDir, credentials: &Value) -> PathBuf {
    let path = folder.path().join("adc.json");
    fs::write(&path, credentials.to_string()).unwrap();
    path
}

fn form(body: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

fn bearer(headers: &Headers) -> &str {
    let [(name, value)] = headers.headers.as_slice() else { return "" };
    assert_eq!(name, "Authorization");
    value.reveal()
}

#[tokio::test]
async fn the_refresh_token_of_a_user_becomes_an_access_token() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    write(&folder, &user());
    let headers = tokens(&google, &folder, access()).fetch().await.unwrap();
    assert_eq!(bearer(&headers), "Bearer ya29.access");
    assert_eq!(headers.lifetime, Some(Duration::from_secs(3599 - 60)));
    let [seen] = &google.seen()[..] else { panic!("{:?}", google.seen()) };
    assert_eq!(seen.line, "POST /token HTTP/1.1");
    let expected = [
        ("grant_type", "refresh_token"),
        ("client_id", "id"),
        ("client_secret", "s3cr3t"),
        ("refresh_token", "1//refresh"),
    ];
    assert_eq!(form(&seen.body), expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[tokio::test]
async fn the_key_of_a_service_account_signs_for_the_scopes() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let file = json!({"type": "service_account", "client_email": ACCOUNT, "private_key_id": "k1",
        "private_key": key.serialize_pem(), "token_uri": "https://elsewhere.example/token"});
    let named = Some(write(&folder, &file));
    let scopes = vec!["scope-a".to_owned(), "scope-b".to_owned()];
    let tokens = tokens(&google, &folder, Wanted::Access { scopes });
    let places = Places { named, usual: folder.path().join("none") };
    let headers = GoogleTokens { places, ..tokens }.fetch().await.unwrap();
    assert_eq!(bearer(&headers), "Bearer ya29.access");
    let sent = form(&google.seen()[0].body);
    assert_eq!(sent[0].1, "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let public = DecodingKey::from_rsa_pem(key.public_key_pem().as_bytes()).unwrap();
    let mut check = Validation::new(Algorithm::RS256);
    check.set_audience(&[format!("{}/token", google.origin)]);
    check.set_issuer(&[ACCOUNT]);
    // The clock of the test stands still.
    check.validate_exp = false;
    let signed = decode::<Value>(&sent[1].1, &public, &check).unwrap();
    assert_eq!(signed.header.kid.as_deref(), Some("k1"));
    assert_eq!(signed.claims["scope"], "scope-a scope-b");
    let lasts = signed.claims["exp"].as_i64().unwrap() - signed.claims["iat"].as_i64().unwrap();
    assert_eq!(lasts, 3600);
}

#[tokio::test]
async fn a_machine_of_google_gets_the_token_of_its_own_account() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    let headers = tokens(&google, &folder, access()).fetch().await.unwrap();
    assert_eq!(bearer(&headers), "Bearer ya29.access");
    let [seen] = &google.seen()[..] else { panic!("{:?}", google.seen()) };
    let path = "/computeMetadata/v1/instance/service-accounts/default/token";
    assert!(seen.line.starts_with(&format!("GET {path}?scopes=https%3A%2F%2F")), "{}", seen.line);
    assert!(seen.headers.contains("metadata-flavor: google"), "{}", seen.headers);
}

#[tokio::test]
async fn c57_a_service_account_is_impersonated_for_the_audience() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    write(&folder, &user());
    let mut tokens = tokens(&google, &folder, identity());
    tokens.server = Secret::new("https://my-iap-service.run.app/sse".to_owned());
    let headers = tokens.fetch().await.unwrap();
    assert_eq!(bearer(&headers), format!("Bearer {}", id_token(3600)));
    let lifetime = headers.lifetime.unwrap().as_secs();
    assert!((3530..=3540).contains(&lifetime), "{lifetime}");
    let [_, seen] = &google.seen()[..] else { panic!("{:?}", google.seen()) };
    let path = format!("/v1/projects/-/serviceAccounts/{ACCOUNT}:generateIdToken");
    assert_eq!(seen.line, format!("POST {path} HTTP/1.1"));
    assert!(seen.headers.contains("authorization: bearer ya29.access"), "{}", seen.headers);
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!(body, json!({"audience": IAP, "includeEmail": true}));
}

#[tokio::test]
async fn impersonation_never_asks_the_metadata_server() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    let error = tokens(&google, &folder, identity()).fetch().await.unwrap_err();
    assert!(error.contains("gcloud auth application-default login"), "{error}");
    assert_eq!(google.seen().len(), 0);
}

#[tokio::test]
async fn tokens_go_to_google_or_to_this_machine_and_nowhere_in_the_clear() {
    let (google, folder) = (Google::new(usual), TempDir::new().unwrap());
    write(&folder, &user());
    for (server, wanted, is_fine) in [
        ("https://storage.googleapis.com/mcp", access(), true),
        ("http://127.0.0.1:8080/mcp", access(), true),
        ("https://example.com/mcp", access(), false),
        ("https://googleapis.com.example.com/mcp", access(), false),
        ("https://evilgoogleapis.com/mcp", access(), false),
        ("http://storage.googleapis.com/mcp", access(), false),
        ("http://127.0.0.1.example.com/mcp", access(), false),
        ("nothing", access(), false),
        ("https://example.com/mcp", identity(), true),
        ("http://example.com/mcp", identity(), false),
    ] {
        let before = google.seen().len();
        let mut tokens = tokens(&google, &folder, wanted);
        tokens.server = Secret::new(server.to_owned());
        assert_eq!(tokens.fetch().await.is_ok(), is_fine, "{server}");
        assert_eq!(google.seen().len() > before, is_fine, "{server}");
    }
}

#[tokio::test]
async fn unusable_credentials_are_named_without_their_secrets() {
    let google = Google::new(usual);
    for (text, reason) in [
        (
            "{\"type\": \"authorized_user\", \"refresh_token\": \"1//refresh\"",
            "cannot be understood",
        ),
        ("{\"type\": \"authorized_user\"}", "it has no `client_id`"),
        ("{\"type\": \"external_account\"}", "its type is `external_account`"),
        (
            "{\"type\": \"service_account\", \"client_email\": \"a\", \"private_key\": \"1//refresh\"}",
            "is not an RSA key in PEM",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("adc.json"), text).unwrap();
        let error = tokens(&google, &folder, access()).fetch().await.unwrap_err();
        assert!(error.contains(reason) && error.contains("adc.json"), "{error}");
        assert!(!error.contains("1//refresh"), "{error}");
    }
    let folder = TempDir::new().unwrap();
    let tokens = tokens(&google, &folder, access());
    let named = Some(folder.path().join("named.json"));
    let places = Places { named, ..tokens.places.clone() };
    let error = GoogleTokens { places, ..tokens }.fetch().await.unwrap_err();
    assert!(error.contains("named.json"), "a named file is not replaced by another: {error}");
    assert_eq!(google.seen().len(), 0);
}

#[tokio::test]
async fn a_refusal_of_google_is_told_with_its_reason() {
    for (status, body, reason) in [
        (
            400,
            json!({"error": "invalid_grant", "error_description": "expired"}),
            "status 400: expired",
        ),
        (403, json!({"error": {"message": "no permission"}}), "status 403: no permission"),
        (200, json!({"token_type": "Bearer"}), "has no `access_token`"),
        (200, json!({"access_token": ""}), "has no `access_token`"),
    ] {
        let (google, folder) =
            (Google::new(move |_| (status, body.clone())), TempDir::new().unwrap());
        write(&folder, &user());
        let error = tokens(&google, &folder, access()).fetch().await.unwrap_err();
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("1//refresh") && !error.contains("s3cr3t"), "{error}");
    }
}
