//! Checks the address of a server.

use url::{ParseError, Url};

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
