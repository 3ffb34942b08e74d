//! Finds the end of plain text, many bytes at a time.

/// How many bytes are looked at without a way out, which lets the machine do it at once.
const BLOCK: usize = 64;

/// How many bytes stand before the first that is a quote, a backslash, a control character or part
/// of a character of several bytes.
pub(super) fn ascii(bytes: &[u8]) -> usize {
    count(bytes, |byte| byte == b'"' || byte == b'\\' || !(0x20..0x80).contains(&byte))
}

/// How many bytes stand before the first that is a quote, a backslash or a control character.
pub(super) fn text(bytes: &[u8]) -> usize {
    count(bytes, |byte| byte == b'"' || byte == b'\\' || byte < 0x20)
}

fn count(bytes: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    let is_plain = |block: &&[u8; BLOCK]| !block.iter().fold(false, |any, byte| any | ends(*byte));
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let plain = blocks.iter().take_while(is_plain).count() * BLOCK;
    let rest = bytes.get(plain..).unwrap_or_default();
    rest.iter().position(|byte| ends(*byte)).map_or(bytes.len(), |at| plain + at)
}
