//! Credentials that are added to requests.
//!
//! **Invariant:** this crate implements no login. It asks [`Credentials`] to authenticate each
//! request and reports to them if the server rejects it.

use std::sync::Arc;

use capstan_model::Secret;
use capstan_safety::mask::Masker;
use futures::future::BoxFuture;
use reqwest::StatusCode;
use reqwest::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};

use crate::client::HttpError;
use crate::transport::{HttpRequest, Target};

/// Authenticates requests to a server.
pub trait Credentials: Send + Sync {
    /// Adds the credentials to a request: headers, query parameters or cookies.
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a>;

    /// Receives the server's refusal of a request, with status 401 or 403.
    fn challenged<'a>(&'a self, challenge: Challenge<'a>) -> Challenged<'a>;

    /// Adds the secrets of these credentials to a masker, also those that are fetched later.
    fn hide_in(&self, _masker: &Arc<Masker>) {}
}

/// The result of adding credentials.
pub enum Applied<'a> {
    /// The credentials are in the request.
    Ready,
    /// The credentials are in the request; the number identifies them in a [`Challenge`].
    Numbered(u64),
    /// The credentials must be fetched first, and are in the request when the future completes
    /// with their number.
    Wait(BoxFuture<'a, Result<u64, HttpError>>),
}

/// A refusal by the server.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// The status: 401 or 403.
    pub status: StatusCode,
    /// The headers of the answer.
    pub headers: &'a HeaderMap,
    /// The number of the credentials that the request had; 0 if there were none.
    pub number: u64,
}

/// The reaction to a refusal.
pub enum Challenged<'a> {
    /// The refusal is final.
    Final,
    /// Other credentials justify one more request.
    Retry,
    /// Other credentials may have to be fetched; the result is true if there are any.
    Wait(BoxFuture<'a, Result<bool, HttpError>>),
}

/// Headers from the configuration. Headers that a request already has take precedence.
pub(crate) struct StaticHeaders(HeaderMap);

// === impl StaticHeaders ===

impl StaticHeaders {
    /// The headers, without those that frame a message.
    ///
    /// # Errors
    /// If a header cannot be sent.
    pub(crate) fn new(given: &[(String, Secret<String>)]) -> Result<Self, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let bad = || format!("its header `{name}` cannot be sent");
            let (name, value) = sensitive(name, value.reveal()).ok_or_else(bad)?;
            headers.append(name, value);
        }
        for name in ["content-length", "transfer-encoding", "connection"] {
            headers.remove(name);
        }
        Ok(Self(headers))
    }
}

impl Credentials for StaticHeaders {
    fn apply<'a>(&'a self, request: &'a mut HttpRequest) -> Applied<'a> {
        for name in self.0.keys() {
            if request.headers.contains_key(name) {
                continue;
            }
            for value in self.0.get_all(name) {
                request.headers.append(name, value.clone());
            }
        }
        Applied::Ready
    }

    fn challenged<'a>(&'a self, _: Challenge<'a>) -> Challenged<'a> {
        Challenged::Final
    }
}

// === impl HttpRequest ===

impl HttpRequest {
    /// Adds a header.
    ///
    /// # Errors
    /// If it has characters that cannot be sent.
    pub fn add_header(&mut self, name: &str, value: &str) -> Result<(), HttpError> {
        let (name, value) = sensitive(name, value).ok_or(UNFIT)?;
        self.headers.append(name, value);
        Ok(())
    }

    /// Adds a cookie after those that the request has.
    ///
    /// # Errors
    /// If it has characters that cannot be sent.
    pub fn add_cookie(&mut self, name: &str, value: &str) -> Result<(), HttpError> {
        let before = self.headers.get(COOKIE).map(HeaderValue::as_bytes);
        let before = before.map(|cookies| [cookies, b"; "].concat()).unwrap_or_default();
        let cookies = [before, format!("{name}={value}").into_bytes()].concat();
        let mut cookies = HeaderValue::from_bytes(&cookies).map_err(|_| UNFIT)?;
        cookies.set_sensitive(true);
        self.headers.insert(COOKIE, cookies);
        Ok(())
    }

    /// Adds an escaped pair such as `key=value` to the query.
    pub fn add_query(&mut self, pair: &str) {
        let mut url = self.to.url().clone();
        let query = match url.query().filter(|query| !query.is_empty()) {
            Some(query) => format!("{query}&{pair}"),
            None => pair.to_owned(),
        };
        url.set_query(Some(&query));
        self.to = Target::from(url);
    }
}

/// The error for a header or cookie that cannot be sent.
const UNFIT: HttpError = HttpError::Unfit("a header has characters that cannot be sent");

/// A header whose value is hidden in debug output; `None` if it cannot be sent.
fn sensitive(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use reqwest::{Method, Url};

    use super::*;
    use crate::payload::Payload;

    fn request(url: &str) -> HttpRequest {
        let to = Url::parse(url).unwrap().into();
        HttpRequest { method: Method::GET, to, headers: HeaderMap::new(), body: Payload::default() }
    }

    #[test]
    fn a_proof_stands_behind_the_query_and_the_cookies_of_a_request() {
        for (url, expected) in [
            ("https://h/a", "https://h/a?k=%26"),
            ("https://h/a?", "https://h/a?k=%26"),
            ("https://h/a?x=1", "https://h/a?x=1&k=%26"),
        ] {
            let mut request = request(url);
            request.add_query("k=%26");
            assert_eq!(request.to.url().as_str(), expected, "{url}");
        }
        let mut request = request("https://h/");
        request.add_cookie("a", "1").unwrap();
        request.add_cookie("b", "2").unwrap();
        assert_eq!(request.headers.get(COOKIE).unwrap(), "a=1; b=2");
        assert_eq!(request.headers.get_all(COOKIE).iter().count(), 1);
    }

    #[test]
    fn headers_of_the_configuration_give_way_and_do_not_frame_the_message() {
        let given = [("X-Key", "k"), ("accept", "*/*"), ("Content-Length", "7"), ("x-key", "l")];
        let given = given.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));
        let headers = StaticHeaders::new(&given).unwrap();
        let mut request = request("https://h/");
        request.add_header("accept", "text/plain").unwrap();
        assert!(matches!(headers.apply(&mut request), Applied::Ready));
        let key: Vec<_> = request.headers.get_all("x-key").iter().collect();
        assert_eq!(key, ["k", "l"]);
        assert_eq!(request.headers.get("accept").unwrap(), "text/plain");
        assert!(!request.headers.contains_key("content-length"));
        assert!(!format!("{:?}", request.headers).contains("\"k\""));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        assert_eq!(request("https://h/").add_header("a b", "1"), Err(UNFIT));
        assert_eq!(request("https://h/").add_header("a", "1\n2"), Err(UNFIT));
        assert_eq!(request("https://h/").add_cookie("a", "1\n2"), Err(UNFIT));
    }
}
