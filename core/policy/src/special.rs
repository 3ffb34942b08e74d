//! Addresses that are not of the open internet: a network's own, this machine's, and those that mean
//! something else altogether.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 and how many of their bits count (RFC 6890 and what came after it).
const V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Blocks of IPv6 outside of which nothing is special but what has an IPv4 address in it.
const V6: &[([u16; 8], u32)] = &[
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// Whether an address is none of the open internet, whichever way it is written.
pub fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_special_v4(v4),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            let within = |(block, count): &([u16; 8], u32)| {
                (bits ^ Ipv6Addr::from(*block).to_bits()).checked_shr(128 - count) == Some(0)
            };
            V6.iter().any(within) || inner(v6).is_some_and(is_special_v4)
        }
    }
}

fn is_special_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    V4.iter().any(|(block, count)| {
        (bits ^ Ipv4Addr::from(*block).to_bits()).checked_shr(32 - count) == Some(0)
    })
}

/// The IPv4 address that an IPv6 address leads to.
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Mapped, compatible (with `::` and `::1` among them), behind a translator, and 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_open_internet_is_told_in_every_form() {
        for special in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
            "::ffff:0:7f00:1",
        ] {
            assert!(is_special(special.parse().unwrap()), "{special}");
        }
        for open in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.128.0.0",
            "128.0.0.1",
            "172.32.0.1",
            "192.169.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::",
            "2a00::1",
            "2001:4860:4860::8888",
        ] {
            assert!(!is_special(open.parse().unwrap()), "{open}");
        }
    }
}
