//! Lines out of a stream, of bounded length.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// A line up to this length is copied, so that it does not keep the whole of what was read with
/// it; what was read can then be used again, too.
const SMALL: usize = 16 * 1024;

/// Lines out of a stream.
pub(crate) struct Lines<R> {
    stream: R,
    buffer: BytesMut,
    /// How much of the buffer is known to have no newline in it.
    searched: usize,
    limit: usize,
    /// Whether what comes next is the rest of a line that was too long.
    skipping: bool,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// As it is, without its newline.
    Whole(Bytes),
    /// Longer than it may be; it was not kept.
    TooLong,
}

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Reads some more; 0 at the end. Nothing is lost when this is dropped.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.buffer.reserve(CHUNK);
        self.stream.read_buf(&mut self.buffer).await
    }

    /// The next line that has been read.
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
                // The end of a line that has been refused already.
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

    /// Gives up a line that does not end within its limit.
    fn cut(&mut self) -> Option<Line> {
        if self.skipping {
            self.buffer.clear();
            self.searched = 0;
            return None;
        }
        if self.buffer.len() <= self.limit {
            return None;
        }
        // A new buffer: the old one has grown to what nobody needs again.
        (self.buffer, self.searched, self.skipping) = (BytesMut::new(), 0, true);
        Some(Line::TooLong)
    }

    /// Takes a line out of the buffer, and its end.
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

    /// All lines of a stream that comes in pieces.
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

    /// A stream that gives one piece a read.
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
