//! What the command line needs to know of addresses.

use core::net::IpAddr;

use capstan_hub::ports::BoxFuture;

use crate::AppError;

/// Finds out where URLs lead.
pub trait Addresses {
    /// Where a configured URL leads. Nothing is connected.
    ///
    /// # Errors
    /// When the URL cannot be read. A name that cannot be resolved is no error.
    fn addresses<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<UrlAddresses, AppError>>;
}

/// Where a URL leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlAddresses {
    /// To this machine, in so many words, or to a socket on it.
    Here,
    /// To this address.
    Literal(IpAddr),
    /// To the addresses that a name resolves to now.
    Name(String, Vec<IpAddr>),
}
