//! Reads lines of bounded length.

use bytes::{Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest protocol message, in bytes.
pub(crate) const MAX_LINE: usize = 16 * 1024 * 1024;

/// What is read at once.
const CHUNK: usize = 64 * 1024;

/// Room that is enough to read into.
const LEAST: usize = 4 * 1024;

/// Lines out of a stream.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// How much of the buffer is known to have no newline in it.
    searched: usize,
    limit: usize,
    /// Whether what comes next is the rest of a line that was cut.
    skipping: bool,
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
        Self { stream, buffer: BytesMut::new(), searched: 0, limit, skipping: false }
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
            self.make_room();
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then(|| trimmed(rest)));
            }
        }
    }

    /// The next line; of one that does not end within the limit only the beginning.
    pub(crate) async fn next_cut(&mut self) -> std::io::Result<Option<Bytes>> {
        if self.skipping {
            self.skip().await?;
        }
        match self.next().await {
            Ok(line) => Ok(line),
            Err(LineError::TooLong(limit)) => {
                self.skipping = true;
                self.searched = 0;
                Ok(Some(self.buffer.split_to(limit).freeze()))
            }
            Err(LineError::Io(error)) => Err(error),
        }
    }

    /// Passes over the rest of a line.
    async fn skip(&mut self) -> std::io::Result<()> {
        while self.take_line().is_none() {
            self.buffer.clear();
            self.searched = 0;
            self.make_room();
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                break;
            }
        }
        self.skipping = false;
        Ok(())
    }

    /// Short lines share a piece of memory, as long as there is room in it.
    fn make_room(&mut self) {
        if self.buffer.capacity() - self.buffer.len() < LEAST {
            self.buffer.reserve(CHUNK);
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.searched..)?;
        let Some(found) = memchr(b'\n', fresh) else {
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

    #[tokio::test]
    async fn a_line_that_is_too_long_can_be_cut_without_losing_the_next() {
        let long = "x".repeat(3 * CHUNK);
        let text = format!("a\n{long}\nb\n{long}");
        let mut lines = Lines::new(text.as_bytes(), 10);
        let mut all = Vec::new();
        while let Some(line) = lines.next_cut().await.unwrap() {
            all.push(line);
        }
        assert_eq!(all, ["a", "xxxxxxxxxx", "b", "xxxxxxxxxx"]);
    }
}
