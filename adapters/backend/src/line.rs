//! Reads lines of bounded length.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest protocol message, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// What is read at once.
const CHUNK: usize = 64 * 1024;

/// Lines out of a stream.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// How much of the buffer is known to have no newline in it.
    searched: usize,
    limit: usize,
}

/// Why there is no further line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LineError {
    /// A line does not end.
    #[error("it printed more than {0} bytes without a newline")]
    TooLong(usize),
    /// The stream broke.
    #[error("its output could not be read")]
    Io(#[from] std::io::Error),
}

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), searched: 0, limit }
    }

    /// The next line without its newline; `None` at the end of the stream.
    ///
    /// Text after the last newline counts as a line.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > self.limit {
                return Err(LineError::TooLong(self.limit));
            }
            self.buffer.reserve(CHUNK);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then(|| trimmed(rest)));
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.searched..)?;
        let Some(found) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + found + 1);
        self.searched = 0;
        line.truncate(line.len() - 1);
        Some(trimmed(line.freeze()))
    }
}

fn trimmed(mut line: Bytes) -> Bytes {
    if line.last() == Some(&b'\r') {
        line.truncate(line.len() - 1);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], limit: usize) -> Result<Vec<Bytes>, LineError> {
        let mut lines = Lines::new(text, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await? {
            all.push(line);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn lines_come_without_their_ends() {
        let all = lines(b"a\r\n\nbc\nd", 10).await.unwrap();
        assert_eq!(all, ["a", "", "bc", "d"]);
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_is_an_error_and_not_a_full_memory() {
        let endless = tokio::io::repeat(b'x');
        let result = Lines::new(endless, 1024 * 1024).next().await;
        assert!(matches!(result, Err(LineError::TooLong(_))));
    }
}
