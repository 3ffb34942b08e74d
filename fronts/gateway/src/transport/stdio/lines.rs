//! Reads lines of bounded length from a stream.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Read size, in bytes.
const CHUNK: usize = 64 * 1024;

/// Lines up to this length are copied, so that the buffer can be reused.
const SMALL: usize = 16 * 1024;

/// Reader of lines.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// Length of the searched part of the buffer, which has no newline.
    searched: usize,
    limit: usize,
    /// True while the rest of an oversized line is skipped.
    skipping: bool,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its newline.
    Whole(Bytes),
    /// A line that exceeds the limit; its text was dropped.
    TooLong,
}

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Reads more bytes; returns 0 at the end. Cancel-safe.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(CHUNK);
        self.stream.read_buf(&mut self.buffer).await
    }

    /// The next complete line in the buffer.
    pub(crate) fn buffered(&mut self) -> Option<Line> {
        loop {
            let fresh = self.buffer.get(self.searched..)?;
            let Some(found) = memchr::memchr(b'\n', fresh) else {
                self.searched = self.buffer.len();
                return self.cut();
            };
            let length = self.searched + found;
            self.searched = 0;
            if self.skipping {
                // The end of a line that has already been refused.
                self.skipping = false;
                drop(self.buffer.split_to(length + 1));
                continue;
            }
            if length > self.limit {
                drop(self.buffer.split_to(length + 1));
                return Some(Line::TooLong);
            }
            return Some(Line::Whole(self.split(length, 1)));
        }
    }

    /// The text after the last newline, at the end of the input.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        let length = self.buffer.len();
        self.searched = 0;
        let wanted = length > 0 && !self.skipping;
        wanted.then(|| Line::Whole(self.split(length, 0)))
    }

    /// Drops an incomplete line that exceeds the limit.
    fn cut(&mut self) -> Option<Line> {
        if self.skipping {
            self.buffer.clear();
            self.searched = 0;
            return None;
        }
        if self.buffer.len() <= self.limit {
            return None;
        }
        // Allocates a new buffer, because the old one has grown too large.
        (self.buffer, self.searched, self.skipping) = (BytesMut::new(), 0, true);
        Some(Line::TooLong)
    }

    /// Takes a line and its newline out of the buffer.
    fn split(&mut self, length: usize, end: usize) -> Bytes {
        if length > SMALL {
            let line = self.buffer.split_to(length).freeze();
            drop(self.buffer.split_to(end));
            return line;
        }
        let line = Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default());
        drop(self.buffer.split_to(length + end));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of a stream that arrives in pieces.
    async fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
        let mut stream = tokio_test(pieces);
        let mut found = Vec::new();
        let mut lines = Lines::new(&mut stream, limit);
        loop {
            while let Some(line) = lines.buffered() {
                found.push(line);
            }
            if lines.fill().await.unwrap() == 0 {
                found.extend(lines.rest());
                return found;
            }
        }
    }

    /// A stream that returns one piece per read.
    fn tokio_test<'a>(pieces: &[&'a [u8]]) -> Box<dyn AsyncRead + Unpin + 'a> {
        let empty: Box<dyn AsyncRead + Unpin + 'a> = Box::new(tokio::io::empty());
        pieces.iter().rev().fold(empty, |rest, piece| Box::new(piece.chain(rest)))
    }

    fn whole(text: &str) -> Line {
        Line::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_were_cut() {
        let found = lines(&[b"a\nb", b"c", b"\n\nd\n", b"e"], 10).await;
        assert_eq!(found, [whole("a"), whole("bc"), whole(""), whole("d"), whole("e")]);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_once_and_the_next_is_whole() {
        for pieces in [
            &[&b"aaaaaaaaaaa\nb\n"[..]][..],
            &[b"aaaaaa", b"aaaaaa", b"aaaaaa\nb\n"],
            &[b"aaaaaaaaaaa", b"\nb\n"],
        ] {
            assert_eq!(lines(pieces, 10).await, [Line::TooLong, whole("b")], "{pieces:?}");
        }
        assert_eq!(lines(&[b"aaaaaaaaaaa", b"aa"], 10).await, [Line::TooLong]);
        assert_eq!(lines(&[b"aaaaaaaaaa\n"], 10).await, [whole("aaaaaaaaaa")]);
    }

    #[tokio::test]
    async fn a_line_without_end_is_not_kept() {
        let mut stream = tokio::io::repeat(b'a');
        let mut lines = Lines::new(&mut stream, 1024 * 1024);
        let mut told = 0;
        for _ in 0..1000 {
            lines.fill().await.unwrap();
            told += usize::from(lines.buffered().is_some());
            assert!(lines.buffer.capacity() <= 4 * 1024 * 1024);
        }
        assert_eq!(told, 1);
    }

    #[tokio::test]
    async fn a_long_line_is_not_copied_and_a_short_one_keeps_nothing_else() {
        let long = "x".repeat(SMALL + 1);
        let text = format!("{long}\nshort\n");
        let found = lines(&[text.as_bytes()], 1 << 20).await;
        assert_eq!(found, [whole(&long), whole("short")]);
    }
}
