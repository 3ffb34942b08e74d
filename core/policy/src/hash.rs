//! A quick hash for maps whose keys stand in the configuration.
//!
//! Whoever asks for other keys can make them collide with nothing but what the operator wrote, so
//! that the usual hash, which withstands an attack, would only cost time.

use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hash.
pub(crate) type Quick = BuildHasherDefault<Fnv>;

/// FNV-1a.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fnv(u64);

// === impl Fnv ===

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
