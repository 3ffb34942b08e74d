//! Redirect addresses: which ones a client may register, and which ones match a registered one.
//!
//! Patterns gate registration. At the authorization endpoint, only the registered text itself
//! matches, except for the port of a program on the user's own machine (RFC 8252, section 7.3).

use std::net::IpAddr;

use capstan_safety::app_scheme::is_app_scheme;
use url::{Host, Url};

/// Longest redirect address, in bytes.
const MAX_LENGTH: usize = 2000;

/// A pattern of redirect addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedirectPattern {
    scheme: String,
    host: String,
    /// `None` matches the default port, or any port of this machine.
    port: Option<u16>,
    segments: Vec<Segment>,
    /// The end of the path that starts with this text is free, if the pattern ends in `*`.
    rest: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    Any,
}

/// The reason why a redirect address cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRedirect {
    #[error(
        "is not a plain `https` address, an `http` address of the user's own machine, or an \
         address of an app"
    )]
    Shape,
    #[error("is not among the redirect addresses that this server allows")]
    NotAllowed,
}

/// The parts of a loopback address, as text.
struct Loopback<'a> {
    host: &'a str,
    port: Option<&'a str>,
    rest: &'a str,
}

// === impl RedirectPattern ===

impl RedirectPattern {
    /// Reads a pattern; `None` if it could match another host than the one it shows.
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let (scheme, rest) = pattern.split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let url = plain_url(&format!("{scheme}://{authority}/")).ok()?;
        if authority.contains('*') || path.contains(['?', '#', '\\']) {
            return None;
        }
        let mut parts: Vec<&str> = path.split('/').collect();
        let last = parts.pop()?;
        let rest = last.strip_suffix('*');
        if rest.is_none() {
            parts.push(last);
        }
        if rest.is_some_and(|rest| rest.contains('*')) {
            return None;
        }
        let segments = parts.into_iter().map(Segment::parse).collect::<Option<Vec<_>>>()?;
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str()?.to_owned(),
            port: url.port(),
            segments,
            rest: rest.map(ToOwned::to_owned),
        })
    }

    fn matches(&self, url: &Url) -> bool {
        let same_port = match self.port {
            None if is_own_machine(url) => true,
            port => url.port() == port,
        };
        let same_host = url.scheme() == self.scheme && url.host_str() == Some(&self.host);
        if !same_host || !same_port {
            return false;
        }
        let path = url.path().strip_prefix('/').unwrap_or_default();
        let mut parts = path.split('/');
        for segment in &self.segments {
            let Some(part) = parts.next() else { return false };
            if !segment.matches(part) {
                return false;
            }
        }
        match &self.rest {
            Some(start) => parts.next().is_some_and(|part| part.starts_with(start.as_str())),
            None => parts.next().is_none() && url.query().is_none(),
        }
    }
}

// === impl Segment ===

impl Segment {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => Some(Self::Any),
            "." | ".." => None,
            text if text.contains('*') => None,
            text => Some(Self::Text(text.to_owned())),
        }
    }

    fn matches(&self, part: &str) -> bool {
        match self {
            Self::Text(text) => part == text,
            Self::Any => !part.is_empty(),
        }
    }
}

/// Checks that a client may use a redirect address.
pub(crate) fn check(uri: &str, patterns: &[RedirectPattern]) -> Result<(), BadRedirect> {
    let url = plain_url(uri)?;
    let allowed = patterns.iter().any(|pattern| pattern.matches(&url));
    if allowed { Ok(()) } else { Err(BadRedirect::NotAllowed) }
}

/// True if the address of a request is the registered one.
///
/// A program on the user's machine may listen on another port than it registered: always for an
/// address such as `127.0.0.1`, and for `localhost` if it was registered without a port.
pub(crate) fn is_registered(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let (Some(registered), Some(asked)) = (Loopback::of(registered), Loopback::of(asked)) else {
        return false;
    };
    let any_port = registered.host != "localhost" || registered.port.is_none();
    any_port && registered.host == asked.host && registered.rest == asked.rest
}

/// The host of a redirect address, as a user should see it; for that of an app, with its scheme.
pub(crate) fn shown_host(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else { return String::new() };
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        _ if is_app_scheme(url.scheme()) => format!("{}://{host}", url.scheme()),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// True if a redirect address leads to a program on the user's own machine.
pub(crate) fn is_local(uri: &str) -> bool {
    Url::parse(uri).is_ok_and(|url| is_own_machine(&url) || is_app_scheme(url.scheme()))
}

// === impl Loopback ===

impl<'a> Loopback<'a> {
    fn of(uri: &'a str) -> Option<Self> {
        // Refuses spellings that a browser would normalize.
        let url = plain_url(uri).ok()?;
        if url.scheme() != "http" || !is_own_machine(&url) {
            return None;
        }
        let after = uri.strip_prefix("http://")?;
        let (authority, rest) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
        let (host, port) = match authority.rfind(':') {
            Some(colon) if !authority.ends_with(']') => {
                let (host, port) = authority.split_at(colon);
                (host, port.strip_prefix(':'))
            }
            Some(_) | None => (authority, None),
        };
        Some(Self { host, port, rest })
    }
}

/// Parses an address that every program reads alike: without login, fragment, dot segments or
/// characters that are normalized, and encrypted unless it stays on the user's own machine.
fn plain_url(uri: &str) -> Result<Url, BadRedirect> {
    let url = Url::parse(uri).map_err(|_| BadRedirect::Shape)?;
    let is_kept = url.as_str() == uri || url.as_str().strip_suffix('/') == Some(uri);
    let is_plain = uri.len() <= MAX_LENGTH
        && is_kept
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && !uri.contains(['\\', '@'])
        && !uri.to_ascii_lowercase().contains("%2e");
    let is_safe = match url.scheme() {
        "https" => true,
        "http" => is_own_machine(&url),
        scheme => is_app_scheme(scheme) && url.port().is_none(),
    };
    if is_plain && is_safe && url.host_str().is_some_and(|host| !host.is_empty()) {
        Ok(url)
    } else {
        Err(BadRedirect::Shape)
    }
}

/// True for an address of this machine: `localhost`, 127.0.0.0/8 or `::1`.
fn is_own_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns() -> Vec<RedirectPattern> {
        [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chat.openai.com/aip/*/oauth/callback",
            "https://chatgpt.com/connector/*",
            "https://app.example/oauth_*",
            "http://127.0.0.1/*",
            "http://localhost:3000/cb",
            "cursor://anysphere.cursor-mcp/oauth/*",
        ]
        .iter()
        .map(|pattern| RedirectPattern::parse(pattern).unwrap())
        .collect()
    }

    #[test]
    fn patterns_let_the_named_addresses_register_and_no_others() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chat.openai.com/aip/g-123/oauth/callback",
            "https://chatgpt.com/connector/oauth/abc",
            "https://chatgpt.com/connector/x?y=1",
            "https://app.example/oauth_callback",
            "http://127.0.0.1:33418/cb",
            "http://127.0.0.1/cb",
            "http://localhost:3000/cb",
            "cursor://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert_eq!(check(good, &patterns()), Ok(()), "{good}");
        }
        for bad in [
            "https://claude.ai/api/mcp/auth_callback/x",
            "https://claude.ai/api/mcp/auth_callback?x=1",
            "https://claude.ai/api/mcp/AUTH_callback",
            "https://claude.ai:8443/api/mcp/auth_callback",
            "https://claude.ai.evil.test/api/mcp/auth_callback",
            "https://evil.test/https://claude.ai/api/mcp/auth_callback",
            "https://chat.openai.com/aip/a/b/oauth/callback",
            "https://chat.openai.com/aip//oauth/callback",
            "https://chat.openai.com/aip/oauth/callback",
            "https://chatgpt.com/connector",
            "https://chatgpt.com/connector_evil/x",
            "https://app.example/x",
            "http://localhost:3001/cb",
            "http://127.0.0.2/cb",
            "cursor://anysphere.cursor-mcp/other",
            "cursor://anysphere.cursor-mcp.evil/oauth/callback",
            "cursor://evil/oauth/callback",
            "vscode://anysphere.cursor-mcp/oauth/callback",
            "https://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert_eq!(check(bad, &patterns()), Err(BadRedirect::NotAllowed), "{bad}");
        }
    }

    #[test]
    fn addresses_that_programs_read_differently_are_never_registered() {
        let everything = [RedirectPattern::parse("https://app.example/*").unwrap()];
        for bad in [
            "https://app.example/cb#fragment",
            "https://user@app.example/cb",
            "https://app.example/a/../cb",
            "https://app.example/%2e%2e/cb",
            "https://app.example\\@evil.test/cb",
            "https://APP.example/cb",
            "https://app.example/c b",
            "https://app.example:443/cb",
            "http://evil.test/cb",
            "http://app.example/cb",
            "javascript:alert(1)",
            "data:text/html,x",
            "cursor://app.example:1/cb",
            "cursor:///cb",
            "cursor:app.example/cb",
            "cursor://app.example/a/../cb",
            "CURSOR://app.example/cb",
            "file://app.example/cb",
            "intent://app.example/cb",
            "ms-settings://app.example/cb",
            "//app.example/cb",
            "",
        ] {
            assert_eq!(check(bad, &everything), Err(BadRedirect::Shape), "{bad}");
        }
        let long = format!("https://app.example/{}", "a".repeat(MAX_LENGTH));
        assert_eq!(check(&long, &everything), Err(BadRedirect::Shape));
    }

    #[test]
    fn a_pattern_that_could_match_another_host_is_refused() {
        for bad in [
            "*",
            "https://*",
            "https://*/cb",
            "https://*.example.com/cb",
            "https://example.com*",
            "https://example.com/a*b/cb",
            "https://example.com/a*/cb",
            "https://example.com/**",
            "https://example.com/../*",
            "https://example.com/cb?x=*",
            "https://user@example.com/*",
            "http://example.com/*",
            "javascript:alert(1)//*",
            "javascript://x/*",
            "file://x/*",
            "cursor://*",
            "cursor://*/callback",
            "",
        ] {
            assert_eq!(RedirectPattern::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn authorize_takes_the_registered_text_and_any_port_of_a_loopback_address() {
        for (registered, asked) in [
            ("https://a.example/cb", "https://a.example/cb"),
            ("http://127.0.0.1:33418/cb", "http://127.0.0.1:50000/cb"),
            ("http://127.0.0.1/cb", "http://127.0.0.1:50000/cb"),
            ("http://[::1]:1/cb", "http://[::1]:2/cb"),
            ("http://[::1]/cb", "http://[::1]:2/cb"),
            ("http://localhost/callback", "http://localhost:3118/callback"),
        ] {
            assert!(is_registered(registered, asked), "{asked}");
        }
        for (registered, asked) in [
            ("https://a.example/cb", "https://a.example/cb/x"),
            ("https://a.example/cb", "https://a.example/cb/"),
            ("https://a.example/cb", "https://a.example/CB"),
            ("https://a.example/cb", "https://a.example/%63b"),
            ("https://a.example/cb", "https://a.example/./cb"),
            ("https://a.example/cb", "https://a.example:444/cb"),
            ("https://a.example/cb", "https://a.example/cb?x=1"),
            ("http://127.0.0.1:33418/cb", "http://127.0.0.1:33418.evil.test/cb"),
            ("http://127.0.0.1:33418/cb", "http://127.0.0.1:33418@evil.test/cb"),
            ("http://127.0.0.1:33418/cb", "http://127.0.0.1:50000/other"),
            ("http://127.0.0.1:33418/cb", "http://127.0.0.2:33418/cb"),
            ("http://127.0.0.1:33418/cb", "http://localhost:33418/cb"),
            ("http://127.0.0.1:33418/cb", "https://127.0.0.1:33418/cb"),
            ("http://127.0.0.1:33418/cb", "http://127.1:33418/cb"),
            ("http://localhost:3000/cb", "http://localhost:3001/cb"),
            ("cursor://app/cb", "cursor://app/cb/x"),
            ("cursor://app/cb", "cursor://other/cb"),
        ] {
            assert!(!is_registered(registered, asked), "{asked}");
        }
    }
}
