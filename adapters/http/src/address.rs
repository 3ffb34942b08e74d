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
#[path = "address_tests.rs"]
mod tests;
