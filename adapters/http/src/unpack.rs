//! Decompresses a body incrementally.

use std::io::{self, Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::GzDecoder;

/// The number of bytes decompressed at once: the output can be a thousand times as long.
const STEP: usize = 1024;

/// Decompresses gzip, piece by piece.
pub(crate) struct Unpacker {
    decoder: GzDecoder<Vec<u8>>,
    packed: Bytes,
}

// === impl Unpacker ===

impl Default for Unpacker {
    fn default() -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), packed: Bytes::new() }
    }
}

impl Unpacker {
    /// Adds the next compressed piece; the previous one must be consumed.
    pub(crate) fn push(&mut self, packed: Bytes) {
        self.packed = packed;
    }

    /// Returns the next decompressed piece; `None` if more input is needed.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.packed.is_empty() {
            let step = self.packed.get(..STEP).unwrap_or(&self.packed);
            let taken = self.decoder.write(step)?;
            if taken == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has data after its end",
                ));
            }
            self.packed.advance(taken);
            let unpacked = std::mem::take(self.decoder.get_mut());
            if !unpacked.is_empty() {
                return Ok(Some(unpacked.into()));
            }
        }
        Ok(None)
    }

    /// Returns the rest at the end of the input; an error if the input is incomplete.
    pub(crate) fn end(&mut self) -> io::Result<Option<Bytes>> {
        self.decoder.try_finish()?;
        let rest = std::mem::take(self.decoder.get_mut());
        Ok((!rest.is_empty()).then(|| rest.into()))
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(packed: &[u8], step: usize) -> io::Result<Vec<u8>> {
        let (mut unpacker, mut all) = (Unpacker::default(), Vec::new());
        for piece in packed.chunks(step) {
            unpacker.push(Bytes::copy_from_slice(piece));
            while let Some(piece) = unpacker.next()? {
                assert!(piece.len() <= 2000 * STEP, "{}", piece.len());
                all.extend_from_slice(&piece);
            }
        }
        while let Some(piece) = unpacker.end()? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    #[test]
    fn what_was_packed_comes_out_whatever_the_pieces() {
        for text in ["", "x", &"some words, ".repeat(10_000), &"0".repeat(20 << 20)] {
            for step in [1, 1000, 1 << 20] {
                assert!(unpack(&packed(text.as_bytes()), step).unwrap() == text.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_cut_or_no_gzip_is_an_error() {
        let whole = packed("some words, ".repeat(100).as_bytes());
        assert!(unpack(&whole[..whole.len() - 3], 7).is_err());
        assert!(unpack(b"{\"jsonrpc\":\"2.0\"}", 7).is_err());
        assert!(unpack(&[whole.as_slice(), b"more"].concat(), 7).is_err());
    }
}
