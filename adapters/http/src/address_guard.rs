//! Checks the IP addresses that connections are made to.
//!
//! **Invariant:** connections are made only to addresses that passed the check. A name is resolved
//! once for each connection, and the checked results are used as they are, so that a second lookup
//! cannot lead elsewhere.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use capstan_safety::address::{AddressPolicy, AddressRefusal, Loopback};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Checks the IP addresses of one host.
#[derive(Clone, Debug)]
pub(crate) struct AddressGuard {
    host: Host,
    policy: Arc<AddressPolicy>,
    loopback: Loopback,
}

/// The host of a URL that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    Literal(IpAddr),
    Name(String),
}

/// The reason why a host has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error(transparent)]
    Refused(#[from] AddressRefusal),
    #[error(transparent)]
    Failed(#[from] io::Error),
}

// === impl Host ===

impl Host {
    /// The host of a parsed URL.
    pub(crate) fn of(host: &str) -> Self {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse().map_or_else(|_| Self::Name(bare.to_owned()), Self::Literal)
    }

    /// Resolves the addresses of the host, unchecked.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub(crate) async fn addresses(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::Literal(address) => Ok(vec![SocketAddr::new(*address, port)]),
            Self::Name(name) => Ok(tokio::net::lookup_host((name.as_str(), port)).await?.collect()),
        }
    }
}

// === impl AddressGuard ===

impl AddressGuard {
    pub(crate) fn new(host: Host, policy: AddressPolicy, loopback: Loopback) -> Self {
        Self { host, policy: Arc::new(policy), loopback }
    }

    /// Checks the host if it is a literal; a name is checked when it is resolved.
    pub(crate) fn check_literal(&self) -> Result<(), AddressRefusal> {
        match &self.host {
            Host::Literal(address) => self.policy.check(*address, self.loopback),
            Host::Name(_) => Ok(()),
        }
    }

    /// Resolves the addresses to connect to.
    ///
    /// # Errors
    /// If one of them is refused, or the lookup fails.
    pub(crate) async fn lookup(&self, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        let found = self.host.addresses(port).await?;
        self.admit(found).map_err(LookupError::Refused)
    }

    /// Returns the results of a lookup if all are allowed. A refused one could be the one that
    /// answers.
    fn admit(&self, mut found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, AddressRefusal> {
        let refusal = |address: &SocketAddr| self.policy.check(address.ip(), self.loopback).err();
        if self.loopback == Loopback::Configured && found.iter().any(|one| refusal(one).is_none()) {
            // A name for this machine may have further addresses, which are ignored.
            found.retain(|address| refusal(address).is_none());
        }
        let mut refusals = found.iter().filter_map(refusal);
        let Some(first) = refusals.next() else { return Ok(found) };
        let mut more: Vec<IpAddr> = refusals.map(|refusal| refusal.address).collect();
        more.sort_unstable();
        more.dedup();
        more.retain(|address| *address != first.address);
        let name = match &self.host {
            Host::Literal(_) => None,
            Host::Name(name) => Some(name.clone()),
        };
        Err(AddressRefusal { name, more, ..first })
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let asked = Host::Name(name.as_str().to_owned());
            let found = asked.addresses(0).await?;
            // Other names are those of proxies, which the operator of this machine configured.
            let is_guarded =
                matches!(&guard.host, Host::Name(own) if own.eq_ignore_ascii_case(name.as_str()));
            let found = if is_guarded { guard.admit(found)? } else { found };
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Finds the refused address among the causes of a connection error.
pub(crate) fn refusal_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e AddressRefusal> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refusal) = error.downcast_ref() {
            return Some(refusal);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(host: &str, loopback: Loopback) -> AddressGuard {
        let server = Some("s".parse().unwrap());
        AddressGuard::new(
            Host::of(host),
            AddressPolicy { server, ..AddressPolicy::default() },
            loopback,
        )
    }

    fn admitted(guard: &AddressGuard, addresses: &[&str]) -> Result<usize, String> {
        let found = addresses.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 443));
        guard.admit(found.collect()).map(|left| left.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_with_one_refused_address_is_refused_whatever_else_it_resolves_to() {
        let guard = guard("h.test", Loopback::Refused);
        assert_eq!(admitted(&guard, &["1.1.1.1", "2606:4700::1111"]), Ok(2));
        for refused in
            ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"]
        {
            for addresses in [["1.1.1.1", refused], [refused, "1.1.1.1"]] {
                let error = admitted(&guard, &addresses).unwrap_err();
                assert!(error.starts_with("`h.test` resolves to "), "{error}");
                assert!(error.contains("networks = [\""), "{error}");
            }
        }
        let error = admitted(&guard, &["10.0.0.1", "1.1.1.1", "10.0.0.1", "fd00::1"]).unwrap_err();
        assert!(error.contains("networks = [\"10.0.0.1\", \"fd00::1\"]"), "{error}");
    }

    #[test]
    fn of_the_addresses_of_this_machine_only_loopback_counts() {
        let here = guard("localhost", Loopback::Configured);
        assert_eq!(admitted(&here, &["127.0.0.1", "::1"]), Ok(2));
        assert_eq!(admitted(&here, &["10.0.0.1", "::1"]), Ok(1));
        for elsewhere in ["10.0.0.1", "169.254.169.254", "1.1.1.1", "0.0.0.0"] {
            assert!(admitted(&here, &[elsewhere]).is_err(), "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn the_name_of_this_machine_is_refused_unless_it_is_configured_or_a_proxy() {
        let resolve = async |host: &str, loopback| {
            let guard = guard(host, loopback);
            guard.resolve("localhost".parse().unwrap()).await.map(Iterator::count)
        };
        let error = resolve("localhost", Loopback::Refused).await.unwrap_err();
        assert!(refusal_in(&*error).is_some(), "{error}");
        assert!(resolve("localhost", Loopback::Configured).await.unwrap() > 0);
        assert!(resolve("elsewhere.example", Loopback::Refused).await.unwrap() > 0);
        let looked_up = guard("localhost", Loopback::Refused).lookup(1).await;
        assert!(matches!(looked_up, Err(LookupError::Refused(_))));
    }

    #[test]
    fn literals_are_checked_before_anything_is_connected() {
        let check = |host, loopback| guard(host, loopback).check_literal().is_ok();
        assert!(check("1.1.1.1", Loopback::Refused) && check("name", Loopback::Refused));
        assert!(check("[::1]", Loopback::Configured));
        for host in ["127.0.0.1", "[::1]", "10.0.0.1", "[::ffff:a9fe:a9fe]", "0.0.0.0"] {
            assert!(!check(host, Loopback::Refused), "{host}");
        }
    }
}
