//! Checks the addresses at which a server may be reached.
//!
//! The rule is default-deny: an address that is not globally routable is refused. It is checked
//! where a connection is made, for literals and for each result of a name lookup alike.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use capstan_model::{ServerName, Trust};

/// Blocks of IPv4 that are not globally routable, with their prefix lengths.
///
/// From the IANA special-purpose registry, and 168.63.129.16: a public address that leads to the
/// host of a virtual machine.
const V4: &[([u8; 4], u32)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
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

/// The block of IPv6 that global unicast addresses are assigned from.
const V6_UNICAST: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Blocks of [`V6_UNICAST`] that are not globally routable, with their prefix lengths.
const V6: &[([u16; 8], u32)] = &[
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// The prefix of NAT64 translators, which is routable although it is outside of [`V6_UNICAST`].
const NAT64: ([u16; 8], u32) = ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

/// The blocks that contain only addresses of this machine, or only of the link.
const ONE_CLASS: [(AddressClass, Network); 3] = [
    (AddressClass::Loopback, Network { first: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 }),
    (
        AddressClass::LinkLocal,
        Network { first: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), prefix: 16 },
    ),
    (
        AddressClass::LinkLocal,
        Network { first: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), prefix: 10 },
    ),
];

/// The routing class of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// Globally routable.
    Public,
    /// Special-purpose: a private network, multicast, documentation, reserved.
    Private,
    /// This machine, by a loopback or an unspecified address.
    Loopback,
    /// The link, where cloud providers serve their metadata.
    LinkLocal,
}

/// A block of addresses in CIDR notation; a bare address is a block of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// The reason why a text is not a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNetwork {
    /// It is not an address with an optional prefix length.
    #[error("is not an address or a network such as 10.0.0.0/8")]
    Shape,
    /// The address has bits after the prefix, so that its meaning is ambiguous.
    #[error("has bits behind the prefix; the network is {0}")]
    HostBits(Network),
}

/// The addresses that one server may be reached at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// The server whose entry can allow more; `None` if no entry can.
    pub server: Option<ServerName>,
    /// The table of the configuration that can allow more, if it is not that of a server.
    pub table: Option<&'static str>,
    /// The trust in the server; addresses of a trusted one are not checked.
    pub trust: Trust,
    /// Networks that are allowed although they are not globally routable.
    pub networks: Vec<Network>,
}

/// Decides if a URL may lead to this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loopback {
    /// Refused: the URL comes from a server or a document, or spells this machine differently.
    #[default]
    Refused,
    /// Allowed, and no other address: the configuration names this machine explicitly.
    Configured,
}

/// A refused address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRefusal {
    /// The name that was looked up; `None` for a literal.
    pub name: Option<String>,
    /// The address that would have been connected to.
    pub address: IpAddr,
    /// Further addresses of the name that are refused.
    pub more: Vec<IpAddr>,
    /// The class of the address.
    pub class: AddressClass,
    /// The server whose entry can allow it.
    pub server: Option<ServerName>,
    /// The table that can allow it, if it is not that of a server.
    pub table: Option<&'static str>,
    /// True if some non-public networks are allowed.
    pub is_partly_open: bool,
}

// === impl AddressClass ===

impl AddressClass {
    /// Classifies an address. An embedded IPv4 address is classified as well.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => match (Self::of_v6(v6), embedded(v6).map(Self::of_v4)) {
                (Self::Public, Some(inner))
                | (Self::Private, Some(inner @ (Self::Loopback | Self::LinkLocal))) => inner,
                (outer, _) => outer,
            },
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.is_link_local() {
            Self::LinkLocal
        } else if V4.iter().any(|block| within_v4(address, *block)) {
            Self::Private
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let is_unicast = within_v6(address, &V6_UNICAST) || within_v6(address, &NAT64);
        if address.is_loopback() || address.is_unspecified() {
            Self::Loopback
        } else if address.is_unicast_link_local() {
            Self::LinkLocal
        } else if !is_unicast || V6.iter().any(|block| within_v6(address, block)) {
            Self::Private
        } else {
            Self::Public
        }
    }
}

fn within_v4(address: Ipv4Addr, (block, prefix): ([u8; 4], u32)) -> bool {
    let differing = address.to_bits() ^ Ipv4Addr::from(block).to_bits();
    differing.checked_shr(32 - prefix).unwrap_or(0) == 0
}

fn within_v6(address: Ipv6Addr, (block, prefix): &([u16; 8], u32)) -> bool {
    let differing = address.to_bits() ^ Ipv6Addr::from(*block).to_bits();
    differing.checked_shr(128 - prefix).unwrap_or(0) == 0
}

/// The IPv4 address that an IPv6 address embeds.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Compatible, translated, NAT64, 6to4, ISATAP. Mapped addresses are unmapped before.
        [0, 0, 0, 0, 0 | 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, a, b] => Some(low(a, b)),
        _ => None,
    }
}

// === impl Network ===

impl Network {
    /// The block that contains only this address.
    pub fn single(address: IpAddr) -> Self {
        let first = address.to_canonical();
        Self { first, prefix: width(first) }
    }

    /// True if an address is in the block. IPv4-mapped addresses count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(self.first) == width(address) && masked(address, self.prefix) == self.first
    }

    /// True if another block is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.first)
    }

    /// True if the block allows an address of this class.
    ///
    /// This machine and the link are allowed only by a block that contains nothing else: a wide
    /// block does not include them.
    fn allows(&self, address: IpAddr, class: AddressClass) -> bool {
        self.contains(address)
            && match class {
                AddressClass::Public | AddressClass::Private => true,
                AddressClass::Loopback | AddressClass::LinkLocal => self.is_only(class),
            }
    }

    /// True if the block is part of a block of this class only, or is one address of this class.
    pub fn is_only(&self, class: AddressClass) -> bool {
        let is_single = self.prefix == width(self.first);
        is_single && AddressClass::of(self.first) == class
            || ONE_CLASS.iter().any(|(of, block)| *of == class && block.covers(self))
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with the bits after the prefix cleared.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(v4) => {
            let rest = u32::MAX.checked_shr(prefix).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & !rest).into()
        }
        IpAddr::V6(v6) => {
            let rest = u128::MAX.checked_shr(prefix).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & !rest).into()
        }
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| BadNetwork::Shape)?;
        let prefix = match prefix {
            None => width(address),
            // `parse` alone accepts a sign as well.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| BadNetwork::Shape)?
            }
            Some(_) => return Err(BadNetwork::Shape),
        };
        if prefix > width(address) {
            return Err(BadNetwork::Shape);
        }
        let first = masked(address, prefix);
        let network = match (first.to_canonical(), prefix.checked_sub(96)) {
            (v4 @ IpAddr::V4(_), Some(prefix)) if first.is_ipv6() => Self { first: v4, prefix },
            _ => Self { first, prefix },
        };
        if first == address { Ok(network) } else { Err(BadNetwork::HostBits(network)) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == width(self.first) {
            return self.first.fmt(f);
        }
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

// === impl AddressPolicy ===

impl AddressPolicy {
    /// A policy for an address that the operator chose, on any network: everything but this machine
    /// in odd spellings, and the link, where clouds have their metadata.
    pub fn any_network() -> Self {
        let networks = ["0.0.0.0/0", "::/0"].into_iter().flat_map(str::parse).collect();
        Self { networks, ..Self::default() }
    }

    /// Checks an address before a connection is made.
    ///
    /// # Errors
    /// The refusal, which names the configuration line that would allow the address.
    pub fn check(&self, address: IpAddr, loopback: Loopback) -> Result<(), AddressRefusal> {
        let address = address.to_canonical();
        let class = AddressClass::of(address);
        let is_allowed = match (class, loopback) {
            (AddressClass::Public, Loopback::Refused) => true,
            // An unspecified address leads to this machine too, but does not name it explicitly.
            (_, Loopback::Configured) => address.is_loopback(),
            (_, Loopback::Refused) => false,
        };
        let is_listed = || self.networks.iter().any(|network| network.allows(address, class));
        if is_allowed || self.trust == Trust::Trusted || is_listed() {
            return Ok(());
        }
        let (more, server) = (Vec::new(), self.server.clone());
        let is_partly_open = !self.networks.is_empty();
        let table = self.table;
        Err(AddressRefusal { name: None, address, more, class, server, table, is_partly_open })
    }
}

// === impl Loopback ===

impl Loopback {
    /// Checks if a configured URL names this machine in one of the three accepted spellings.
    ///
    /// The text is compared as written: a normalised URL would hide other spellings.
    pub fn of_configured(url: &str) -> Self {
        match written_host(url) {
            Some("127.0.0.1" | "[::1]" | "localhost") => Self::Configured,
            Some(_) | None => Self::Refused,
        }
    }
}

/// The host of a URL, as written.
fn written_host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    match place.find(']') {
        Some(end) => place.get(..=end),
        None => place.split(':').next(),
    }
}

// === impl AddressRefusal ===

impl std::error::Error for AddressRefusal {}

impl fmt::Display for AddressRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, more, class, server, table, is_partly_open } = self;
        let what = match class {
            AddressClass::Public => "not an address of this machine",
            AddressClass::Private => "not a public address",
            AddressClass::Loopback => "an address of this machine",
            AddressClass::LinkLocal => "a link-local address",
        };
        match name {
            Some(name) => write!(f, "`{name}` resolves to {address}, which is {what}")?,
            None => write!(f, "{address} is {what}")?,
        }
        let table = match (server, table) {
            (Some(server), _) => format!("servers.{server}"),
            (None, Some(table)) => (*table).to_owned(),
            (None, None) => {
                return f.write_str(match (is_partly_open, class) {
                    (true, AddressClass::Loopback) => "; write 127.0.0.1, [::1] or localhost",
                    (true, AddressClass::LinkLocal) => "; such addresses are not allowed here",
                    _ => "; only public addresses are allowed here",
                });
            }
        };
        write!(f, "; to allow it, write `networks = [\"{address}\"")?;
        for address in more {
            write!(f, ", \"{address}\"")?;
        }
        write!(f, "]` under `[{table}]`")
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
