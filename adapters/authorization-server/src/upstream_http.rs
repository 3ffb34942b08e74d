//! An OpenID Connect provider, reached over HTTP.
//!
//! Its metadata and keys are read anew for each sign-in: sign-ins are rare, and a key that was
//! replaced counts at once.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capstan_http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use capstan_http::{Client, HttpRequest, Method, Payload, StatusCode, WebAddress};
use capstan_hub::ports::{BoxFuture, Clock};
use capstan_model::Secret;
use capstan_safety::address::{AddressPolicy, Network};
use capstan_safety::mask::Masker;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode_header};
use serde_json::{Map, Value};
use tokio::time::timeout;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::upstream::{Upstream, UpstreamSignIn, UpstreamUser};

/// Time limit of one request.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Longest document, in bytes.
const MAX_DOCUMENT: usize = 256 * 1024;

/// Tolerated difference between the clocks, in seconds.
const LEEWAY: i64 = 60;

/// Algorithms of ID tokens. Only asymmetric ones.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// The settings of a provider.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The issuer, exactly as its ID tokens name it.
    pub issuer: String,
    /// The id of the gateway as a client.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<Secret<String>>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The claim with the name of the user.
    pub subject_claim: String,
    /// The claim with the user's roles.
    pub roles_claim: String,
    /// Networks that the provider may be reached in although they are not public.
    pub networks: Vec<Network>,
}

/// A provider over HTTP.
pub struct HttpUpstream {
    settings: UpstreamSettings,
    address: WebAddress,
    clock: Arc<dyn Clock>,
}

/// The parts of the provider's metadata that are used.
struct Metadata {
    authorization: String,
    token: String,
    keys: String,
    takes_basic: bool,
}

// === impl HttpUpstream ===

impl HttpUpstream {
    /// Creates the client. Nothing is sent yet.
    ///
    /// # Errors
    /// If the address of the issuer cannot be used.
    pub fn new(settings: UpstreamSettings, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let address = WebAddress::parse(&settings.issuer)?;
        Ok(Self { settings, address, clock })
    }

    async fn request(
        &self,
        method: Method,
        url: &str,
        mut headers: HeaderMap,
        body: String,
    ) -> Result<Value, String> {
        let address = self.address.refer(url)?;
        let networks = self.settings.networks.clone();
        let policy = AddressPolicy { networks, ..AddressPolicy::default() };
        let masker = Arc::new(Masker::new(std::iter::empty()));
        let client = Client::new(&address, &[], masker, &policy)?;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let to = client.target().clone();
        let request = HttpRequest { method, to, headers, body: Payload::from(body.into_bytes()) };
        let exchange = async {
            let sent = client.send_once(Box::new(request)).await;
            let response = sent.map_err(|error| error.to_string())?;
            let status = response.status;
            let read = client.read(response.body, MAX_DOCUMENT).await;
            let (body, is_whole) = read.map_err(|error| error.to_string())?;
            if status != StatusCode::OK {
                return Err(format!("{url} answered with status {}", status.as_u16()));
            }
            if !is_whole {
                return Err(format!("the answer of {url} is too large"));
            }
            serde_json::from_slice(&body).map_err(|_| format!("the answer of {url} is not JSON"))
        };
        let exchanged = timeout(TIME_LIMIT, exchange).await;
        exchanged.unwrap_or_else(|_| Err(format!("{url} did not answer in time")))
    }

    async fn get(&self, url: &str) -> Result<Value, String> {
        self.request(Method::GET, url, HeaderMap::new(), String::new()).await
    }

    async fn metadata(&self) -> Result<Metadata, String> {
        let issuer = &self.settings.issuer;
        let at = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let document = self.get(&at).await?;
        if document.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(format!("{at} names another issuer than `{issuer}`"));
        }
        let url = |key: &str| {
            let found = document.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
            found.ok_or_else(|| format!("{at} has no `{key}`"))
        };
        let methods =
            document.get("token_endpoint_auth_methods_supported").and_then(Value::as_array);
        // OpenID Connect Discovery: without the member, it is Basic.
        let takes_basic =
            methods.is_none_or(|all| all.iter().any(|one| one == "client_secret_basic"));
        Ok(Metadata {
            authorization: url("authorization_endpoint")?,
            token: url("token_endpoint")?,
            keys: url("jwks_uri")?,
            takes_basic,
        })
    }

    /// Exchanges a code for an ID token.
    async fn id_token(
        &self,
        metadata: &Metadata,
        sign_in: &UpstreamSignIn,
        code: &str,
    ) -> Result<String, String> {
        let (headers, form) = self.exchange(metadata, sign_in, code)?;
        let answer = self.request(Method::POST, &metadata.token, headers, form).await?;
        let token = answer.get("id_token").and_then(Value::as_str).map(ToOwned::to_owned);
        token.ok_or_else(|| "the provider sent no ID token".to_owned())
    }

    /// The request that exchanges a code.
    fn exchange(
        &self,
        metadata: &Metadata,
        sign_in: &UpstreamSignIn,
        code: &str,
    ) -> Result<(HeaderMap, String), String> {
        let UpstreamSettings { client_id, client_secret, .. } = &self.settings;
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &sign_in.redirect_uri)
            .append_pair("code_verifier", &sign_in.verifier);
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        match client_secret {
            Some(secret) if metadata.takes_basic => {
                let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", escape(client_id), escape(secret.reveal()));
                let basic = format!("Basic {}", STANDARD.encode(pair));
                let mut basic = HeaderValue::from_str(&basic).map_err(|error| error.to_string())?;
                basic.set_sensitive(true);
                headers.insert(AUTHORIZATION, basic);
            }
            Some(secret) => {
                form.append_pair("client_id", client_id)
                    .append_pair("client_secret", secret.reveal());
            }
            None => {
                form.append_pair("client_id", client_id);
            }
        }
        Ok((headers, form.finish()))
    }

    /// Checks an ID token (OpenID Connect Core, 3.1.3.7).
    fn check(&self, token: &str, keys: &JwkSet, nonce: &str) -> Result<UpstreamUser, String> {
        let header = decode_header(token).map_err(|_| "the ID token cannot be read".to_owned())?;
        if !ALGORITHMS.contains(&header.alg) || header.crit.is_some() {
            return Err("the ID token has an algorithm that is not accepted".to_owned());
        }
        let mut validation = Validation::new(header.alg);
        // Checked below, with our clock.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let fits = |id: Option<&String>| header.kid.is_none() || id == header.kid.as_ref();
        let fitting = keys.keys.iter().filter(|key| fits(key.common.key_id.as_ref()));
        let claims: Map<String, Value> = fitting
            .take(8)
            .filter_map(|key| DecodingKey::from_jwk(key).ok())
            .find_map(|key| jsonwebtoken::decode(token, &key, &validation).ok())
            .map(|token| token.claims)
            .ok_or("the signature of the ID token is wrong")?;
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        if text("iss") != Some(self.settings.issuer.as_str()) {
            return Err("the ID token names another issuer".to_owned());
        }
        let client = self.settings.client_id.as_str();
        let is_for_us = match claims.get("aud") {
            Some(Value::String(one)) => one == client,
            Some(Value::Array(all)) => all.iter().any(|one| one == client),
            _ => false,
        };
        if !is_for_us || text("azp").is_some_and(|party| party != client) {
            return Err("the ID token is for another client".to_owned());
        }
        let now = self.clock.now().as_second();
        let expires = claims.get("exp").and_then(Value::as_i64).unwrap_or(i64::MIN);
        let begins = claims.get("nbf").and_then(Value::as_i64).unwrap_or(i64::MIN);
        if now >= expires.saturating_add(LEEWAY) || begins > now.saturating_add(LEEWAY) {
            return Err("the ID token has expired or is not valid yet".to_owned());
        }
        if text("nonce") != Some(nonce) {
            return Err("the ID token belongs to another sign-in".to_owned());
        }
        let subject = at(&claims, &self.settings.subject_claim).and_then(Value::as_str);
        let subject = subject.ok_or_else(|| {
            format!("the ID token has no text in `{}`", self.settings.subject_claim)
        })?;
        let roles = match at(&claims, &self.settings.roles_claim) {
            Some(Value::String(words)) => {
                words.split_ascii_whitespace().map(ToOwned::to_owned).collect()
            }
            Some(Value::Array(all)) => {
                all.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            }
            _ => Vec::new(),
        };
        Ok(UpstreamUser { subject: subject.to_owned(), roles })
    }
}

/// The value of a claim; dots lead into nested ones.
fn at<'c>(claims: &'c Map<String, Value>, path: &str) -> Option<&'c Value> {
    if let Some(found) = claims.get(path) {
        return Some(found);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

impl Upstream for HttpUpstream {
    fn page<'a>(&'a self, sign_in: &'a UpstreamSignIn) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let metadata = self.metadata().await?;
            // The same rules as for requests: encrypted, or this machine if the issuer is there.
            self.address.refer(&metadata.authorization)?;
            let mut page =
                Url::parse(&metadata.authorization).map_err(|error| error.to_string())?;
            page.query_pairs_mut()
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.settings.client_id)
                .append_pair("redirect_uri", &sign_in.redirect_uri)
                .append_pair("scope", &self.settings.scopes.join(" "))
                .append_pair("state", &sign_in.state)
                .append_pair("nonce", &sign_in.nonce)
                .append_pair("code_challenge", &sign_in.challenge())
                .append_pair("code_challenge_method", "S256");
            Ok(page.into())
        })
    }

    fn user<'a>(
        &'a self,
        sign_in: &'a UpstreamSignIn,
        code: &'a str,
    ) -> BoxFuture<'a, Result<UpstreamUser, String>> {
        Box::pin(async move {
            let metadata = self.metadata().await?;
            let token = self.id_token(&metadata, sign_in, code).await?;
            let keys = self.get(&metadata.keys).await?;
            let keys: JwkSet = serde_json::from_value(keys)
                .map_err(|_| "the keys of the provider cannot be read".to_owned())?;
            self.check(&token, &keys, &sign_in.nonce)
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use capstan_testkit::fakes::TestClock;
    use jsonwebtoken::{EncodingKey, Header};
    use serde_json::json;

    use super::*;
    use crate::random::encode;

    const ISSUER: &str = "https://login.example.com";

    /// A key: its private part, and its public part as the provider publishes it.
    fn key(id: &str) -> (EncodingKey, Value) {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let secret = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, secret.as_ref()).unwrap();
        // A point that is not compressed: a byte, then both coordinates.
        let point = pair.public_key().as_ref()[1..].to_vec();
        let (x, y) = point.split_at(32);
        let public = json!({
            "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id,
            "x": encode(x), "y": encode(y),
        });
        (EncodingKey::from_ec_der(secret.as_ref()), public)
    }

    fn provider(clock: &Arc<TestClock>) -> HttpUpstream {
        let settings = UpstreamSettings {
            issuer: ISSUER.to_owned(),
            client_id: "gateway".to_owned(),
            client_secret: None,
            scopes: vec!["openid".to_owned()],
            subject_claim: "preferred_username".to_owned(),
            roles_claim: "realm.roles".to_owned(),
            networks: Vec::new(),
        };
        HttpUpstream::new(settings, Arc::<TestClock>::clone(clock)).unwrap()
    }

    #[test]
    fn an_id_token_counts_only_from_this_issuer_for_this_client_and_sign_in() {
        let clock = Arc::<TestClock>::default();
        let provider = provider(&clock);
        let (private, public) = key("a");
        let (foreign, _) = key("a");
        let keys: JwkSet = serde_json::from_value(json!({ "keys": [public] })).unwrap();
        let now = clock.now().as_second();
        let good = json!({
            "iss": ISSUER, "aud": "gateway", "exp": now + 60, "nonce": "n", "sub": "17",
            "preferred_username": "ann", "realm": { "roles": ["dev", "ops"] },
        });
        let sign = |claims: &Value, header: &Header, key: &EncodingKey| {
            jsonwebtoken::encode(header, claims, key).unwrap()
        };
        let mut header = Header::new(Algorithm::ES256);
        header.kid = Some("a".to_owned());
        let check = |token: &str| provider.check(token, &keys, "n");
        let user = check(&sign(&good, &header, &private)).unwrap();
        assert_eq!((user.subject.as_str(), user.roles.len()), ("ann", 2));
        for (claim, value) in [
            ("iss", json!("https://evil.test")),
            ("iss", json!(null)),
            ("aud", json!("another")),
            ("aud", json!([])),
            ("azp", json!("another")),
            ("exp", json!(now - 61)),
            ("exp", json!("never")),
            ("nbf", json!(now + 120)),
            ("nonce", json!("other")),
            ("nonce", json!(null)),
            ("preferred_username", json!(17)),
            ("preferred_username", json!(null)),
        ] {
            let mut claims = good.clone();
            claims[claim] = value.clone();
            assert!(check(&sign(&claims, &header, &private)).is_err(), "{claim} {value}");
        }
        assert!(check(&sign(&good, &header, &foreign)).is_err(), "another key");
        let unknown = Header { kid: Some("b".to_owned()), ..header.clone() };
        assert!(check(&sign(&good, &unknown, &private)).is_err(), "another key id");
        let secret = EncodingKey::from_secret(public["x"].as_str().unwrap().as_bytes());
        let symmetric = Header { kid: Some("a".to_owned()), ..Header::new(Algorithm::HS256) };
        assert!(check(&sign(&good, &symmetric, &secret)).is_err(), "a symmetric algorithm");
        let token = sign(&good, &header, &private);
        let unsigned = encode(br#"{"alg":"none"}"#);
        let body = token.split('.').nth(1).unwrap();
        for bad in [format!("{unsigned}.{body}."), format!("{token}x"), String::new()] {
            assert!(check(&bad).is_err(), "{bad}");
        }
    }
}
