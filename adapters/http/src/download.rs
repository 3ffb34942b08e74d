//! Fetches public documents: without credentials, and with redirects to other servers.

use std::sync::Arc;

use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};

use crate::address::WebAddress;
use crate::client::{Client, HttpError};
use crate::payload::Payload;
use crate::plain::PlainResponse;
use crate::transport::HttpRequest;

/// The largest number of redirects followed.
const MAX_HOPS: usize = 4;

/// Fetches at most `limit` bytes from an address.
///
/// Every redirect is checked again: an origin other than the first must have a public address,
/// whatever `policy` allows, and a redirect from an encrypted to an unencrypted address is refused.
///
/// # Errors
/// If there is no answer. An error status is an answer.
pub async fn download(
    from: &WebAddress,
    policy: &AddressPolicy,
    limit: usize,
) -> Result<PlainResponse, HttpError> {
    let mut address = from.clone();
    for _ in 0..=MAX_HOPS {
        let public = AddressPolicy::default();
        let policy = if address.same_origin(from) { policy } else { &public };
        let masker = Arc::new(Masker::new(std::iter::empty()));
        let client = Client::new(&address, &[], masker, policy).map_err(HttpError::NotSent)?;
        let (to, headers, body) = (client.target().clone(), HeaderMap::new(), Payload::default());
        let request = HttpRequest { method: Method::GET, to, headers, body };
        let response = client.send_once(Box::new(request)).await?;
        let status = response.status.as_u16();
        let location = response.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(location) = location.filter(|_| matches!(status, 301..=303 | 307 | 308)) else {
            let kind = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let content_type = kind.map(ToOwned::to_owned);
            let (body, whole) = client.read(response.body, limit).await?;
            return Ok(PlainResponse { status, content_type, body, whole });
        };
        let redirected = |words| HttpError::Redirected { status, words };
        let next = address.join(location).map_err(redirected)?;
        if address.is_encrypted() && !next.is_encrypted() {
            let words = "it redirects to an address that is not encrypted".to_owned();
            return Err(HttpError::Elsewhere(words));
        }
        address = next;
    }
    let words = format!("it redirects more than {MAX_HOPS} times");
    Err(HttpError::Redirected { status: 308, words })
}
