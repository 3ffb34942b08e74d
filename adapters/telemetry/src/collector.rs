//! Sends data to the collector with our own HTTP client, from the threads of the SDK.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::redirect::Policy;

/// Maximum size of a collector's response, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// Sends requests one by one.
///
/// The SDK calls it on its own threads, which have no runtime; each request creates its own.
#[derive(Debug)]
pub(crate) struct Courier {
    client: reqwest::Client,
}

#[derive(Debug, thiserror::Error)]
#[error("the collector's answer is longer than {MAX_ANSWER} bytes")]
struct TooLong;

// === impl Courier ===

impl Courier {
    pub(crate) fn new(timeout: Duration) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(timeout)
            // The headers may contain secrets for the collector, which must not go elsewhere.
            .redirect(Policy::none())
            // A connection does not outlive its runtime.
            .pool_max_idle_per_host(0)
            .build()?;
        Ok(Self { client })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The URL may contain a password, and errors are logged.
        let request = reqwest::Request::try_from(request).map_err(reqwest::Error::without_url)?;
        let sent = self.client.execute(request).await;
        let mut response = sent.map_err(reqwest::Error::without_url)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(TooLong.into());
            }
            body.extend_from_slice(&piece);
        }
        let mut whole = Response::new(body.into());
        *whole.status_mut() = status;
        *whole.headers_mut() = headers;
        Ok(whole)
    }
}

#[async_trait]
impl HttpClient for Courier {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sent = runtime.block_on(self.send(request));
        // Does not wait for a pending name lookup.
        runtime.shutdown_background();
        sent
    }
}
