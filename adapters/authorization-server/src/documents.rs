//! Clients whose id is the URL of their metadata document.
//!
//! The URL comes from anyone, so the document is fetched under the address policy for public
//! addresses only, without redirects, within a size and a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use capstan_http::header::{ACCEPT, HeaderMap, HeaderValue};
use capstan_http::{Client, HttpRequest, Method, Payload, StatusCode, WebAddress};
use capstan_hub::ports::{BoxFuture, Clock};
use capstan_safety::address::AddressPolicy;
use capstan_safety::mask::Masker;
use serde::Deserialize;
use url::Url;

use crate::register::clean_name;

/// Largest document, in bytes.
const MAX_DOCUMENT: usize = 32 * 1024;

/// Longest URL of a document, in bytes.
const MAX_URL: usize = 1024;

/// Time limit for fetching a document.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Time for which a document is remembered.
const FRESH_FOR: Duration = Duration::from_mins(10);

/// Most documents that are remembered.
const MAX_KNOWN: usize = 256;

/// Most redirect addresses of a client.
const MAX_REDIRECTS: usize = 32;

/// The port that fetches documents.
pub trait ClientDocuments: Send + Sync {
    /// Fetches the document at a URL.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>>;
}

/// Fetches documents over HTTPS, from public addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpDocuments;

/// A client, from its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentClient {
    pub(crate) name: Option<String>,
    pub(crate) redirect_uris: Vec<String>,
}

/// Documents that were fetched.
pub(crate) struct Documents {
    fetcher: Arc<dyn ClientDocuments>,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<String, (Duration, Arc<DocumentClient>)>>,
}

#[derive(Deserialize)]
struct Document {
    client_id: String,
    client_name: Option<String>,
    redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
}

// === impl HttpDocuments ===

impl ClientDocuments for HttpDocuments {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            let fetched = tokio::time::timeout(TIME_LIMIT, fetch(url)).await;
            fetched.unwrap_or_else(|_| Err("its document did not arrive in time".to_owned()))
        })
    }
}

async fn fetch(url: &str) -> Result<Bytes, String> {
    let address = WebAddress::discover(url)?;
    let masker = Arc::new(Masker::new(std::iter::empty()));
    let client = Client::new(&address, &[], masker, &AddressPolicy::default())?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let to = client.target().clone();
    let request = HttpRequest { method: Method::GET, to, headers, body: Payload::default() };
    let response = client.send_once(Box::new(request)).await.map_err(|error| error.to_string())?;
    if response.status != StatusCode::OK {
        return Err(format!("its document has HTTP status {}", response.status.as_u16()));
    }
    let (body, whole) =
        client.read(response.body, MAX_DOCUMENT).await.map_err(|error| error.to_string())?;
    if whole { Ok(body) } else { Err(format!("its document is larger than {MAX_DOCUMENT} bytes")) }
}

// === impl Documents ===

impl Documents {
    pub(crate) fn new(fetcher: Arc<dyn ClientDocuments>, clock: Arc<dyn Clock>) -> Self {
        Self { fetcher, clock, known: Mutex::default() }
    }

    /// Finds the client of a document.
    pub(crate) async fn find(&self, id: &str) -> Result<Arc<DocumentClient>, String> {
        let now = self.clock.monotonic();
        if let Some(known) = self.remembered(id, now) {
            return Ok(known);
        }
        let body = self.fetcher.fetch(id).await?;
        let client = Arc::new(read(id, &body)?);
        self.remember(id, &client, now);
        Ok(client)
    }

    fn remember(&self, id: &str, client: &Arc<DocumentClient>, now: Duration) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            known.retain(|_, (at, _)| now.saturating_sub(*at) < FRESH_FOR);
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
        }
        known.insert(id.to_owned(), (now, Arc::clone(client)));
    }

    fn remembered(&self, id: &str, now: Duration) -> Option<Arc<DocumentClient>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        let (at, client) = known?;
        (now.saturating_sub(at) < FRESH_FOR).then_some(client)
    }
}

/// True if a client id claims to be the URL of a document, whether or not it can be one.
pub(crate) fn is_url(id: &str) -> bool {
    id.contains("://")
}

/// True if a client id can be the URL of a document.
pub(crate) fn is_document_url(id: &str) -> bool {
    let Ok(url) = Url::parse(id) else { return false };
    id.len() <= MAX_URL
        && url.as_str() == id
        && url.scheme() == "https"
        && url.path() != "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

/// Reads a document.
fn read(id: &str, body: &[u8]) -> Result<DocumentClient, String> {
    let document: Document = serde_json::from_slice(body)
        .map_err(|_| "its document is not the metadata of a client".to_owned())?;
    if document.client_id != id {
        return Err("its document names another `client_id`".to_owned());
    }
    if document.redirect_uris.len() > MAX_REDIRECTS {
        return Err("its document has too many redirect addresses".to_owned());
    }
    let method = document.token_endpoint_auth_method.as_deref();
    if !matches!(method, None | Some("none")) {
        return Err("its document asks for client authentication, which is not offered".to_owned());
    }
    Ok(DocumentClient {
        name: document.client_name.as_deref().and_then(clean_name),
        redirect_uris: document.redirect_uris,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_urls_with_a_path_are_documents() {
        for good in ["https://app.example/client.json", "https://app.example:8443/a/b"] {
            assert!(is_document_url(good), "{good}");
        }
        for bad in [
            "http://app.example/client.json",
            "https://app.example",
            "https://app.example/",
            "https://app.example/c.json?x=1",
            "https://app.example/c.json#x",
            "https://user@app.example/c.json",
            "https://app.example/a/../c.json",
            "https://APP.example/c.json",
            "file:///etc/passwd",
            "mcp_abc",
        ] {
            assert!(!is_document_url(bad), "{bad}");
        }
    }

    #[test]
    fn a_document_speaks_for_its_own_url_only() {
        let id = "https://app.example/c.json";
        let text = |client: &str, rest: &str| {
            format!(
                r#"{{"client_id":"{client}","redirect_uris":["https://app.example/cb"]{rest}}}"#
            )
        };
        assert!(read(id, text(id, "").as_bytes()).is_ok());
        let none = r#","token_endpoint_auth_method":"none""#;
        assert!(read(id, text(id, none).as_bytes()).is_ok());
        let secret = r#","token_endpoint_auth_method":"client_secret_post""#;
        assert!(read(id, text(id, secret).as_bytes()).is_err());
        assert!(read(id, text("https://evil.test/c.json", "").as_bytes()).is_err());
        assert!(read(id, b"<html>").is_err());
        assert!(read(id, br#"{"client_id":"https://app.example/c.json"}"#).is_err());
    }

    #[tokio::test]
    async fn documents_on_this_machine_and_in_private_networks_are_not_fetched() {
        for url in [
            "https://127.0.0.1:9/x.json",
            "https://169.254.169.254/x",
            "https://10.0.0.1/x",
            "https://[::1]/x",
            "https://localhost/x.json",
        ] {
            let refused = HttpDocuments.fetch(url).await.unwrap_err();
            assert!(refused.contains("only public addresses"), "{url}: {refused}");
        }
    }
}
