//! Reads lines of bounded length.

use bytes::{Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::turn::Turn;

/// The size of a buffer, in bytes.
const CHUNK: usize = 64 * 1024;

/// The smallest free space to read into, in bytes.
const LEAST: usize = 4 * 1024;

/// The length kept of the beginning of a line that is longer than the limit.
const KEPT: usize = 64 * 1024;

/// The length kept of the end of such a line.
const END: usize = 1024;

/// The length of such a line that is skipped before the line counts as endless.
const MAX_PASSED: usize = 256 * 1024 * 1024;

/// Reads lines of bounded length from a stream.
pub struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// The length of the buffer's prefix that contains no newline.
    searched: usize,
    limit: usize,
    /// The number of bytes skipped of a line that was cut; `None` at the start of a line.
    passed: Option<usize>,
    /// The last bytes of the line that was cut.
    end: Vec<u8>,
    turn: Turn,
}

/// A line without its newline.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line within the limit.
    Whole(Bytes),
    /// The two ends of a line that is longer than the limit.
    Cut {
        /// The beginning.
        beginning: Bytes,
        /// The end.
        end: Bytes,
    },
}

/// The reason why there is no further line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// A line has no end. Its beginning may identify the request that it replies to.
    #[error("it printed more than {printed} bytes without a newline")]
    Endless {
        /// The number of bytes printed of it.
        printed: usize,
        /// The beginning.
        beginning: Bytes,
    },
    /// The stream failed.
    #[error("its output could not be read")]
    Io(#[from] std::io::Error),
}

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `limit` bytes.
    pub fn new(stream: R, limit: usize) -> Self {
        let (buffer, end) = (BytesMut::new(), Vec::new());
        Self { stream, buffer, searched: 0, limit, passed: None, end, turn: Turn::default() }
    }

    /// Returns the next line; `None` at the end of the stream.
    ///
    /// Text after the last newline counts as a line. The rest of a line that is longer than the
    /// limit is skipped, within bounds.
    pub async fn next(&mut self) -> Result<Option<Line>, LineError> {
        let mut line = self.read().await?;
        if let (Some(Line::Cut { end, beginning }), Some(_)) = (&mut line, self.passed) {
            let last = self.pass(MAX_PASSED).await?;
            let printed = self.limit.saturating_add(MAX_PASSED);
            let beginning = beginning.clone();
            *end = last.ok_or(LineError::Endless { printed, beginning })?;
        }
        Ok(line)
    }

    /// Returns the next line or its beginning. An endless line is skipped for as long as it lasts.
    pub async fn next_cut(&mut self) -> std::io::Result<Option<Bytes>> {
        self.pass(usize::MAX).await?;
        Ok(self.read().await?.map(|line| match line {
            Line::Whole(line) | Line::Cut { beginning: line, .. } => line,
        }))
    }

    async fn read(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(self.bounded(line)));
            }
            // The last byte may belong to the line end.
            if self.buffer.len() > self.limit.saturating_add(1) {
                return Ok(Some(self.cut()));
            }
            if self.fill().await? == 0 {
                self.searched = 0;
                let rest = self.buffer.split().freeze();
                return Ok((!rest.is_empty()).then(|| self.bounded(trimmed(rest))));
            }
        }
    }

    /// Skips the rest of a line that was cut and returns its end. `None` if it is longer than
    /// `most`.
    async fn pass(&mut self, most: usize) -> std::io::Result<Option<Bytes>> {
        while let Some(passed) = self.passed {
            if let Some(rest) = self.take_line() {
                keep_end(&mut self.end, &rest);
                break;
            }
            keep_end(&mut self.end, &self.buffer);
            let passed = passed.saturating_add(self.buffer.len());
            self.passed = Some(passed);
            self.buffer.clear();
            self.searched = 0;
            if passed > most {
                return Ok(None);
            }
            if self.fill().await? == 0 {
                break;
            }
        }
        self.passed = None;
        Ok(Some(std::mem::take(&mut self.end).into()))
    }

    /// Reads more into the buffer and returns the number of bytes; 0 at the end of the stream.
    async fn fill(&mut self) -> std::io::Result<usize> {
        self.make_room();
        let read = self.stream.read_buf(&mut self.buffer).await?;
        self.turn.read(read).await;
        Ok(read)
    }

    fn bounded(&self, line: Bytes) -> Line {
        if line.len() <= self.limit { Line::Whole(line) } else { self.ends(&line) }
    }

    /// The ends of the line that fills the buffer, whose memory is freed. More of the line follows.
    fn cut(&mut self) -> Line {
        let full = std::mem::take(&mut self.buffer);
        (self.searched, self.passed) = (0, Some(0));
        keep_end(&mut self.end, &full);
        self.ends(&full)
    }

    /// Copies the two ends of a line.
    fn ends(&self, line: &[u8]) -> Line {
        let beginning = line.get(..self.limit.min(KEPT)).unwrap_or(line);
        let mut end = Vec::new();
        keep_end(&mut end, line);
        Line::Cut { beginning: Bytes::copy_from_slice(beginning), end: end.into() }
    }

    /// Allocates only when little room is left, so that short lines share one allocation.
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

/// Appends to the end of a line, of which only the last [`END`] bytes are kept.
fn keep_end(end: &mut Vec<u8>, more: &[u8]) {
    end.extend_from_slice(more.get(more.len().saturating_sub(END)..).unwrap_or_default());
    end.drain(..end.len().saturating_sub(END));
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

    /// The lines of a text; lines that were cut start with an asterisk.
    async fn lines(text: &[u8], limit: usize) -> Vec<String> {
        let mut lines = Lines::new(text, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            let (mark, line) = match line {
                Line::Whole(line) => ("", line),
                Line::Cut { beginning, .. } => ("*", beginning),
            };
            all.push(format!("{mark}{}", std::str::from_utf8(&line).unwrap()));
        }
        all
    }

    #[tokio::test]
    async fn lines_come_without_their_ends() {
        assert_eq!(lines(b"a\r\n\nbc\nd", 10).await, ["a", "", "bc", "d"]);
    }

    #[tokio::test]
    async fn a_line_of_the_limit_is_whole_and_one_byte_more_is_not() {
        let all = lines(b"abc\nabcd\nabc\r\nabcd\r\nabc", 3).await;
        assert_eq!(all, ["abc", "*abc", "abc", "*abc", "abc"]);
        assert_eq!(lines(b"abcd", 3).await, ["*abc"]);
        // The result does not depend on how the stream is split into pieces.
        let limit = 2 * CHUNK;
        for (over, end) in [(0, "\n"), (0, "\r\n"), (1, "\n"), (1, "\r\n")] {
            let (long, rest) = ("x".repeat(limit + over), format!("{end}b"));
            for at in limit - 1..=limit + over {
                let (one, two) = long.split_at(at);
                let stream = one.as_bytes().chain(two.as_bytes()).chain(rest.as_bytes());
                let line = Lines::new(stream, limit).next().await.unwrap().unwrap();
                assert_eq!(matches!(line, Line::Whole(_)), over == 0, "{over} {end:?} {at}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_that_does_not_end_is_an_error_and_not_a_full_memory() {
        let endless = tokio::io::repeat(b'x');
        let mut lines = Lines::new(endless, 1024 * 1024);
        let Err(LineError::Endless { printed, beginning }) = lines.next().await else {
            panic!("it ended")
        };
        // Holes 10: the limit that was reached, and not that of a message.
        assert_eq!((printed, beginning.len()), (MAX_PASSED + 1024 * 1024, KEPT));
        assert!(lines.buffer.capacity() <= 2 * CHUNK, "{}", lines.buffer.capacity());
    }

    #[tokio::test(start_paused = true)]
    async fn noise_without_a_pause_does_not_hold_up_a_timeout() {
        let noise = "x\n".repeat(2 * crate::turn::TURN);
        for limit in [0, 10] {
            let late =
                tokio::time::timeout(std::time::Duration::ZERO, lines(noise.as_bytes(), limit));
            assert!(late.await.is_err(), "{limit}");
        }
    }

    #[tokio::test]
    async fn of_a_line_that_is_too_long_both_ends_are_kept() {
        for more in [2, 3, 10, END, CHUNK, 5 * CHUNK] {
            let long = format!("{}{}<end>", "a".repeat(KEPT), "b".repeat(more));
            let text = format!("{long}\r\nnext");
            let mut lines = Lines::new(text.as_bytes(), KEPT + more);
            let Some(Line::Cut { beginning, end }) = lines.next().await.unwrap() else {
                panic!("{more}: not cut")
            };
            assert_eq!(beginning, "a".repeat(KEPT));
            assert_eq!(end, long.as_bytes()[long.len() - END..], "{more}");
            assert_eq!(lines.next().await.unwrap(), Some(Line::Whole("next".into())));
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_can_be_cut_without_losing_the_next() {
        let long = "x".repeat(3 * CHUNK);
        let text = format!("a\n{long}\nb\n{long}");
        assert_eq!(lines(text.as_bytes(), 10).await, ["a", "*xxxxxxxxxx", "b", "*xxxxxxxxxx"]);
        let mut lines = Lines::new(text.as_bytes(), 10);
        let mut all = Vec::new();
        while let Some(line) = lines.next_cut().await.unwrap() {
            all.push(line);
        }
        assert_eq!(all, ["a", "xxxxxxxxxx", "b", "xxxxxxxxxx"]);
    }
}
