//! Refuses requests with a foreign `Host` or `Origin`.
//!
//! A page on the web can make a browser on this machine call a local server, and can make its own
//! name point there (DNS rebinding). `Host` and `Origin` reveal both.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::StatusCode;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use crate::transport::http::HttpSettings;

/// The accepted host names and origins.
pub(crate) struct Guard {
    listen: IpAddr,
    port: u16,
    /// In lower case; each with or without a port.
    hosts: Vec<String>,
    /// In lower case, without a trailing slash.
    origins: Vec<String>,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    #[error("the header `Host` is missing or invalid")]
    NoHost,
    #[error("this host name is not allowed; add it to `allowed_hosts`")]
    Host,
    #[error("this origin is not allowed; add it to `allowed_origins`")]
    Origin,
}

// === impl Foreign ===

impl Foreign {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
        }
    }
}

// === impl Guard ===

impl Guard {
    pub(crate) fn new(address: SocketAddr, settings: &HttpSettings) -> Self {
        let lower = |texts: &[String]| -> Vec<String> {
            texts.iter().map(|text| text.trim_end_matches('/').to_ascii_lowercase()).collect()
        };
        Self {
            listen: address.ip().to_canonical(),
            port: address.port(),
            hosts: lower(&settings.allowed_hosts),
            origins: lower(&settings.allowed_origins),
        }
    }

    /// Checks the host and the origin.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Foreign> {
        self.check_host(head)?;
        if !head.headers.contains_key(ORIGIN) {
            return Ok(());
        }
        match only(&head.headers, &ORIGIN) {
            Some(origin) if self.may_call(origin) => Ok(()),
            Some(_) | None => Err(Foreign::Origin),
        }
    }

    /// Checks the host only.
    pub(crate) fn check_host(&self, head: &Parts) -> Result<(), Foreign> {
        // A request line with a complete URL names the host too; then both must be valid.
        let line = head.uri.authority().map(Authority::as_str);
        let host = only(&head.headers, &HOST).ok_or(Foreign::NoHost)?;
        for host in line.into_iter().chain([host]) {
            let name = name(host).ok_or(Foreign::NoHost)?;
            if !self.is_ours(host, name) {
                return Err(Foreign::Host);
            }
        }
        Ok(())
    }

    /// The origin of a request, if the operator allows it by name.
    pub(crate) fn named_origin(&self, head: &Parts) -> Option<HeaderValue> {
        let origin = head.headers.get(ORIGIN)?;
        let text = origin.to_str().ok()?;
        let named = self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(text));
        named.then(|| origin.clone())
    }

    fn is_ours(&self, host: &str, name: &str) -> bool {
        if is_loopback(name) {
            return true;
        }
        if let Some(address) = address(name) {
            // DNS cannot redirect an address. A listener on all addresses accepts any of them.
            if address == self.listen || self.listen.is_unspecified() {
                return true;
            }
        }
        let is = |allowed: &String| {
            allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name)
        };
        self.hosts.iter().any(is)
    }

    fn may_call(&self, origin: &str) -> bool {
        if self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        // Another port is another program on this machine, which may serve pages of any origin.
        let is_own = |place: &str| {
            let port = if origin.starts_with("https") { 443 } else { 80 };
            name(place).is_some_and(is_loopback) && port_of(place).unwrap_or(port) == self.port
        };
        self.listen.is_loopback() && place.is_some_and(is_own)
    }
}

/// The value of a header that must occur only once.
fn only<'a>(headers: &'a HeaderMap, key: &hyper::header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(key).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The host without its port; `None` if it is not a valid host.
fn name(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(']') {
        Some(end) if host.starts_with('[') => {
            let (name, rest) = host.split_at_checked(end + 1)?;
            match rest.strip_prefix(':') {
                Some(port) => (name, Some(port)),
                None if rest.is_empty() => (name, None),
                None => return None,
            }
        }
        _ => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_port = |port: &str| port.is_empty() || number(port).is_some();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[:]".contains(&byte);
    let is_host = !name.is_empty() && name.bytes().all(is_name);
    (is_host && port.is_none_or(is_port)).then_some(name)
}

/// The port of a host, if it has one.
fn port_of(host: &str) -> Option<u16> {
    number(host.rsplit_once(':')?.1)
}

fn number(port: &str) -> Option<u16> {
    port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten()
}

fn address(name: &str) -> Option<IpAddr> {
    // Only IPv6 addresses are in brackets.
    let address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inside) => IpAddr::V6(inside.parse().ok()?),
        None => IpAddr::V4(name.parse().ok()?),
    };
    Some(address.to_canonical())
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address(name).is_some_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn guard(listen: &str) -> Guard {
        let mut settings = HttpSettings::new(listen.parse().unwrap());
        settings.allowed_hosts = vec!["Hub.example".to_owned(), "other.example:8443".to_owned()];
        settings.allowed_origins = vec!["https://App.example/".to_owned()];
        Guard::new(settings.listen, &settings)
    }

    #[track_caller]
    fn check(listen: &str, headers: &[(&str, &str)], expected: Result<(), Foreign>) {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(guard(listen).check(&head), expected, "{listen} {headers:?}");
    }

    #[test]
    fn we_are_called_by_our_own_names_only() {
        let loopback = "127.0.0.1:8080";
        for host in [
            "localhost",
            "LOCALHOST:9",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
            "hub.example",
            "HUB.example:99",
            "other.example:8443",
            "[::ffff:127.0.0.1]",
        ] {
            check(loopback, &[("host", host)], Ok(()));
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evil.example:8080",
            "127.1",
            "2130706433",
            "0.0.0.0",
            "10.0.0.1",
            "localhost.",
            "other.example",
            "[::2]",
            "foo.localhost",
            "xn--lcalhost-n8a",
            "[127.0.0.1]",
            "[127.0.0.1]:8080",
            "[localhost]",
            "[[::1]]",
        ] {
            check(loopback, &[("host", host)], Err(Foreign::Host));
        }
    }

    /// Holes 10 and 13.
    #[test]
    fn what_is_no_host_is_a_bad_request() {
        for host in [
            "",
            ":8080",
            "[::1",
            "[::1]x",
            "localhost:http",
            "localhost:+80",
            "localhost:65536",
            "localhost:99999",
            "localhost:123456",
            "localhost,localhost",
            "localhost/../..",
            "127.0.0.1:80/../..",
            "localhost@evil.example",
            "evil.example@localhost",
            "127.0.0.1:80@evil.example",
            "ｌocalhost",
            "localhost evil.example",
        ] {
            check("127.0.0.1:8080", &[("host", host)], Err(Foreign::NoHost));
        }
        check("127.0.0.1:8080", &[], Err(Foreign::NoHost));
        for host in ["localhost:65535", "localhost:"] {
            check("127.0.0.1:8080", &[("host", host)], Ok(()));
        }
    }

    #[test]
    fn where_we_listen_on_every_address_any_address_is_ours_and_names_are_not() {
        check("0.0.0.0:80", &[("host", "10.0.0.1:80")], Ok(()));
        check("10.0.0.1:80", &[("host", "10.0.0.1")], Ok(()));
        check("10.0.0.1:80", &[("host", "10.0.0.2")], Err(Foreign::Host));
        check("0.0.0.0:80", &[("host", "evil.example")], Err(Foreign::Host));
    }

    #[test]
    fn a_url_in_the_request_line_must_be_ours_too() {
        let request = Request::builder().uri("http://evil.example/mcp").header("host", "localhost");
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(guard("127.0.0.1:1").check(&head), Err(Foreign::Host));
    }

    #[test]
    fn own_pages_and_listed_ones_may_call() {
        let with = |origin| [("host", "localhost"), ("origin", origin)];
        for origin in
            ["http://localhost:1", "https://127.0.0.1:1", "http://[::1]:1", "https://app.example"]
        {
            check("127.0.0.1:1", &with(origin), Ok(()));
        }
        check("127.0.0.1:80", &with("http://localhost"), Ok(()));
        check("127.0.0.1:443", &with("https://[::1]"), Ok(()));
        check("127.0.0.1:80", &with("https://localhost"), Err(Foreign::Origin));
        for origin in [
            "http://evil.example",
            "http://localhost",
            "http://localhost:3000",
            "http://[::1]:2",
            "http://localhost:",
            "null",
            "",
            "file://",
            "http://localhost.evil.example",
            "https://app.example:444",
            "http://app.example",
            "http://localhost/path",
            "chrome-extension://localhost",
            "https://evil.example@localhost",
        ] {
            check("127.0.0.1:1", &with(origin), Err(Foreign::Origin));
        }
        check("0.0.0.0:1", &with("http://localhost"), Err(Foreign::Origin));
        check("0.0.0.0:1", &with("https://app.example"), Ok(()));
    }
}
