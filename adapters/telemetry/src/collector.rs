//! Sends data to the collector through the one HTTP client, from the threads of the SDK.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use capstan_http::{Client, HttpRequest, HttpResponse, WebAddress};
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::time::timeout;

/// Maximum size of a collector's response, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Sends requests one by one.
///
/// The SDK calls it on its own threads, which have no runtime. Each request creates its own, and a
/// client with it: a connection does not outlive its runtime.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    pub(crate) timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error("the collector cannot be reached: {0}")]
    Address(String),
    #[error("the collector's answer is longer than {MAX_ANSWER} bytes")]
    TooLong,
}

// === impl CollectorClient ===

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sent = runtime.block_on(async { timeout(self.timeout, send(request)).await });
        // Does not wait for a pending name lookup.
        runtime.shutdown_background();
        sent?
    }
}

/// Sends a request, and follows no redirect: the headers may contain secrets for the collector.
async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (head, body) = request.into_parts();
    let address = WebAddress::parse(&head.uri.to_string()).map_err(SendError::Address)?;
    let policy = AddressPolicy::any_network();
    let masker = Arc::new(Masker::new(std::iter::empty()));
    let client = Client::new(&address, &[], masker, &policy).map_err(SendError::Address)?;
    let order = HttpRequest {
        method: head.method,
        to: client.target().clone(),
        headers: head.headers,
        body: [body, Bytes::new(), Bytes::new()].into(),
    };
    let HttpResponse { status, headers, body } = client.send_once(Box::new(order)).await?;
    let (body, whole) = client.read(body, MAX_ANSWER).await?;
    if !whole {
        return Err(SendError::TooLong.into());
    }
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}
