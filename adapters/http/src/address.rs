//! Addresses of servers on the web.

use std::net::IpAddr;
use std::path::PathBuf;

use capstan_safety::address::Loopback;
use reqwest::Url;

use crate::address_guard::Host;

/// An address on the web, or behind a socket of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    pub(crate) url: Url,
    /// The socket that leads there, for one on this machine.
    pub(crate) socket: Option<PathBuf>,
    /// Whether the configuration names this machine explicitly.
    pub(crate) loopback: Loopback,
}

// === impl WebAddress ===

impl WebAddress {
    /// Reads an address that the configuration gives: `https://`, `http://` or `unix://`.
    ///
    /// # Errors
    /// When it cannot be read; the text describes the problem.
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

    /// Reads an address that a server or a document gives: `https://` or `http://`, without a login.
    ///
    /// # Errors
    /// When it cannot be read; the text describes the problem.
    pub fn discover(text: &str) -> Result<Self, String> {
        Self::found(http_url(Url::parse(text))?)
    }

    /// Resolves an address that a server or a document gives, relative to this one. Within the origin
    /// it leads where this one does; elsewhere it has no right to this machine.
    ///
    /// # Errors
    /// When it cannot be read; the text describes the problem.
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
            return Err("its address has a login in it, which only the configuration may".into());
        }
        Ok(Self { url, socket: None, loopback: Loopback::Refused })
    }

    /// Whether both are of one server.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.url.origin() == other.url.origin() && self.socket == other.socket
    }

    /// Its server, as it may be shown.
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

    /// The text behind the `?`.
    pub fn query(&self) -> Option<&str> {
        self.url.query()
    }

    /// Whether it is reached by TLS.
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Whether a third party on the network cannot read the requests.
    pub fn is_sheltered(&self) -> bool {
        self.is_encrypted() || self.socket.is_some() || is_loopback(&self.url)
    }

    /// The literal address that it is connected to; `None` for a name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self.target_host() {
            Host::Literal(address) => Some(address),
            Host::Name(_) => None,
        }
    }

    /// The host, as it is looked up or connected to.
    pub fn host(&self) -> String {
        match self.target_host() {
            Host::Literal(address) => address.to_string(),
            Host::Name(name) => name,
        }
    }

    /// Whether the configuration names this machine explicitly, or a socket on it.
    pub fn is_configured_here(&self) -> bool {
        self.socket.is_some() || self.loopback == Loopback::Configured
    }

    /// The addresses that it may be connected to, unchecked; nothing is connected.
    ///
    /// # Errors
    /// When its name cannot be resolved.
    pub async fn addresses(&self) -> std::io::Result<Vec<IpAddr>> {
        let found = self.target_host().addresses(0).await?;
        Ok(found.into_iter().map(|address| address.ip()).collect())
    }

    /// The host before any name is looked up.
    pub(crate) fn target_host(&self) -> Host {
        Host::of(self.url.host_str().unwrap_or_default())
    }
}

/// Whether an address is on this machine, where no proxy can reach it for us.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match Host::of(url.host_str().unwrap_or_default()) {
        Host::Literal(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

/// Checks that a URL has one of the two schemes of HTTP.
fn http_url<E: std::fmt::Display>(url: Result<Url, E>) -> Result<Url, String> {
    let url = url.map_err(|error| format!("its `url` cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("its `url` begins with `{}`, which is no HTTP", url.scheme()));
    }
    Ok(url)
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
