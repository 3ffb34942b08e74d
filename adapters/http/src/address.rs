//! Addresses of HTTP servers.

use std::net::IpAddr;
use std::path::PathBuf;

use capstan_safety::address::Loopback;
use reqwest::Url;

use crate::address_guard::Host;

/// An HTTP address, on the network or behind a socket of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    pub(crate) url: Url,
    /// The path of the socket, for a server on this machine.
    pub(crate) socket: Option<PathBuf>,
    /// Records if the configuration names this machine explicitly.
    pub(crate) loopback: Loopback,
}

// === impl WebAddress ===

impl WebAddress {
    /// Parses an address from the configuration: `https://`, `http://` or `unix://`.
    ///
    /// # Errors
    /// If it is invalid; the text describes the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (url, socket) = match text.strip_prefix("unix://") {
            Some(rest) => {
                let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
                (format!("http://localhost/{path}"), Some(PathBuf::from(socket)))
            }
            None => (text.to_owned(), None),
        };
        let loopback = Loopback::of_configured(&url);
        Ok(Self { url: http_url(Url::parse(&url))?, socket, loopback })
    }

    /// Parses an address from a server or a document: `https://` or `http://`, without a login.
    ///
    /// # Errors
    /// If it is invalid; the text describes the problem.
    pub fn discover(text: &str) -> Result<Self, String> {
        Self::found(http_url(Url::parse(text))?)
    }

    /// Resolves an address from a server or a document, relative to this one.
    /// Within the origin, it keeps this address's socket and its permission to reach this machine;
    /// any other origin has no such permission.
    ///
    /// # Errors
    /// If it is invalid; the text describes the problem.
    pub fn join(&self, text: &str) -> Result<Self, String> {
        let url = http_url(self.url.join(text))?;
        let Self { socket, loopback, .. } = self.clone();
        if url.origin() == self.url.origin() {
            return Ok(Self { url, socket, loopback });
        }
        Self::found(url)
    }

    /// Parses an address that this server names, such as that of its authorization server.
    /// It may be on this machine only if the configuration says that this server is.
    ///
    /// # Errors
    /// If it is invalid; the text describes the problem.
    pub fn refer(&self, text: &str) -> Result<Self, String> {
        let found = Self::discover(text)?;
        let beside = self.loopback == Loopback::Configured && self.socket.is_none();
        let loopback = if beside { Loopback::of_configured(text) } else { Loopback::Refused };
        Ok(Self { loopback, ..found })
    }

    fn found(url: Url) -> Result<Self, String> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "its address contains a login, which is allowed only in the configuration".into()
            );
        }
        Ok(Self { url, socket: None, loopback: Loopback::Refused })
    }

    /// True if both addresses belong to the same server.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin() && self.socket == other.socket
    }

    /// The origin of the server, safe to show.
    pub fn origin(&self) -> String {
        match &self.socket {
            Some(socket) => format!("unix://{}", socket.display()),
            None => self.url.origin().ascii_serialization(),
        }
    }

    /// The path.
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// The query, without the `?`.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// The whole address. It may contain a login if it is from the configuration.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// True if it is reached over TLS.
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// True if a third party on the network cannot read the requests.
    pub fn is_sheltered(&self) -> bool {
        self.is_encrypted() || self.socket.is_some() || is_loopback(&self.url)
    }

    /// The literal IP address; `None` for a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.target_host() {
            Host::Literal(address) => Some(address),
            Host::Name(_) => None,
        }
    }

    /// The host that is resolved or connected to.
    pub fn host(&self) -> String {
        match self.target_host() {
            Host::Literal(address) => address.to_string(),
            Host::Name(name) => name,
        }
    }

    /// True if the configuration names this machine explicitly, or a socket on it.
    pub fn is_configured_here(&self) -> bool {
        self.socket.is_some() || self.loopback == Loopback::Configured
    }

    /// Resolves the IP addresses of the host, unchecked; no connection is made.
    ///
    /// # Errors
    /// If its name cannot be resolved.
    pub async fn addresses(&self) -> std::io::Result<Vec<IpAddr>> {
        let found = self.target_host().addresses(0).await?;
        Ok(found.into_iter().map(|address| address.ip()).collect())
    }

    /// The host, before any lookup.
    pub(crate) fn target_host(&self) -> Host {
        Host::of(self.url.host_str().unwrap_or_default())
    }
}

/// True if an address is on this machine, which no proxy can reach for us.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match Host::of(url.host_str().unwrap_or_default()) {
        Host::Literal(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

/// Checks that a URL has the scheme `http` or `https`.
fn http_url<E: std::fmt::Display>(url: Result<Url, E>) -> Result<Url, String> {
    let url = url.map_err(|error| format!("its `url` cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("its `url` begins with `{}`, which is not HTTP", url.scheme()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use capstan_model::Trust;
    use capstan_safety::address::AddressPolicy;
    use capstan_safety::mask::Masker;

    use super::*;
    use crate::address_guard::{AddressGuard, LookupError};
    use crate::client::Client;
    use crate::transport::Transport;

    #[test]
    fn a_socket_and_the_path_behind_it_are_told_apart() {
        let cases = [
            ("unix:///run/a.sock:/mcp", Some("/run/a.sock"), "http://localhost/mcp"),
            ("unix:///run/a.sock", Some("/run/a.sock"), "http://localhost/"),
            ("unix:///run/a.sock:/m/x?y=1", Some("/run/a.sock"), "http://localhost/m/x?y=1"),
            ("https://example.com/mcp", None, "https://example.com/mcp"),
        ];
        for (text, socket, url) in cases {
            let address = WebAddress::parse(text).unwrap();
            assert_eq!(address.socket, socket.map(PathBuf::from), "{text}");
            assert_eq!(address.url.as_str(), url, "{text}");
        }
        for text in ["", "mcp", "ftp://host/", "file:///etc/passwd", "https://"] {
            assert!(WebAddress::parse(text).is_err(), "{text}");
        }
    }

    /// The transport that an address gets: local, far, or refused.
    fn reached(address: &WebAddress, policy: &AddressPolicy) -> &'static str {
        let masker = Arc::new(Masker::new(std::iter::empty()));
        match Client::new(address, &[], masker, policy).unwrap().transport() {
            Transport::Local(..) => "local",
            Transport::Far(_) => "far",
            Transport::Refused(_) => "refused",
        }
    }

    #[test]
    fn only_plain_addresses_of_this_machine_are_reached_the_short_way() {
        for (url, expected) in [
            ("http://127.0.0.1:81/mcp", "local"),
            ("http://[::1]:81/mcp", "local"),
            ("http://localhost/mcp", "local"),
            ("unix:///run/a.sock:/mcp", "local"),
            ("https://127.0.0.1:81/mcp", "far"),
            ("http://me:secret@127.0.0.1:81/mcp", "far"),
            ("http://me@localhost/mcp", "far"),
            ("http://1.1.1.1/mcp", "far"),
            ("http://localhost.example.com/mcp", "far"),
        ] {
            let address = WebAddress::parse(url).unwrap();
            assert_eq!(reached(&address, &AddressPolicy::default()), expected, "{url}");
        }
    }

    #[test]
    fn only_addresses_of_this_machine_bypass_the_proxy() {
        for (url, expected) in [
            ("http://127.0.0.1:1/", true),
            ("http://[::1]:1/", true),
            ("http://localhost/", true),
            ("http://localhost.example.com/", false),
            ("http://10.0.0.1/", false),
            ("http://127.0.0.1.example.com/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    /// Holes 1: the rule applies to the address that is dialled, however it is written.
    #[test]
    fn nothing_is_sent_to_a_literal_that_is_not_public_unless_the_configuration_allows_it() {
        let list = |network: &str| {
            let networks = vec![network.parse().unwrap()];
            AddressPolicy { networks, ..AddressPolicy::default() }
        };
        for (url, network) in [
            ("http://10.0.0.1/mcp", "10.0.0.0/8"),
            ("https://example.com@10.0.0.1/", "10.0.0.0/8"),
            ("http://0xc0a80001/", "192.168.0.1"),
            ("http://3232235521/", "192.168.0.0/16"),
            ("http://169.254.169.254/", "169.254.169.254"),
            ("http://[::ffff:169.254.169.254]/", "169.254.169.254"),
            ("http://0.0.0.0:3000/", "0.0.0.0"),
            ("http://2130706433:6379/", "127.0.0.1"),
            ("http://127.0.0.1./", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://%31%32%37.0.0.1/", "127.0.0.1"),
            ("http://127。0。0。1/", "127.0.0.1"),
            ("https://①②⑦.⓪.⓪.①/", "127.0.0.1"),
            ("http://[0000::1]/", "::1"),
            ("http://[::127.0.0.1]/", "::127.0.0.1"),
            ("http://[fd00::1]/", "fd00::/8"),
            ("http://127.1.1.1:80\\@127.2.2.2:80/", "127.1.1.1"),
        ] {
            let address = WebAddress::parse(url).unwrap();
            let sandboxed = AddressPolicy { trust: Trust::Sandboxed, ..AddressPolicy::default() };
            let trusted = AddressPolicy { trust: Trust::Trusted, ..AddressPolicy::default() };
            assert_eq!(reached(&address, &AddressPolicy::default()), "refused", "{url}");
            assert_eq!(reached(&address, &sandboxed), "refused", "{url}");
            assert_eq!(reached(&address, &list("10.99.0.0/16")), "refused", "{url}");
            assert_ne!(reached(&address, &list(network)), "refused", "{url}");
            assert_ne!(reached(&address, &trusted), "refused", "{url}");
        }
    }

    #[tokio::test]
    async fn other_names_of_this_machine_are_refused_when_they_are_looked_up() {
        let guard = |url| {
            let address = WebAddress::parse(url).unwrap();
            AddressGuard::new(address.target_host(), AddressPolicy::default(), address.loopback)
        };
        assert!(guard("http://localhost:1/").lookup(1).await.is_ok());
        for url in
            ["http://LOCALHOST/", "hTTps://LocalHost/", "http://ⓛocalhost/", "http://%6Cocalhost/"]
        {
            let refused = guard(url).lookup(1).await;
            assert!(matches!(refused, Err(LookupError::Refused(_))), "{url}");
        }
    }

    #[test]
    fn what_a_server_or_a_document_names_has_no_right_to_this_machine() {
        let policy = AddressPolicy::default();
        let home = WebAddress::parse("http://127.0.0.1:81/docs").unwrap();
        for (found, expected) in [
            (home.join("/v1"), "local"),
            (home.join("http://127.0.0.1:81/v1"), "local"),
            (home.join("http://127.0.0.1:82/"), "refused"),
            (home.join("//[::1]:81/"), "refused"),
            (WebAddress::discover("http://127.0.0.1:81/"), "refused"),
            (WebAddress::discover("http://[::1]/"), "refused"),
            (WebAddress::discover("https://10.0.0.1/"), "refused"),
            (WebAddress::discover("https://1.1.1.1/"), "far"),
        ] {
            assert_eq!(reached(&found.unwrap(), &policy), expected);
        }
        for refused in [
            "unix:///var/run/docker.sock",
            "file:///etc/passwd",
            "ftp://example.com/",
            "ws://example.com/",
            "jar:http://127.0.0.1!/",
            "https://example.com:80+&@example.com/",
            "https://me:pw@example.com/",
            "http://[::1%25lo]/",
        ] {
            assert!(WebAddress::discover(refused).is_err(), "{refused}");
            assert!(home.join(refused).is_err(), "{refused}");
        }
        let socket = WebAddress::parse("unix:///run/a.sock:/mcp").unwrap();
        assert_eq!(socket.join("https://example.com/").unwrap().socket, None);
    }
}
