//! Requests to servers on the web that do not speak MCP: one leaves, and what comes back is read to
//! its end or to a limit.
//!
//! **Invariant:** the path and the query are sent as they were given. Where an address would tidy
//! them up, as it does with `..`, nothing is sent.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use capstan_model::Secret;
use capstan_policy::address::AddressPolicy;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};

use crate::address_guard::Host;
use crate::connect::{Address, is_loopback};
use crate::fault::Fault;
use crate::mask::Masker;
use crate::pieces::Pieces;
use crate::reach::{Order, Response};
use crate::refusal::Refusal;
use crate::web::{Web, WebError};

/// An address on the web, or behind a socket of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress(pub(crate) Address);

/// The way to one origin.
pub struct Plain {
    web: Web,
}

/// What is sent.
#[derive(Clone, Default)]
pub struct PlainRequest {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path, escaped.
    pub path: String,
    /// What stands behind the `?`, escaped.
    pub query: Option<String>,
    /// Headers beside those that are sent with every request, over which these win.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct PlainResponse {
    /// The status.
    pub status: u16,
    /// The content type, as it was written.
    pub content_type: Option<String>,
    /// The body, or its beginning.
    pub body: Bytes,
    /// Whether that is all of it.
    pub whole: bool,
}

/// Why nothing came back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlainError {
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {0}")]
    Unfit(&'static str),
    /// The request did not leave.
    #[error("{0}")]
    NotSent(String),
    /// The request did not leave: a rule about addresses refuses where it would go.
    #[error("{0}")]
    Blocked(String),
    /// The request was sent; the answer redirects it to where we do not go.
    #[error("{0}")]
    Elsewhere(String),
    /// The request left; what became of it is not known.
    #[error("{0}")]
    Lost(String),
    /// The server sends us on to somewhere we do not go.
    #[error("{words}")]
    Redirected {
        /// Its status.
        status: u16,
        /// Where it sends us.
        words: String,
    },
}

// === impl WebAddress ===

impl WebAddress {
    /// Reads an address that begins with `https://`, `http://` or `unix://`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        Address::parse(text).map(Self)
    }

    /// Reads an address that a server or a document gives: `https://` or `http://`, without a login.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn discover(text: &str) -> Result<Self, String> {
        Address::discover(text).map(Self)
    }

    /// What another address, which a server or a document gives, means from here.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn join(&self, text: &str) -> Result<Self, String> {
        self.0.join(text).map(Self)
    }

    /// Whether both are of one server.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.0.url.origin() == other.0.url.origin() && self.0.socket == other.0.socket
    }

    /// Its server, as it may be shown.
    pub fn origin(&self) -> String {
        match &self.0.socket {
            Some(socket) => format!("unix://{}", socket.display()),
            None => self.0.url.origin().ascii_serialization(),
        }
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.0.url.path()
    }

    /// What stands behind the `?`.
    pub fn query(&self) -> Option<&str> {
        self.0.url.query()
    }

    /// Whether it is reached by TLS.
    pub fn is_encrypted(&self) -> bool {
        self.0.url.scheme() == "https"
    }

    /// Whether nobody between here and there reads what is sent.
    pub fn is_sheltered(&self) -> bool {
        self.is_encrypted() || self.0.socket.is_some() || is_loopback(&self.0.url)
    }

    /// The literal address that it is connected to, where it is no name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.0.host() {
            Host::Literal(address) => Some(address),
            Host::Name(_) => None,
        }
    }

    /// The host, as it is looked up or connected to.
    pub fn host(&self) -> String {
        match self.0.host() {
            Host::Literal(address) => address.to_string(),
            Host::Name(name) => name,
        }
    }

    /// Whether the configuration names this machine in so many words, or a socket on it.
    pub fn is_configured_here(&self) -> bool {
        self.0.is_configured_here()
    }

    /// The addresses that it may be connected to, unchecked; nothing is connected.
    ///
    /// # Errors
    /// When its name cannot be resolved.
    pub async fn addresses(&self) -> std::io::Result<Vec<IpAddr>> {
        let found = self.0.host().addresses(0).await?;
        Ok(found.into_iter().map(|address| address.ip()).collect())
    }
}

// === impl Plain ===

impl Plain {
    /// The way to an address; nothing is sent yet. The secrets are kept out of errors.
    ///
    /// # Errors
    /// Why there is none.
    pub fn new(
        address: &WebAddress,
        headers: &[(String, Secret<String>)],
        secrets: &[Secret<String>],
        addresses: &AddressPolicy,
    ) -> Result<Self, String> {
        let given = headers.iter().map(|(_, value)| value).chain(secrets);
        let masker = Masker::new(given.map(|secret| secret.reveal().clone()));
        Ok(Self { web: address.0.web(headers, Arc::new(masker), addresses)? })
    }

    /// Sends a request and reads at most `limit` bytes of what comes back. Redirects are followed
    /// within the origin.
    ///
    /// # Errors
    /// Why there is no answer. What a status says is none of these.
    pub async fn send(
        &self,
        request: PlainRequest,
        limit: usize,
    ) -> Result<PlainResponse, PlainError> {
        let order = self.order(request)?;
        let Response { status, headers, body } = self.web.follow(&|| order.clone()).await?;
        let (body, whole) = self.web.read(body, limit).await?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.map(ToOwned::to_owned);
        Ok(PlainResponse { status: status.as_u16(), content_type, body, whole })
    }

    fn order(&self, request: PlainRequest) -> Result<Order, PlainError> {
        let PlainRequest { method, path, query, headers: given, body } = request;
        let url = exact(self.web.url(), &path, query.as_deref())
            .ok_or(PlainError::Unfit("its path does not stay as it is"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name = HeaderName::from_bytes(name.as_bytes());
            let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(&value)) else {
                return Err(PlainError::Unfit("a header has characters that cannot be sent"));
            };
            value.set_sensitive(true);
            headers.append(name, value);
        }
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| PlainError::Unfit("its method is none"))?;
        Ok(Order { method, to: url.into(), headers, body: Pieces::from(body) })
    }
}

/// The address with another path and query; `None` where they would not stay as they are.
fn exact(base: &Url, path: &str, query: Option<&str>) -> Option<Url> {
    let mut url = base.clone();
    url.set_fragment(None);
    url.set_path(path);
    url.set_query(query);
    let same = url.path() == path && url.query() == query && url.origin() == base.origin();
    same.then_some(url)
}

// === impl PlainError ===

impl From<WebError> for PlainError {
    fn from(error: WebError) -> Self {
        match error {
            WebError::NotSent(reason) => Self::NotSent(reason),
            WebError::Lost(reason) | WebError::NotMcp(reason) => Self::Lost(reason),
            WebError::TooLong(limit) => Self::Lost(Fault::TooLong(limit).to_string()),
            WebError::Blocked(reason) => Self::Blocked(reason),
            WebError::Refused(Refusal { fault: Fault::Elsewhere(reason), .. }) => {
                Self::Elsewhere(reason)
            }
            WebError::Refused(refusal) => {
                Self::Redirected { status: refusal.status, words: refusal.fault.to_string() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
