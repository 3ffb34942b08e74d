//! Port that resolves the addresses of URLs.

use core::net::IpAddr;

use capstan_hub::ports::BoxFuture;

use crate::AppError;

/// Resolves the addresses that URLs lead to.
pub trait Addresses: Send + Sync {
    /// Resolves a configured URL without connecting to it.
    ///
    /// # Errors
    /// If the URL cannot be parsed. A name that cannot be resolved is no error.
    fn addresses<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<UrlAddresses, AppError>>;
}

/// The destination of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlAddresses {
    /// This machine, named as such in the URL, or a socket on it.
    Here,
    /// This IP address.
    Literal(IpAddr),
    /// A name, with the addresses it resolves to now.
    Name(String, Vec<IpAddr>),
}
