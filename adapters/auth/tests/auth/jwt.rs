//! Tokens of an issuer: an issuer on loopback signs them, rotates its keys, and fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use capstan_auth::{
    AccessTokenType, Algorithm, Authenticating, Chain, Jwt, JwtSettings, Refusal, Refused,
};
use capstan_model::Caller;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Seen, TestClock, ask, bearer, here};

const INVALID: Refused = Refused::Credentials(Refusal::Invalid);
const UNAVAILABLE: Refused = Refused::Credentials(Refusal::Unavailable);

/// An issuer on loopback.
struct Issuer {
    url: String,
    /// The documents, by path.
    documents: Arc<Mutex<BTreeMap<String, String>>>,
    /// Requests that it got.
    requests: Arc<AtomicUsize>,
}

/// A key of an issuer.
struct SigningKey {
    id: &'static str,
    algorithm: Algorithm,
    private: EncodingKey,
    public: Value,
}

impl Issuer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let documents: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let requests: Arc<AtomicUsize> = Arc::default();
        let (served, counted) = (Arc::clone(&documents), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (served, counted) = (Arc::clone(&served), Arc::clone(&counted));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    counted.fetch_add(1, Ordering::SeqCst);
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    let body = served.lock().unwrap().get(&path).cloned();
                    let (status, body) = match body {
                        Some(body) => ("200 OK", body),
                        None => ("404 Not Found", String::new()),
                    };
                    let answer = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    drop(stream.write_all(answer.as_bytes()).await);
                });
            }
        });
        let issuer = Self { url, documents, requests };
        issuer.serve_metadata("/.well-known/openid-configuration");
        issuer
    }

    fn serve_metadata(&self, path: &str) {
        let metadata = json!({ "issuer": self.url, "jwks_uri": format!("{}/keys", self.url) });
        self.serve(path, &metadata);
    }

    fn serve(&self, path: &str, document: &Value) {
        self.documents.lock().unwrap().insert(path.to_owned(), document.to_string());
    }

    fn publish(&self, keys: &[&SigningKey]) {
        let keys: Vec<&Value> = keys.iter().map(|key| &key.public).collect();
        self.serve("/keys", &json!({ "keys": keys }));
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn settings(&self) -> JwtSettings {
        JwtSettings {
            issuer: self.url.clone(),
            jwks_url: None,
            audience: vec!["https://mcp.example.com/*".to_owned()],
            algorithms: vec![
                Algorithm::RS256,
                Algorithm::PS256,
                Algorithm::ES256,
                Algorithm::EdDSA,
            ],
            subject_claim: "sub".to_owned(),
            roles_claim: "groups".to_owned(),
            required_claims: BTreeMap::new(),
            access_tokens: AccessTokenType::Any,
            leeway: Duration::from_secs(30),
            networks: Vec::new(),
        }
    }

    fn chain(&self, clock: &Arc<TestClock>) -> Chain {
        chain(self.settings(), clock)
    }

    /// The claims of a token that is valid for ten minutes.
    fn claims(&self, clock: &TestClock) -> Value {
        let now = clock.time().as_second();
        json!({
            "iss": self.url, "aud": "https://mcp.example.com/mcp", "sub": "ann",
            "exp": now + 600, "iat": now, "groups": ["dev"],
        })
    }
}

fn chain(settings: JwtSettings, clock: &Arc<TestClock>) -> Chain {
    let jwt = Jwt::new(settings, clock.clone()).unwrap();
    Chain::new(clock.clone(), Seen::new()).with(jwt)
}

impl SigningKey {
    fn eddsa(id: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let private = pair.to_pkcs8v1().unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let public = json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "use": "sig", "x": x });
        let private = EncodingKey::from_ed_der(private.as_ref());
        Self { id, algorithm: Algorithm::EdDSA, private, public }
    }

    fn es256(id: &'static str) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let private = pair.to_pkcs8v1().unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = (&point[1..33], &point[33..65]);
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let public = json!({ "kty": "EC", "crv": "P-256", "kid": id, "alg": "ES256", "x": encode(x), "y": encode(y) });
        let private = EncodingKey::from_ec_der(private.as_ref());
        Self { id, algorithm: Algorithm::ES256, private, public }
    }

    fn rs256(id: &'static str) -> Self {
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let public = pair.public_key();
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let n = encode(public.modulus().big_endian_without_leading_zero());
        let e = encode(public.exponent().big_endian_without_leading_zero());
        let public = json!({ "kty": "RSA", "kid": id, "use": "sig", "n": n, "e": e });
        let der = STANDARD.encode(pair.as_der().unwrap().as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
        let private = EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap();
        Self { id, algorithm: Algorithm::RS256, private, public }
    }

    fn header(&self) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_with(&self.header(), claims)
    }

    fn sign_with(&self, header: &Header, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, &self.private).unwrap()
    }
}

#[tokio::test]
async fn tokens_of_every_kind_of_key_are_accepted_and_then_need_no_future() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let keys = [SigningKey::rs256("r"), SigningKey::es256("e"), SigningKey::eddsa("d")];
    issuer.publish(&keys.iter().collect::<Vec<_>>());
    let chain = issuer.chain(&clock);
    for key in &keys {
        let token = key.sign(&issuer.claims(&clock));
        let ann = ask(&chain, &bearer(&token), here()).await.unwrap();
        assert_eq!((ann.subject.as_str(), ann.roles.join(" ").as_str()), ("ann", "dev"));
        let (anonymous, again) = (Arc::new(Caller::anonymous()), bearer(&token));
        let answer = chain.authenticate(&again, here(), &anonymous);
        assert!(matches!(answer, Authenticating::Ready(Ok(_))), "{}", key.id);
    }
    assert_eq!(issuer.requests(), 2, "metadata and keys, once");
}

#[tokio::test]
async fn a_new_key_of_the_issuer_is_found_and_a_withdrawn_one_no_longer_counts() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let (old, new) = (SigningKey::es256("old"), SigningKey::eddsa("new"));
    issuer.publish(&[&old]);
    let chain = issuer.chain(&clock);
    let of_old = old.sign(&issuer.claims(&clock));
    assert!(ask(&chain, &bearer(&of_old), here()).await.is_ok());
    issuer.publish(&[&new]);
    let of_new = new.sign(&issuer.claims(&clock));
    assert_eq!(ask(&chain, &bearer(&of_new), here()).await.err(), Some(INVALID), "just fetched");
    clock.advance(Duration::from_secs(10));
    assert!(ask(&chain, &bearer(&of_new), here()).await.is_ok(), "the rotation is noticed");
    assert_eq!(ask(&chain, &bearer(&of_old), here()).await.err(), Some(INVALID));
}

#[tokio::test]
async fn a_key_under_the_same_id_is_found_as_well() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let (old, new) = (SigningKey::eddsa("k"), SigningKey::eddsa("k"));
    issuer.publish(&[&old]);
    let chain = issuer.chain(&clock);
    assert!(ask(&chain, &bearer(&old.sign(&issuer.claims(&clock))), here()).await.is_ok());
    issuer.publish(&[&new]);
    clock.advance(Duration::from_secs(10));
    assert!(ask(&chain, &bearer(&new.sign(&issuer.claims(&clock))), here()).await.is_ok());
}

#[tokio::test]
async fn made_up_key_ids_do_not_flood_the_issuer_and_one_fetch_serves_all() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::eddsa("k");
    issuer.publish(&[&key]);
    let chain = issuer.chain(&clock);
    let good = bearer(&key.sign(&issuer.claims(&clock)));
    let answers = futures::future::join_all((0..20).map(|_| ask(&chain, &good, here()))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(issuer.requests(), 2);
    for number in 0..15 {
        let header = Header { kid: Some(format!("made-up-{number}")), ..key.header() };
        let token = key.sign_with(&header, &issuer.claims(&clock));
        assert_eq!(ask(&chain, &bearer(&token), here()).await.err(), Some(INVALID));
    }
    assert_eq!(issuer.requests(), 2);
}

#[tokio::test]
async fn an_issuer_that_fails_is_not_noticed_for_a_while_and_then_says_so() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::eddsa("k");
    let chain = issuer.chain(&clock);
    let token = key.sign(&issuer.claims(&clock));
    assert_eq!(ask(&chain, &bearer(&token), here()).await.err(), Some(UNAVAILABLE), "no keys yet");
    issuer.publish(&[&key]);
    clock.advance(Duration::from_secs(10));
    assert!(ask(&chain, &bearer(&token), here()).await.is_ok());
    issuer.documents.lock().unwrap().clear();
    clock.advance(Duration::from_hours(1));
    let later = key.sign(&issuer.claims(&clock));
    assert!(ask(&chain, &bearer(&later), here()).await.is_ok(), "with the keys of an hour ago");
    clock.advance(Duration::from_hours(24));
    let later = key.sign(&issuer.claims(&clock));
    assert_eq!(ask(&chain, &bearer(&later), here()).await.err(), Some(UNAVAILABLE));
}

#[tokio::test]
async fn a_verified_token_is_refused_when_it_expires() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::eddsa("k");
    issuer.publish(&[&key]);
    let chain = issuer.chain(&clock);
    let mut claims = issuer.claims(&clock);
    claims["exp"] = json!(clock.time().as_second() + 60);
    let token = bearer(&key.sign(&claims));
    assert!(ask(&chain, &token, here()).await.is_ok());
    clock.advance(Duration::from_secs(88));
    assert!(ask(&chain, &token, here()).await.is_ok(), "within the leeway");
    clock.advance(Duration::from_secs(3));
    assert_eq!(ask(&chain, &token, here()).await.err(), Some(INVALID));
}

#[tokio::test]
async fn tokens_that_attack_the_verification_are_refused() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let (key, other) = (SigningKey::rs256("k"), SigningKey::rs256("k"));
    issuer.publish(&[&key]);
    let chain = issuer.chain(&clock);
    let claims = issuer.claims(&clock);
    let good = key.sign(&claims);
    assert!(ask(&chain, &bearer(&good), here()).await.is_ok());
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let modulus = URL_SAFE_NO_PAD.decode(key.public["n"].as_str().unwrap()).unwrap();
    let hs256 = Header { alg: Algorithm::HS256, ..key.header() };
    let confused = |secret: &[u8]| {
        jsonwebtoken::encode(&hs256, &claims, &EncodingKey::from_secret(secret)).unwrap()
    };
    let mut admin = claims.clone();
    admin["groups"] = json!(["admin"]);
    let own_key: Header =
        Header { jwk: serde_json::from_value(other.public.clone()).ok(), ..other.header() };
    let crit = Header { crit: Some(vec!["exp".to_owned()]), ..key.header() };
    let typ = |typ: &str| Header { typ: Some(typ.to_owned()), ..key.header() };
    for (what, token) in [
        ("HS256 with the public modulus", confused(&modulus)),
        ("HS256 with the public key as text", confused(key.public.to_string().as_bytes())),
        ("no algorithm", format!("{}.{payload}.", encode(&json!({ "alg": "none", "typ": "JWT" })))),
        ("no algorithm, in capitals", format!("{}.{payload}.", encode(&json!({ "alg": "NONE" })))),
        ("no signature", format!("{header}.{payload}.")),
        ("other claims", format!("{header}.{}.{signature}", encode(&admin))),
        ("a key of someone else", other.sign(&claims)),
        ("a key in the token itself", other.sign_with(&own_key, &claims)),
        ("a critical header", key.sign_with(&crit, &claims)),
        ("a logout token", key.sign_with(&typ("logout+jwt"), &claims)),
        ("four parts", format!("{good}.x")),
        ("two parts", format!("{header}.{payload}")),
        ("a truncated token", good.get(..good.len() - 10).unwrap().to_owned()),
    ] {
        let refused = ask(&chain, &bearer(&token), here()).await;
        assert_eq!(refused.err(), Some(INVALID), "{what}");
    }
    let large = bearer(&format!("{header}.{}.{signature}", "A".repeat(20_000)));
    let refused = ask(&chain, &large, here()).await;
    assert_eq!(
        refused.err(),
        Some(Refused::Credentials(Refusal::Missing)),
        "too large to be looked at"
    );
}

#[tokio::test]
async fn tokens_for_others_and_out_of_time_are_refused() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::eddsa("k");
    issuer.publish(&[&key]);
    let claims = issuer.claims(&clock);
    let chain = issuer.chain(&clock);
    let now = clock.time().as_second();
    for (claim, value) in [
        ("aud", json!("https://other.example.com/mcp")),
        ("aud", json!("https://mcp.example.com.evil.test/mcp")),
        ("iss", json!("https://evil.test")),
        ("exp", json!(now - 31)),
        ("exp", Value::Null),
        ("nbf", json!(now + 120)),
        ("sub", json!("operator")),
        ("sub", json!("a\u{1b}[31m")),
        ("nonce", json!("id token")),
    ] {
        let mut claims = claims.clone();
        claims[claim] = value.clone();
        let refused = ask(&chain, &bearer(&key.sign(&claims)), here()).await;
        assert_eq!(refused.err(), Some(INVALID), "{claim} {value}");
    }
}

#[tokio::test]
async fn an_id_token_does_not_pass_as_an_access_token_where_types_are_strict() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::es256("k");
    issuer.publish(&[&key]);
    let settings = JwtSettings { access_tokens: AccessTokenType::Strict, ..issuer.settings() };
    let chain = chain(settings, &clock);
    let claims = issuer.claims(&clock);
    let access = Header { typ: Some("at+jwt".to_owned()), ..key.header() };
    assert!(ask(&chain, &bearer(&key.sign_with(&access, &claims)), here()).await.is_ok());
    assert_eq!(ask(&chain, &bearer(&key.sign(&claims)), here()).await.err(), Some(INVALID));
}

#[tokio::test]
async fn keys_are_not_taken_from_another_issuer_or_an_inner_address() {
    let (issuer, clock) = (Issuer::start().await, TestClock::new());
    let key = SigningKey::eddsa("k");
    issuer.publish(&[&key]);
    let token = bearer(&key.sign(&issuer.claims(&clock)));
    let place = "/.well-known/openid-configuration";
    for metadata in [
        json!({ "issuer": "https://evil.test", "jwks_uri": format!("{}/keys", issuer.url) }),
        json!({ "jwks_uri": format!("{}/keys", issuer.url) }),
        json!({ "issuer": issuer.url }),
        json!({ "issuer": issuer.url, "jwks_uri": "http://169.254.169.254/keys" }),
        json!({ "issuer": issuer.url, "jwks_uri": "file:///etc/passwd" }),
        json!([]),
    ] {
        issuer.serve(place, &metadata);
        let refused = ask(&issuer.chain(&clock), &token, here()).await;
        assert_eq!(refused.err(), Some(UNAVAILABLE), "{metadata}");
    }
    issuer.documents.lock().unwrap().insert(place.to_owned(), "x".repeat(300_000));
    assert_eq!(ask(&issuer.chain(&clock), &token, here()).await.err(), Some(UNAVAILABLE));
    issuer.documents.lock().unwrap().remove(place);
    issuer.serve_metadata("/.well-known/oauth-authorization-server");
    assert!(ask(&issuer.chain(&clock), &token, here()).await.is_ok(), "the other place");
    let direct =
        JwtSettings { jwks_url: Some(format!("{}/keys", issuer.url)), ..issuer.settings() };
    assert!(ask(&chain(direct, &clock), &token, here()).await.is_ok(), "no metadata needed");
    issuer.serve("/keys", &json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0", "kid": "k" }] }));
    assert_eq!(ask(&issuer.chain(&clock), &token, here()).await.err(), Some(UNAVAILABLE));
}
