//! Resolves the addresses of URLs that a person types.

use std::time::Duration;

use capstan_app::{Addresses, AppError, UrlAddresses};
use capstan_http::WebAddress;
use capstan_hub::ports::BoxFuture;
use tokio::time::timeout;

use crate::host::LocalHost;

/// Time limit for a DNS lookup.
const LOOKUP_LIMIT: Duration = Duration::from_secs(5);

impl Addresses for LocalHost {
    fn addresses<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<UrlAddresses, AppError>> {
        Box::pin(async move {
            let address = WebAddress::parse(url).map_err(AppError::usage)?;
            if address.is_configured_here() {
                return Ok(UrlAddresses::Here);
            }
            if let Some(literal) = address.ip() {
                return Ok(UrlAddresses::Literal(literal));
            }
            let found = timeout(LOOKUP_LIMIT, address.addresses()).await;
            let found = found.ok().and_then(Result::ok).unwrap_or_default();
            Ok(UrlAddresses::Name(address.host(), found))
        })
    }
}
