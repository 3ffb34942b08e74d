//! Requests to Google's endpoints and to the metadata server.

use std::sync::Arc;
use std::time::Duration;

use capstan_http::{Client, PlainRequest, WebAddress};
use capstan_safety::address::AddressPolicy;
use capstan_safety::clean::visible;
use capstan_safety::mask::{Masker, mask_prose};
use serde_json::Value;
use tokio::time::timeout;

use crate::error::GoogleError;

/// Time limit of a request to Google.
const LIMIT: Duration = Duration::from_secs(20);

/// Time limit of a request to the metadata server, which is near or absent.
const METADATA_LIMIT: Duration = Duration::from_secs(3);

/// Largest answer.
const MAX_ANSWER: usize = 64 * 1024;

/// Longest error message that is shown.
const MAX_WORDS: usize = 200;

/// The address of the metadata server.
const METADATA: &str = "169.254.169.254";

/// The addresses that tokens are requested from.
#[derive(Clone, Debug)]
pub struct Endpoints {
    /// The token endpoint.
    pub token: String,
    /// The IAM credentials service.
    pub iam: String,
    /// The metadata server: a host, with a port if it is not 80.
    pub metadata: String,
}

/// A request.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    Google,
    Metadata,
}

// === impl Endpoints ===

impl Default for Endpoints {
    fn default() -> Self {
        Self {
            token: "https://oauth2.googleapis.com/token".to_owned(),
            iam: "https://iamcredentials.googleapis.com".to_owned(),
            metadata: METADATA.to_owned(),
        }
    }
}

/// Sends a request and reads the JSON answer, which must be a success.
pub(crate) async fn send(whom: Whom, request: Request) -> Result<Value, GoogleError> {
    let Request { method, url, headers, body } = request;
    let address = WebAddress::parse(&url).map_err(|reason| refused(&url, &reason))?;
    let endpoint = address.origin();
    let failed = |reason: &str| refused(&endpoint, reason);
    let is_encrypted = url.starts_with("https://") || is_here(&url);
    if whom == Whom::Google && !is_encrypted {
        return Err(failed("it is not an https address"));
    }
    let client = Client::new(&address, &[], Arc::new(Masker::default()), &policy(whom));
    let client = client.map_err(|reason| failed(&reason))?;
    let request = PlainRequest {
        method,
        path: address.path().to_owned(),
        query: address.query().map(ToOwned::to_owned),
        headers,
        body,
    };
    let limit = match whom {
        Whom::Google => LIMIT,
        Whom::Metadata => METADATA_LIMIT,
    };
    let answer = match timeout(limit, client.send(request, MAX_ANSWER)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(failed(&error.to_string())),
        Err(_) => return Err(failed(&format!("no answer within {} s", limit.as_secs()))),
    };
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok().filter(|_| answer.whole);
    match (answer.status, json) {
        (200..=299, Some(json)) => Ok(json),
        (200..=299, None) => Err(failed("its answer is not JSON")),
        (status, json) => Err(failed(&format!("HTTP status {status}{}", words(json.as_ref())))),
    }
}

/// The reason in an error answer, cleaned: `error_description`, or the message of an API.
fn words(json: Option<&Value>) -> String {
    let Some(json) = json else { return String::new() };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
    let said = text(json.get("error_description"))
        .or_else(|| text(json.pointer("/error/message")))
        .or_else(|| text(json.get("error")));
    let Some(said) = said else { return String::new() };
    let said: String = mask_prose(&visible(&said)).chars().take(MAX_WORDS).collect();
    format!(": {said}")
}

/// Google's hosts must be public. The metadata server has one link-local address.
fn policy(whom: Whom) -> AddressPolicy {
    let networks = match whom {
        Whom::Google => Vec::new(),
        Whom::Metadata => METADATA.parse().into_iter().collect(),
    };
    AddressPolicy { networks, ..AddressPolicy::default() }
}

/// True if an address names this machine.
pub(crate) fn is_here(url: &str) -> bool {
    ["http://127.0.0.1", "http://localhost", "http://[::1]"].iter().any(|start| {
        let rest = url.strip_prefix(start);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    })
}

fn refused(endpoint: &str, reason: &str) -> GoogleError {
    GoogleError::Refused { endpoint: endpoint.to_owned(), reason: reason.to_owned() }
}
