//! Addresses in every spelling: a literal that is not public is refused, whatever parses it.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use capstan_http::WebAddress;
use capstan_safety::address::{AddressClass, AddressPolicy, Loopback, Network};
use libfuzzer_sys::fuzz_target;

/// A second opinion on what is not public, from the standard library.
fn is_inside(address: Ipv4Addr) -> bool {
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation()
}

fuzz_target!(|input: (&str, &str)| {
    let (text, other) = input;
    let policy = AddressPolicy::default();
    for address in [WebAddress::parse(text), WebAddress::discover(text)].into_iter().flatten() {
        if let Some(ip) = address.ip() {
            if let IpAddr::V4(ip) = ip.to_canonical()
                && is_inside(ip)
            {
                assert!(policy.check(IpAddr::V4(ip), Loopback::Refused).is_err(), "{text}");
                assert_ne!(AddressClass::of(IpAddr::V4(ip)), AddressClass::Public, "{text}");
            }
        }
        if let Ok(joined) = address.join(other) {
            assert!(["http:", "https:"].iter().any(|scheme| joined.origin().starts_with(scheme)));
            assert_eq!(joined.same_origin(&address), joined.origin() == address.origin());
        }
    }
    if let (Ok(network), Ok(inner)) = (text.parse::<Network>(), other.parse::<Network>()) {
        assert!(network.covers(&network));
        if network.covers(&inner) && inner.covers(&network) {
            assert_eq!(network, inner);
        }
    }
});
