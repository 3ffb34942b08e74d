//! Access tokens for programs: OAuth 2.0, client credentials (RFC 6749, section 4.4).
//!
//! **Invariant:** the secret is sent only to the token address, and a token is given only to the
//! code that requested it. Neither is part of an error.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capstan_http::{Client, PlainRequest, PlainResponse, WebAddress};
use capstan_lazy::{Attempt, AttemptError};
use capstan_model::Secret;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use tracing::debug;

use crate::request::encode::percent;
use crate::settings::OpenApiSettings;

/// The timeout for getting a token.
const LIMIT: Duration = Duration::from_secs(30);

/// The largest number of bytes read of a token response.
const MAX_ANSWER: usize = 64 * 1024;

/// The longest time before its expiry at which a token is replaced.
const MARGIN: Duration = Duration::from_secs(30);

/// The longest lifetime assumed for a token.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The longest error code of a refusal that is shown, in bytes.
const MAX_WORD: usize = 64;

/// The credentials of a client that requests tokens.
pub(crate) struct ClientLogin<'a> {
    pub(crate) id: &'a str,
    pub(crate) secret: &'a Secret<String>,
    pub(crate) scopes: &'a [String],
}

/// The source of tokens, and the current token.
pub(crate) struct Login {
    asked: Arc<Asked>,
    token: Attempt<Token>,
}

/// A token and its expiry.
pub(crate) struct Token {
    value: Secret<String>,
    until: Option<Instant>,
}

struct Asked {
    /// The name of the scheme.
    scheme: String,
    server: String,
    address: WebAddress,
    client: Client,
    /// The token request in two forms of client authentication.
    /// The first is the one that the standard requires, the second the one that many servers
    /// expect.
    ways: [PlainRequest; 2],
}

/// The reason why one form of the token request failed.
enum Trouble {
    /// The server rejects our client credentials.
    Refused(String),
    Failed(AttemptError),
}

// === impl Login ===

impl Login {
    /// Creates the source of tokens. Nothing is sent yet.
    ///
    /// # Errors
    /// The reason why no client can be created for the address.
    pub(crate) fn new(
        scheme: &str,
        address: &WebAddress,
        login: &ClientLogin<'_>,
        settings: &OpenApiSettings,
    ) -> Result<Self, String> {
        let client = settings.client(address, &[])?;
        let (scheme, address) = (scheme.to_owned(), address.clone());
        let ways = [login.in_header(&address), login.in_body(&address)];
        let asked = Asked { scheme, server: settings.name.to_string(), address, client, ways };
        Ok(Self { asked: Arc::new(asked), token: Attempt::default() })
    }

    /// Returns a valid token that is none of `refused`: the current one, or a new one. Requests for
    /// a new token are single-flight.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn token(&self, refused: &[Arc<Token>]) -> Result<Arc<Token>, AttemptError> {
        let stale = |token: &Arc<Token>| {
            token.until.is_some_and(|until| Instant::now() >= until)
                || refused.iter().any(|one| Arc::ptr_eq(one, token))
        };
        self.token.get(stale, || Arc::clone(&self.asked).get()).await
    }
}

// === impl Token ===

impl Token {
    pub(crate) fn value(&self) -> &Secret<String> {
        &self.value
    }

    /// Reads a token response.
    fn read(body: &[u8]) -> Option<Self> {
        let answer: Value = serde_json::from_slice(body).ok()?;
        let token = answer.get("access_token")?.as_str()?;
        let kind = answer.get("token_type").and_then(Value::as_str).unwrap_or("bearer");
        let is_sent = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
        if !is_sent || !kind.eq_ignore_ascii_case("bearer") {
            return None;
        }
        // Some servers write the number as text.
        let lasts = answer.get("expires_in").and_then(|lasts| {
            lasts.as_u64().or_else(|| lasts.as_str().and_then(|lasts| lasts.parse().ok()))
        });
        let until = lasts.map(|seconds| {
            let lasts = Duration::from_secs(seconds).min(LONGEST);
            Instant::now() + lasts.saturating_sub(MARGIN.min(lasts / 5))
        });
        Some(Self { value: Secret::new(token.to_owned()), until })
    }
}

// === impl Asked ===

impl Asked {
    async fn get(self: Arc<Self>) -> Result<Arc<Token>, AttemptError> {
        let got = timeout(LIMIT, self.ask()).await;
        let got = got
            .unwrap_or_else(|_| Err(format!("the answer did not arrive within {LIMIT:?}").into()));
        let (scheme, origin) = (&self.scheme, self.address.origin());
        let token = got.map_err(|error| {
            error.within(|reason| {
                format!("there is no token for `openapi.auth.{scheme}` from `{origin}`: {reason}")
            })
        })?;
        debug!(server = self.server, scheme, "received a token");
        Ok(Arc::new(token))
    }

    async fn ask(&self) -> Result<Token, AttemptError> {
        let [first, second] = &self.ways;
        let refused = match self.ask_in(first).await {
            Ok(token) => return Ok(token),
            Err(Trouble::Failed(error)) => return Err(error),
            Err(Trouble::Refused(reason)) => reason,
        };
        match self.ask_in(second).await {
            Ok(token) => Ok(token),
            // The error of the standard form is more useful than that of the other.
            Err(Trouble::Refused(_) | Trouble::Failed(_)) => Err(format!(
                "it refuses this client ({refused}); check `client_id` and `client_secret`"
            )
            .into()),
        }
    }

    async fn ask_in(&self, way: &PlainRequest) -> Result<Token, Trouble> {
        let failed = |reason: String| Trouble::Failed(reason.into());
        let response = self.client.send(way.clone(), MAX_ANSWER).await;
        let response = response.map_err(|error| Trouble::Failed(error.into()))?;
        match response.status {
            200..300 => Token::read(&response.body)
                .filter(|_| response.whole)
                .ok_or_else(|| failed("it answered without a bearer token".to_owned())),
            400 | 401 => {
                let word = word(&response);
                let is_ours = matches!(word.as_str(), "invalid_client" | "invalid_request")
                    || response.status == 401;
                Err(if is_ours { Trouble::Refused(word) } else { failed(word) })
            }
            _ => Err(failed(word(&response))),
        }
    }
}

/// The error code of a refusal. The rest of the response may repeat what was sent.
fn word(response: &PlainResponse) -> String {
    let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let word = answer.get("error").and_then(Value::as_str).unwrap_or_default();
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    if word.is_empty() || word.len() > MAX_WORD || !word.chars().all(is_word) {
        return format!("HTTP status {}", response.status);
    }
    word.to_owned()
}

// === impl ClientLogin ===

impl ClientLogin<'_> {
    fn in_header(&self, address: &WebAddress) -> PlainRequest {
        // Both are escaped before they are joined, so that neither can contain the colon.
        let pair = format!("{}:{}", percent(self.id), percent(self.secret.reveal()));
        let mut request = self.request(address, "");
        let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
        request.headers.push(("authorization".to_owned(), value));
        request
    }

    fn in_body(&self, address: &WebAddress) -> PlainRequest {
        let (id, secret) = (percent(self.id), percent(self.secret.reveal()));
        self.request(address, &format!("&client_id={id}&client_secret={secret}"))
    }

    fn request(&self, address: &WebAddress, more: &str) -> PlainRequest {
        let scope = match self.scopes {
            [] => String::new(),
            scopes => format!("&scope={}", percent(&scopes.join(" "))),
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        PlainRequest {
            method: "POST",
            path: address.path().to_owned(),
            query: address.query().map(ToOwned::to_owned),
            headers: vec![
                header("accept", "application/json"),
                header("content-type", "application/x-www-form-urlencoded"),
            ],
            body: format!("grant_type=client_credentials{scope}{more}").into_bytes(),
        }
    }
}
