//! Refuses request heads that HTTP parsers interpret differently.
//!
//! hyper accepts a bare line feed as the end of a line, merges two equal lengths, and prefers
//! `Transfer-Encoding` to a length. A proxy in front may do otherwise and see other requests. The
//! scan inspects the bytes before hyper does. It overwrites the line feed of a refused line with
//! NUL, for which hyper answers 400 and closes the connection.

use std::mem;

use memchr::memchr;

/// Maximum length of a line that is kept between two reads. hyper refuses longer heads.
const MAX_LINE: usize = 64 * 1024;

/// Maximum size of a chunk. A larger size is treated as an overflow.
const MAX_CHUNK: u64 = u32::MAX as u64;

/// The position in the requests of one connection.
pub(crate) struct HeadScan {
    at: Position,
    framing: Framing,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before a request line.
    Start,
    /// In the headers.
    Headers,
    /// In a body, or in a chunk and its line end, with the remaining bytes.
    Body { left: u64, then: AfterBody },
    /// Before the size of a chunk.
    Size,
    /// After the last chunk.
    Trailers,
    /// A line was refused. hyper stops reading.
    Refused,
}

/// The state after a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AfterBody {
    Start,
    Size,
}

/// The headers that determine the end of a body.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
}

/// A line that must be refused.
struct Refused;

// === impl HeadScan ===

impl HeadScan {
    pub(crate) fn new() -> Self {
        Self { at: Position::Start, framing: Framing::default(), line: Vec::new() }
    }

    /// Scans bytes that were read, and invalidates the first line that must be refused.
    pub(crate) fn scan(&mut self, bytes: &mut [u8]) {
        let mut from = 0;
        while let Some(rest) = bytes.get_mut(from..).filter(|rest| !rest.is_empty()) {
            match self.at {
                Position::Refused => return,
                Position::Body { left, then } => {
                    let here = u64::try_from(rest.len()).unwrap_or(u64::MAX).min(left);
                    from += usize::try_from(here).unwrap_or(rest.len());
                    self.at = match (left - here, then) {
                        (0, AfterBody::Start) => Position::Start,
                        (0, AfterBody::Size) => Position::Size,
                        (left, then) => Position::Body { left, then },
                    };
                }
                Position::Start | Position::Headers | Position::Size | Position::Trailers => {
                    let Some(end) = memchr(b'\n', rest) else { return self.keep(rest) };
                    let (line, _) = rest.split_at(end);
                    let next = if self.line.is_empty() {
                        self.line(line)
                    } else {
                        self.keep(line);
                        let line = mem::take(&mut self.line);
                        self.line(&line)
                    };
                    self.at = next.unwrap_or(Position::Refused);
                    if self.at == Position::Refused
                        && let Some(feed) = rest.get_mut(end)
                    {
                        *feed = 0;
                    }
                    from += end + 1;
                }
            }
        }
    }

    /// True if the last request is complete and no byte of another has come.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.at == Position::Start && self.line.is_empty()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() <= MAX_LINE {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Handles a line without its line feed.
    fn line(&mut self, line: &[u8]) -> Result<Position, Refused> {
        let line = line.strip_suffix(b"\r").ok_or(Refused)?;
        match self.at {
            // Empty lines may come before a request.
            Position::Start | Position::Trailers if line.is_empty() => Ok(Position::Start),
            Position::Start => Ok(Position::Headers),
            Position::Headers if line.is_empty() => Ok(mem::take(&mut self.framing).body()),
            Position::Headers => self.framing.header(line).map(|()| Position::Headers),
            Position::Size => match chunk_size(line)? {
                0 => Ok(Position::Trailers),
                size => Ok(Position::Body { left: size + 2, then: AfterBody::Size }),
            },
            other @ (Position::Trailers | Position::Body { .. } | Position::Refused) => Ok(other),
        }
    }
}

// === impl Framing ===

impl Framing {
    fn header(&mut self, line: &[u8]) -> Result<(), Refused> {
        // Fast path: the first letter excludes most headers.
        if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
            return Ok(());
        }
        let Some(colon) = memchr(b':', line.get(..32).unwrap_or(line)) else { return Ok(()) };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            if self.length.is_some() || self.chunked {
                return Err(Refused);
            }
            let digits = Some(value).filter(|value| value.iter().all(u8::is_ascii_digit));
            let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
            self.length = Some(text.and_then(|text| text.parse().ok()).ok_or(Refused)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if self.length.is_some() || self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Refused);
            }
            self.chunked = true;
        }
        Ok(())
    }

    fn body(self) -> Position {
        match (self.chunked, self.length) {
            (true, _) => Position::Size,
            (false, Some(left @ 1..)) => Position::Body { left, then: AfterBody::Start },
            (false, Some(0) | None) => Position::Start,
        }
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, Refused> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'));
    let size = text.and_then(|text| u64::from_str_radix(text, 16).ok());
    size.filter(|size| *size <= MAX_CHUNK).ok_or(Refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Expected {
        Passes,
        Refused,
    }

    /// True if the scan accepts the text, in pieces of any size.
    #[track_caller]
    fn check(text: &str, expected: Expected) {
        for size in 1..=text.len() {
            let mut scan = HeadScan::new();
            let mut bytes = text.as_bytes().to_vec();
            for piece in bytes.chunks_mut(size) {
                scan.scan(piece);
            }
            let is_same = bytes == text.as_bytes();
            let found = if is_same { Expected::Passes } else { Expected::Refused };
            assert_eq!(found, expected, "{text:?} by {size}");
            assert_eq!(scan.is_between_requests(), is_same, "{text:?} by {size}");
        }
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    /// Holes 13.
    #[test]
    fn a_bare_line_feed_in_a_head_is_refused_wherever_it_is() {
        for head in [
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\nContent-Length: 5\r\n\r\n",
        ] {
            check(head, Expected::Refused);
            check(&format!("{GET}{head}"), Expected::Refused);
            check(
                &format!("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n\n\n{head}"),
                Expected::Refused,
            );
            let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
            check(&format!("{chunked}2\r\n\n\n\r\n0\r\n\r\n{head}"), Expected::Refused);
        }
    }

    #[test]
    fn line_feeds_in_bodies_pass() {
        for text in [
            "POST / HTTP/1.1\r\ncontent-LENGTH:  4 \r\n\r\n\n\n\n\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\n\n\n\n\r\n1;x=y\r\n\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: x\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
        ] {
            check(text, Expected::Passes);
            check(&format!("{text}{GET}{text}"), Expected::Passes);
        }
    }

    /// Holes 6 and 10.
    #[test]
    fn a_body_with_two_ends_or_none_is_refused() {
        for headers in [
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 1\r\ncontent-length: 2",
            "Content-Length: 1, 1",
            "Content-Length: +1",
            "Content-Length: -1",
            "Content-Length: 99999999999999999999",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nContent-Length: 1",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: xchunked",
            "Transfer-Encoding: chunked, identity",
            "Transfer-Encoding: identity, chunked",
        ] {
            check(&format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n"), Expected::Refused);
        }
        for size in
            ["FFFFFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFF", "100000000", "+1", "-1", "", "zz", "1\n"]
        {
            check(
                &format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n"),
                Expected::Refused,
            );
        }
    }

    #[test]
    fn a_line_without_an_end_takes_bounded_memory() {
        let mut scan = HeadScan::new();
        for _ in 0..1000 {
            scan.scan(&mut [b'x'; 1024]);
        }
        assert!(scan.line.capacity() <= 2 * MAX_LINE, "{}", scan.line.capacity());
    }
}
