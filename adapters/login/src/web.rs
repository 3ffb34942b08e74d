//! Sends the requests of a login.
//!
//! **Invariant:** requests go over TLS or stay on this machine, the address policy of the server
//! applies to all of them, and nothing that contains a secret is sent on after a redirect.

use std::sync::Arc;
use std::time::Duration;

use capstan_http::{Client, HttpError, PlainRequest, PlainResponse, WebAddress};
use capstan_safety::address::AddressPolicy;
use capstan_safety::clean::visible;
use capstan_safety::mask::{Masker, mask_url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;
use tracing::debug;
use url::form_urlencoded::Serializer;

use crate::error::LoginError;

/// The time limit of a request.
const LIMIT: Duration = Duration::from_secs(30);

/// The largest answer that is read, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// The longest error code or description that is shown, in characters.
const MAX_WORDS: usize = 200;

/// Sends requests on behalf of one server's login.
#[derive(Clone)]
pub(crate) struct Web {
    server: WebAddress,
    policy: AddressPolicy,
}

/// An address that a login uses, and what it is the address of.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    what: &'static str,
    address: WebAddress,
}

/// The answer to a request that changes something.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// The fields of a form.
pub(crate) struct Form(Vec<(&'static str, String)>);

// === impl Web ===

impl Web {
    /// Creates a sender for the login to the server at this address.
    ///
    /// # Errors
    /// If the address is invalid.
    pub(crate) fn new(url: &str, policy: &AddressPolicy) -> Result<Self, LoginError> {
        let server = WebAddress::parse(url).map_err(|reason| LoginError::Address {
            what: "the address of the server",
            address: mask_url(url),
            reason,
        })?;
        Ok(Self { server, policy: policy.clone() })
    }

    /// The address of the server.
    pub(crate) fn server(&self) -> &WebAddress {
        &self.server
    }

    /// An endpoint that the server or its authorization server names.
    pub(crate) fn found(&self, what: &'static str, url: &str) -> Result<Endpoint, LoginError> {
        checked(what, url, self.server.refer(url))
    }

    /// An endpoint from the configuration.
    pub(crate) fn configured(what: &'static str, url: &str) -> Result<Endpoint, LoginError> {
        checked(what, url, WebAddress::parse(url))
    }

    /// Fetches a document. `None` if there is none at the address.
    pub(crate) async fn fetch<T: DeserializeOwned>(
        &self,
        from: &Endpoint,
    ) -> Result<Option<T>, LoginError> {
        let accept = ("accept".to_owned(), "application/json".to_owned());
        let request = PlainRequest {
            method: "GET",
            path: from.address.path().to_owned(),
            query: from.address.query().map(ToOwned::to_owned),
            headers: vec![accept],
            body: Vec::new(),
        };
        let response = self.send(from, request).await?;
        debug!(what = from.what, origin = from.origin(), status = response.status, "fetched");
        match response.status {
            200..300 if !response.whole => Err(from.unusable("it is too long")),
            200..300 => match serde_json::from_slice(&response.body) {
                Ok(document) => Ok(Some(document)),
                Err(_) => Err(from.unusable("it is not the expected JSON document")),
            },
            400..500 => Ok(None),
            status => Err(from.unusable(&format!("it has HTTP status {status}"))),
        }
    }

    /// Sends a form.
    pub(crate) async fn post(
        &self,
        to: &Endpoint,
        form: &Form,
        header: Option<(String, String)>,
    ) -> Result<Answer, LoginError> {
        let body = form.encoded().into_bytes();
        self.write(to, "application/x-www-form-urlencoded", header, body).await
    }

    /// Sends a JSON document.
    pub(crate) async fn post_json(
        &self,
        to: &Endpoint,
        body: &Value,
    ) -> Result<Answer, LoginError> {
        self.write(to, "application/json", None, body.to_string().into_bytes()).await
    }

    async fn write(
        &self,
        to: &Endpoint,
        kind: &str,
        header: Option<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Answer, LoginError> {
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![named("accept", "application/json"), named("content-type", kind)];
        headers.extend(header);
        let request = PlainRequest {
            method: "POST",
            path: to.address.path().to_owned(),
            query: to.address.query().map(ToOwned::to_owned),
            headers,
            body,
        };
        let PlainResponse { status, body, whole, .. } = self.send(to, request).await?;
        debug!(what = to.what, origin = to.origin(), status, "posted");
        if !whole {
            return Err(to.unusable("it is too long"));
        }
        if (300..400).contains(&status) {
            return Err(to.unusable("it redirects, which is not followed"));
        }
        // An empty body or a page is no error by itself: the status decides.
        Ok(Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() })
    }

    async fn send(
        &self,
        to: &Endpoint,
        request: PlainRequest,
    ) -> Result<PlainResponse, LoginError> {
        let Endpoint { what, address } = to;
        let failed =
            |reason: String| LoginError::NoAnswer { what, origin: address.origin(), reason };
        let masker = Arc::new(Masker::default());
        let client = Client::new(address, &[], masker, &self.policy).map_err(failed)?;
        let sending = async {
            if request.method == "GET" {
                client.send(request, MAX_ANSWER).await
            } else {
                client.send_unredirected(request, MAX_ANSWER).await
            }
        };
        match timeout(LIMIT, sending).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(HttpError::Blocked(reason))) => {
                Err(LoginError::Address { what, address: address.origin(), reason })
            }
            Ok(Err(error)) => Err(failed(error.to_string())),
            Err(_) => Err(failed(format!("it did not answer within {LIMIT:?}"))),
        }
    }
}

fn checked(
    what: &'static str,
    url: &str,
    address: Result<WebAddress, String>,
) -> Result<Endpoint, LoginError> {
    let refused = |reason: String| LoginError::Address { what, address: mask_url(url), reason };
    let address = address.map_err(refused)?;
    if address.url().fragment().is_some() {
        return Err(refused("it has a fragment".to_owned()));
    }
    if !address.is_sheltered() {
        return Err(refused("it is not encrypted; a login needs `https://`".to_owned()));
    }
    Ok(Endpoint { what, address })
}

// === impl Endpoint ===

impl Endpoint {
    pub(crate) fn origin(&self) -> String {
        self.address.origin()
    }

    pub(crate) fn url(&self) -> &url::Url {
        self.address.url()
    }

    pub(crate) fn unusable(&self, reason: &str) -> LoginError {
        LoginError::Unusable { what: self.what, origin: self.origin(), reason: reason.to_owned() }
    }
}

// === impl Form ===

impl Form {
    /// A form with one field.
    pub(crate) fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self(vec![(name, value.into())])
    }

    /// Adds a field.
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
    }

    fn encoded(&self) -> String {
        let mut text = Serializer::new(String::new());
        text.extend_pairs(&self.0);
        text.finish()
    }
}

// === impl Answer ===

impl Answer {
    /// The error of the answer; `None` if it reports success. Some servers report errors with
    /// status 200.
    pub(crate) fn error(&self, from: &Endpoint) -> Option<LoginError> {
        let code = self.body.get("error").and_then(Value::as_str);
        if let Some(code) = code.filter(|code| is_code(code)) {
            let description = self.body.get("error_description").and_then(Value::as_str);
            return Some(LoginError::Refused {
                code: code.to_owned(),
                description: description.map(words).unwrap_or_default(),
            });
        }
        let is_failure = !(200..300).contains(&self.status)
            || self.body.get("ok") == Some(&Value::Bool(false))
            || self.body.get("error").is_some();
        is_failure.then(|| from.unusable(&format!("it has HTTP status {}", self.status)))
    }
}

/// True for an error code of the protocol; anything else may repeat what was sent.
pub(crate) fn is_code(text: &str) -> bool {
    let is_allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && text.len() <= 64 && text.chars().all(is_allowed)
}

/// A short, cleaned text of an authorization server.
pub(crate) fn words(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(MAX_WORDS).collect();
    capstan_safety::mask::mask_tokens(&visible(&short)).into_owned()
}
