//! Finds the end of plain text, many bytes at a time.

use memchr::memchr2;

/// Number of bytes that are checked without an early exit, which lets the compiler vectorize the
/// loop.
const BLOCK: usize = 64;

/// Counts the bytes before the first quote, backslash, control character or non-ASCII byte.
pub(crate) fn ascii(bytes: &[u8]) -> usize {
    let ends = |byte| byte == b'"' || byte == b'\\' || !(0x20..0x80).contains(&byte);
    count(bytes, ends, |word| quotes(word) | controls(word) | word & eight(0x80))
}

/// Counts the bytes before the first quote, backslash or control character.
pub(crate) fn text(bytes: &[u8]) -> usize {
    let ends = |byte| byte == b'"' || byte == b'\\' || byte < 0x20;
    count(bytes, ends, |word| quotes(word) | controls(word))
}

/// Counts the bytes before the first quote or backslash.
pub(crate) fn quoted(bytes: &[u8]) -> usize {
    let near = bytes.get(..BLOCK).unwrap_or(bytes);
    let plain = first(near, |byte| byte == b'"' || byte == b'\\', quotes);
    if plain < BLOCK {
        return plain;
    }
    let rest = bytes.get(plain..).unwrap_or_default();
    memchr2(b'"', b'\\', rest).map_or(bytes.len(), |at| plain + at)
}

fn count(bytes: &[u8], ends: impl Fn(u8) -> bool, marks: impl Fn(u64) -> u64) -> usize {
    // Most texts end in the first block, so the exact end is searched there first.
    let near = bytes.get(..BLOCK).unwrap_or(bytes);
    let plain = first(near, &ends, &marks);
    if plain < BLOCK {
        return plain;
    }
    let is_plain = |block: &&[u8; BLOCK]| !block.iter().fold(false, |any, byte| any | ends(*byte));
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let plain = plain + blocks.iter().skip(1).take_while(is_plain).count() * BLOCK;
    plain + first(bytes.get(plain..).unwrap_or_default(), &ends, &marks)
}

/// Counts the bytes before the first end.
fn first(bytes: &[u8], ends: impl Fn(u8) -> bool, marks: impl Fn(u64) -> u64) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return index * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    let end = rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len());
    words.as_flattened().len() + end
}

/// Marks the quotes and backslashes among eight bytes, by the highest bit of each.
///
/// Marks after the first one may be wrong. The same holds for [`controls`].
fn quotes(word: u64) -> u64 {
    let zeros = |word: u64| word.wrapping_sub(eight(1)) & !word & eight(0x80);
    zeros(word ^ eight(b'"')) | zeros(word ^ eight(b'\\'))
}

/// Marks the control characters among eight bytes.
fn controls(word: u64) -> u64 {
    word.wrapping_sub(eight(0x20)) & !word & eight(0x80)
}

const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_end_is_found_wherever_it_stands() {
        for length in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 79, 80, 127, 128, 129, 200, 300] {
            let plain = vec![b'~'; length];
            assert_eq!([ascii(&plain), text(&plain), quoted(&plain)], [length; 3]);
            for byte in 0..=u8::MAX {
                // The bytes after the first end do not matter.
                for behind in [b'"', b'#', 0x1f, 0x20, b'[', b']', 0x7f, 0x80, 0xff] {
                    let bytes = [&plain[..], &[byte, behind, b'"', b'\\']].concat();
                    let expected = |ends: fn(u8) -> bool| bytes.iter().position(|byte| ends(*byte));
                    let quote = |byte| matches!(byte, b'"' | b'\\');
                    assert_eq!(Some(quoted(&bytes)), expected(quote));
                    let control = |byte| matches!(byte, b'"' | b'\\' | 0..0x20);
                    assert_eq!(Some(text(&bytes)), expected(control));
                    let other = |byte| matches!(byte, b'"' | b'\\' | 0..0x20 | 0x80..);
                    assert_eq!(Some(ascii(&bytes)), expected(other));
                }
            }
        }
    }
}
