//! Requests to servers that do not speak MCP: the answer is read to its end or to a limit.
//!
//! **Invariant:** the path and the query are sent as given. If URL parsing would normalize them, as
//! it does with `..`, nothing is sent.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Url};

use crate::client::{Client, HttpError};
use crate::payload::Payload;
use crate::transport::{HttpRequest, HttpResponse};

/// A request.
#[derive(Clone, Default)]
pub struct PlainRequest {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, escaped.
    pub path: String,
    /// The text after the `?`, escaped.
    pub query: Option<String>,
    /// Headers in addition to those of every request; these take precedence.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct PlainResponse {
    /// The status.
    pub status: u16,
    /// The content type, as received.
    pub content_type: Option<String>,
    /// The body, or its beginning.
    pub body: Bytes,
    /// True if `body` is all of it.
    pub whole: bool,
}

// === impl Client ===

impl Client {
    /// Sends a request and reads at most `limit` bytes of the answer. Redirects are followed within
    /// the origin.
    ///
    /// # Errors
    /// If there is no answer. An error status is an answer.
    pub async fn send(
        &self,
        request: PlainRequest,
        limit: usize,
    ) -> Result<PlainResponse, HttpError> {
        let request = self.request(request)?;
        let response = self.follow(&|| request.clone()).await?;
        self.plain(response, limit).await
    }

    /// Sends a request without credentials, and reads at most `limit` bytes of the answer. No
    /// redirect is followed.
    ///
    /// # Errors
    /// If there is no answer. An error status or a redirect is an answer.
    pub async fn send_unredirected(
        &self,
        request: PlainRequest,
        limit: usize,
    ) -> Result<PlainResponse, HttpError> {
        let response = self.send_once(Box::new(self.request(request)?)).await?;
        self.plain(response, limit).await
    }

    async fn plain(
        &self,
        response: HttpResponse,
        limit: usize,
    ) -> Result<PlainResponse, HttpError> {
        let HttpResponse { status, headers, body } = response;
        let (body, whole) = self.read(body, limit).await?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.map(ToOwned::to_owned);
        Ok(PlainResponse { status: status.as_u16(), content_type, body, whole })
    }

    fn request(&self, request: PlainRequest) -> Result<HttpRequest, HttpError> {
        let PlainRequest { method, path, query, headers, body } = request;
        let url = exact(self.target().url(), &path, query.as_deref())
            .ok_or(HttpError::Unfit("its path would change when it is sent"))?;
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| HttpError::Unfit("its method is invalid"))?;
        let (to, body) = (url.into(), Payload::from(body));
        let mut request = HttpRequest { method, to, headers: HeaderMap::new(), body };
        for (name, value) in headers {
            request.add_header(&name, &value)?;
        }
        Ok(request)
    }
}

/// The address with another path and query; `None` if URL parsing would change them.
fn exact(base: &Url, path: &str, query: Option<&str>) -> Option<Url> {
    let mut url = base.clone();
    url.set_fragment(None);
    url.set_path(path);
    url.set_query(query);
    let same = url.path() == path && url.query() == query && url.origin() == base.origin();
    same.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::WebAddress;

    #[test]
    fn a_path_that_would_not_stay_as_it_is_is_not_sent() {
        let base = Url::parse("https://me:pw@h:81/x?y#z").unwrap();
        let exact = |path, query| exact(&base, path, query).map(|url| url.to_string());
        assert_eq!(exact("/a%2Fb/c", Some("q=1")).unwrap(), "https://me:pw@h:81/a%2Fb/c?q=1");
        assert_eq!(exact("/", None).unwrap(), "https://me:pw@h:81/");
        for odd in ["/a/../b", "/a/%2e%2E/b", "/a/.", "a", "", "/a b", "/a\\b", "/a?b", "/a#b"] {
            assert_eq!(exact(odd, None), None, "{odd}");
        }
        for odd in ["a b", "a#b", "a\nb", "é"] {
            assert_eq!(exact("/", Some(odd)), None, "{odd}");
        }
    }

    #[test]
    fn addresses_are_joined_and_told_apart() {
        let base = WebAddress::parse("https://h/docs/api.json").unwrap();
        let joined = |text| base.join(text).map(|address| (base.same_origin(&address), address));
        let (same, address) = joined("../v1").unwrap();
        assert!(same && address.path() == "/v1" && address.origin() == "https://h");
        for other in ["http://h/", "https://h:8443/", "//other/v1", "https://169.254.169.254/"] {
            assert!(!joined(other).unwrap().0, "{other}");
        }
        assert!(joined("file:///etc/passwd").is_err());
        assert_eq!(WebAddress::parse("http://[::1]:8/").unwrap().ip().unwrap().to_string(), "::1");
    }
}
