//! Quick maps for names that stand in the configuration.
//!
//! Whoever asks for other keys can make them collide with nothing but what the operator wrote, so
//! that the usual hash, which withstands an attack, would only cost time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Builds the hash.
pub(crate) type Quick = BuildHasherDefault<Mix>;

/// Values by name. Names that are short are compared as numbers.
#[derive(Clone, Debug)]
pub(crate) struct ByName<T> {
    short: HashMap<u128, T, Quick>,
    long: HashMap<String, T, Quick>,
}

/// Eight bytes at a time: mixed in, multiplied, turned.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

// === impl ByName ===

impl<T> ByName<T> {
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<&T> {
        match packed(name) {
            Some(number) => self.short.get(&number),
            None => self.long.get(name),
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.short.values().chain(self.long.values())
    }
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { short: HashMap::default(), long: HashMap::default() }
    }
}

impl<T> FromIterator<(String, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(all: I) -> Self {
        let mut map = Self::default();
        for (name, value) in all {
            match packed(&name) {
                Some(number) => drop(map.short.insert(number, value)),
                None => drop(map.long.insert(name, value)),
            }
        }
        map
    }
}

/// A short name with its length, as one number.
#[inline]
fn packed(name: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    let (place, last) = bytes.split_at_mut(15);
    place.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    if let [last] = last {
        *last = u8::try_from(name.len()).ok()?;
    }
    Some(u128::from_le_bytes(bytes))
}

// === impl Mix ===

impl Mix {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // A map looks at the upper and at the lower bits; the multiplication filled the upper ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let rest = rest.iter().fold(1, |word, byte| (word << 8) | u64::from(*byte));
        self.add(rest);
    }

    fn write_u128(&mut self, number: u128) {
        let bytes = number.to_le_bytes();
        for word in bytes.as_chunks::<8>().0 {
            self.add(u64::from_le_bytes(*word));
        }
    }

    fn write_u8(&mut self, _: u8) {
        // It ends a text; where one ends, its last word says.
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn names_of_any_length_are_found_and_others_are_not() {
        let names = ["", "a", "a\0", "123456789012345", "1234567890123456", "a name that is long"];
        let map: ByName<usize> =
            names.iter().enumerate().map(|(at, name)| ((*name).to_owned(), at)).collect();
        for (at, name) in names.iter().enumerate() {
            assert_eq!(map.get(name), Some(&at), "{name:?}");
        }
        for other in ["b", "A", "\0", "a\0\0", "12345678901234", "12345678901234567"] {
            assert_eq!(map.get(other), None, "{other:?}");
        }
        assert_eq!(map.values().count(), names.len());
    }

    #[test]
    fn texts_that_differ_a_little_have_other_hashes() {
        let texts = (0..1000).map(|number| format!("role-{number}"));
        let more = ["", "a", "\0", "\0\0", "12345678", "123456781", "1234567", "12345678\0"];
        let all: Vec<String> = texts.chain(more.map(str::to_owned)).collect();
        let hashes: HashSet<u64> = all.iter().map(|text| Quick::default().hash_one(text)).collect();
        assert_eq!(hashes.len(), all.len());
    }
}
