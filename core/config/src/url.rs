//! Checks the address of a server.

use url::{Host, ParseError, Url};

/// Ports of services that do not speak HTTP.
///
/// Such a service may interpret a request as commands of its own protocol.
const ODD_PORTS: &[u16] = &[
    21, 22, 23, 25, 53, 110, 111, 119, 135, 139, 143, 389, 445, 465, 514, 587, 636, 993, 995, 1433,
    2049, 2375, 2376, 2379, 3306, 3389, 5432, 5900, 6379, 10250, 11211, 27017,
];

/// The error in an address, as the end of a sentence.
pub(crate) type Fault = &'static str;

const NO_SCHEME: Fault = "does not begin with `https://`, `http://` or `unix://`";

/// Checks an address: `http://` or `https://` with a host, or `unix://` with a path.
pub(crate) fn check(url: &str) -> Result<(), Fault> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("contains a space or a control character");
    }
    let (scheme, rest) = url.split_once("://").ok_or(NO_SCHEME)?;
    match scheme.to_ascii_lowercase().as_str() {
        // The parser skips further slashes and would read the path as the host.
        "http" | "https" if rest.starts_with(['/', '\\']) => Err("has no host"),
        "http" | "https" => Url::parse(url).map(drop).map_err(fault),
        "unix" if rest.starts_with('/') && rest.len() > 1 => Ok(()),
        "unix" => Err("names no socket; write `unix:///path/to.sock`"),
        _ => Err(NO_SCHEME),
    }
}

/// The port of an address, if it belongs to a protocol other than HTTP.
pub(crate) fn odd_port(url: &str) -> Option<u16> {
    let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    url.port().filter(|port| ODD_PORTS.contains(port))
}

/// True for the address of a login's callback: on this machine, unencrypted, with a port.
pub(crate) fn is_local_callback(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    url.scheme() == "http"
        && matches!(url.host_str(), Some("127.0.0.1" | "localhost"))
        && url.port().is_some_and(|port| port != 0)
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
}

/// True for an `https` address, or an `http` one on this machine.
pub(crate) fn is_https_or_loopback(url: &str) -> bool {
    web(url).is_some_and(|parsed| parsed.scheme() == "https" || is_loopback(&parsed))
}

/// True for an address on this machine.
pub(crate) fn is_local_address(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// True for an `http` or `https` address with at most a path.
pub(crate) fn is_origin_or_path(url: &str) -> bool {
    web(url).is_some_and(|url| url.query().is_none() && url.fragment().is_none())
}

/// An `http` or `https` address without credentials.
fn web(url: &str) -> Option<Url> {
    check(url).ok()?;
    let parsed = Url::parse(url).ok()?;
    let has_credentials = !parsed.username().is_empty() || parsed.password().is_some();
    (["http", "https"].contains(&parsed.scheme()) && !has_credentials).then_some(parsed)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the errors are the parser's, and may grow")]
fn fault(error: ParseError) -> Fault {
    match error {
        ParseError::EmptyHost => "has no host",
        ParseError::InvalidPort => "has no valid port",
        ParseError::InvalidIpv6Address => "has a malformed IPv6 address",
        _ => "has a malformed host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_a_host_or_a_socket_are_accepted() {
        for url in [
            "https://example.com/mcp",
            "http://localhost:8080/mcp/",
            "HTTP://[::1]:80",
            "https://user:pw@host?x=1",
            "unix:///run/x.sock",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn ports_of_other_protocols_are_known() {
        for (url, expected) in [
            ("https://example.com:25/", Some(25)),
            ("https://me:110@[::1]:6379", Some(6379)),
            ("http://h:2375?x", Some(2375)),
            ("https://example.com/", None),
            ("https://example.com:443/", None),
            ("https://me:25@example.com/", None),
            ("http://h:8080/a:25/", None),
            ("unix:///run/x.sock:25", None),
        ] {
            assert_eq!(odd_port(url), expected, "{url}");
        }
    }

    #[test]
    fn a_callback_is_on_this_machine_and_has_a_port() {
        for url in ["http://127.0.0.1:8765/callback", "http://localhost:7777/oauth/callback"] {
            assert!(is_local_callback(url), "{url}");
        }
        for url in [
            "http://127.0.0.1/callback",
            "https://127.0.0.1:8765/callback",
            "http://127.0.0.1.example.com:1/",
            "http://0.0.0.0:8765/",
            "http://example.com:8765/",
            "http://me@127.0.0.1:8765/",
            "http://127.0.0.1:8765/?a=b",
            "http://127.0.0.1:8765/#a",
            "capstan://callback",
        ] {
            assert!(!is_local_callback(url), "{url}");
        }
    }

    #[test]
    fn addresses_that_lead_nowhere_are_refused() {
        for url in [
            "",
            "example.com",
            "https://",
            "https:///mcp",
            "https://:80/",
            "ftp://host",
            "https://h:x",
            "https://h:99999",
            "unix://",
            "unix://sock",
            "http://a b",
            "file:///etc/passwd",
            "http://[::1",
            "javascript:alert(1)",
            "https://user@",
            "http://[::1]80",
            "http://h\n",
        ] {
            assert!(check(url).is_err(), "{url:?} was accepted");
        }
    }
}
