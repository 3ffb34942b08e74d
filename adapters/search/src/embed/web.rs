//! Requests of the worker's thread to a service, through the one HTTP client.
//!
//! The thread has a runtime of its own: it waits for each answer, while searches go on elsewhere.

use std::sync::Arc;
use std::time::Duration;

use capstan_http::{Client, HttpError, PlainRequest, PlainResponse, WebAddress};
use capstan_model::Secret;
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::worker::Unavailable;

/// Maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;

/// Maximum length of a service's error message that is shown.
const MAX_ERROR: usize = 300;

/// A service that is asked with JSON.
pub(crate) struct Web {
    runtime: Runtime,
    client: Client,
    endpoint: String,
    /// The path of the endpoint, without a slash at its end.
    base: String,
    limit: Duration,
}

// === impl Web ===

impl Web {
    /// Prepares requests with these headers. Nothing is sent yet.
    pub(crate) fn new(
        endpoint: &str,
        headers: &[(String, Secret<String>)],
        addresses: &AddressPolicy,
        limit: Duration,
    ) -> Result<Self, String> {
        let address = WebAddress::parse(endpoint)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let masker = Masker::new(headers.iter().map(|(_, secret)| secret.reveal().clone()));
        let mut headers = headers.to_vec();
        headers.push(("content-type".to_owned(), Secret::new("application/json".to_owned())));
        let client = runtime
            .block_on(async { Client::new(&address, &headers, Arc::new(masker), addresses) })?;
        let base = address.path().trim_end_matches('/').to_owned();
        Ok(Self { runtime, client, endpoint: address.origin(), base, limit })
    }

    /// Sends a request and returns the status with the answer. `path` begins with a slash.
    ///
    /// # Errors
    /// If there is no answer, or it is no JSON.
    pub(crate) fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Value), Unavailable> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (path, None),
        };
        let path = format!("{}{path}", self.base);
        let request = PlainRequest { method, path, query, headers: Vec::new(), body };
        let answer = self.runtime.block_on(async {
            let first = timeout(self.limit, self.client.send(request.clone(), MAX_ANSWER)).await;
            match first {
                // The service may have closed a connection that was kept.
                Ok(Err(HttpError::Lost(_))) => {
                    timeout(self.limit, self.client.send(request, MAX_ANSWER)).await
                }
                first => first,
            }
        });
        let answer = answer
            .map_err(|_| self.fault(&format!("no answer within {:?}", self.limit)))?
            .map_err(|error| self.fault(&error.to_string()))?;
        let PlainResponse { status, body, whole, .. } = answer;
        if !whole {
            return Err(self.fault(&format!("its answer is larger than {MAX_ANSWER} bytes")));
        }
        match serde_json::from_slice(&body) {
            Ok(value) => Ok((status, value)),
            Err(_) if status >= 400 => Ok((status, Value::Null)),
            Err(_) => Err(self.fault("its answer is no JSON")),
        }
    }

    /// An error of the service, with what it says about it.
    pub(crate) fn refused(&self, status: u16, answer: &Value) -> Unavailable {
        let said = ["/error/message", "/error", "/status/error", "/detail", "/message"]
            .iter()
            .find_map(|at| answer.pointer(at)?.as_str());
        let said = said.map(|said| self.client.mask(said)).unwrap_or_default();
        let said: String = said.chars().filter(|c| !c.is_control()).take(MAX_ERROR).collect();
        if said.is_empty() {
            return self.fault(&format!("it answers with status {status}"));
        }
        self.fault(&format!("it answers with status {status}: {said}"))
    }

    pub(crate) fn fault(&self, reason: &str) -> Unavailable {
        Unavailable(format!("`{}`: {reason}", self.endpoint))
    }
}
