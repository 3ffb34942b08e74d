//! Names that must not lead into a network, or back to this machine.
//!
//! What a name leads to is looked at where the connection is made, so that it cannot lead elsewhere
//! in between.

use std::net::{IpAddr, SocketAddr};

use capstan_policy::special::is_special;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// What the names of addresses may lead to. Numbers lead where they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Anywhere.
    Anywhere,
    /// To the open internet only.
    Outside,
}

/// Looks names up, and refuses one that leads inside.
pub(crate) struct Outside {
    /// The name. Others are those of proxies, which whoever set up this machine chose.
    pub(crate) host: String,
}

/// Why a name is not used.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{host}` leads to {address}, which is inside a network; if that is meant, set `trust = \"trusted\"`"
)]
struct Inside {
    host: String,
    address: IpAddr,
}

impl Resolve for Outside {
    fn resolve(&self, name: Name) -> Resolving {
        let host = self.host.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if name.as_str().eq_ignore_ascii_case(&host) {
                check(&host, &found)?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// One address inside is enough: it may be the one that answers.
fn check(host: &str, found: &[SocketAddr]) -> Result<(), Inside> {
    match found.iter().map(SocketAddr::ip).find(|address| is_special(*address)) {
        Some(address) => Err(Inside { host: host.to_owned(), address }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_inside_is_refused_even_if_it_leads_outside_too() {
        let led = |addresses: &[&str]| {
            let found = addresses.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 443));
            check("h", &found.collect::<Vec<_>>()).map_err(|error| error.to_string())
        };
        assert_eq!(led(&["1.1.1.1", "2606:4700::1111"]), Ok(()));
        for inside in
            ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"]
        {
            let error = led(&["1.1.1.1", inside]).unwrap_err();
            assert!(error.contains("trust = \"trusted\""), "{error}");
        }
    }

    #[tokio::test]
    async fn the_name_of_this_machine_is_refused_where_it_is_the_address() {
        let resolve = async |host: &str| {
            let outside = Outside { host: host.to_owned() };
            outside.resolve("localhost".parse().unwrap()).await.map(Iterator::count)
        };
        assert!(resolve("localhost").await.is_err());
        assert!(resolve("elsewhere.example").await.unwrap() > 0);
    }
}
