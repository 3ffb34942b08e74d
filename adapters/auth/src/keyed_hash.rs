//! A keyed hash of tokens, for tables of them.
//!
//! The key is random and new with every process. Nobody can choose a token whose hash is that of
//! another, so a lookup takes a time that says nothing about the tokens in the table.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;

/// An odd number whose bits are evenly spread.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes tokens with a random key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyedHash(RandomState);

/// The hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash(pub(crate) u64);

// === impl KeyedHash ===

impl KeyedHash {
    pub(crate) fn token(&self, token: &str) -> TokenHash {
        TokenHash(self.0.hash_one(token))
    }
}

// === impl TokenHash ===

impl TokenHash {
    /// The hash of a token at a network.
    ///
    /// The hash of the token is secret, so that a plain mix of both is enough.
    pub(crate) fn at(self, network: IpAddr) -> u64 {
        let bits = match network {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                u64::try_from(bits >> 64).unwrap_or_default()
                    ^ u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default()
            }
        };
        (self.0 ^ bits.wrapping_mul(MIX)).wrapping_mul(MIX).rotate_left(32)
    }
}
