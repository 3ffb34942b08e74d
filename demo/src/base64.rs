//! Bytes as text, for what is not text: the standard alphabet with padding (RFC 4648).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes `bytes`.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = 0_u32;
        for place in 0..3 {
            group = group << 8 | u32::from(chunk.get(place).copied().unwrap_or(0));
        }
        for digit in 0..4_usize {
            text.push(if digit <= chunk.len() { letter(group, digit) } else { '=' });
        }
    }
    text
}

/// The `digit`th of the four letters that stand for the 24 bits of `group`.
fn letter(group: u32, digit: usize) -> char {
    let shift = 18_usize.saturating_sub(digit * 6);
    let value = (group >> shift & 0x3f) as usize;
    ALPHABET.get(value).map_or('=', |&byte| char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_vectors_of_the_standard_hold() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in vectors {
            assert_eq!(encode(plain.as_bytes()), encoded);
        }
        assert_eq!(encode(&[0xff, 0xfe, 0xfb]), "//77");
    }
}
