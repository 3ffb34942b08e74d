//! Reads server-sent events of bounded size.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::BoxStream;
use memchr::memchr2;

use capstan_process::turn::Turn;

/// The events in the body of a response.
pub(crate) struct Events {
    stream: BoxStream<'static, Result<Bytes, String>>,
    parser: Parser,
    turn: Turn,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The type of the event; empty for the default type.
    pub(crate) name: String,
    pub(crate) data: Bytes,
}

/// The reason why there is no further event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EventError {
    /// An event is too long.
    #[error("an event has more than {0} bytes")]
    TooLong(usize),
    /// The stream failed.
    #[error("{0}")]
    Broken(String),
}

/// An incremental parser of events.
#[derive(Debug)]
struct Parser {
    buffer: BytesMut,
    /// The length of the buffer's prefix that contains no line end.
    searched: usize,
    /// True if a `\n` that comes next belongs to the `\r` before it.
    after_return: bool,
    begun: bool,
    limit: usize,
    name: String,
    data: BytesMut,
    id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

// === impl Events ===

impl Events {
    /// Reads the events of a stream, each of at most `limit` bytes.
    pub(crate) fn new(stream: BoxStream<'static, Result<Bytes, String>>, limit: usize) -> Self {
        Self { stream, parser: Parser::new(limit), turn: Turn::default() }
    }

    /// Returns the next event; `None` at the end of the stream. An incomplete event at the end is
    /// dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, EventError> {
        loop {
            if let Some(event) = self.parser.next()? {
                return Ok(Some(event));
            }
            match self.stream.next().await {
                Some(Ok(bytes)) => {
                    self.parser.push(&bytes);
                    self.turn.read(bytes.len()).await;
                }
                Some(Err(reason)) => return Err(EventError::Broken(reason)),
                None => return Ok(None),
            }
        }
    }

    /// The id of the last event that had one.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    /// The wait before a reconnect that the server requests.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.parser.retry
    }
}

// === impl Parser ===

impl Parser {
    fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            begun: false,
            limit,
            name: String::new(),
            data: BytesMut::new(),
            id: None,
            last_id: None,
            retry: None,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Result<Option<Event>, EventError> {
        while let Some(line) = self.take_line() {
            if !line.is_empty() {
                self.field(&line);
                if self.data.len() > self.limit {
                    return Err(EventError::TooLong(self.limit));
                }
            } else if let Some(event) = self.dispatch() {
                return Ok(Some(event));
            }
        }
        if self.buffer.len() + self.data.len() > self.limit {
            return Err(EventError::TooLong(self.limit));
        }
        Ok(None)
    }

    /// Takes the next line, which may end in `\n`, `\r\n` or `\r`.
    fn take_line(&mut self) -> Option<Bytes> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
        let fresh = self.buffer.get(self.searched..)?;
        let Some(found) = memchr2(b'\n', b'\r', fresh) else {
            self.searched = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.searched + found + 1);
        self.searched = 0;
        self.after_return = line.last() == Some(&b'\r');
        line.truncate(line.len() - 1);
        if !self.begun {
            self.begun = true;
            // A byte order mark may precede the stream.
            if line.starts_with(b"\xEF\xBB\xBF") {
                line.advance(3);
            }
        }
        Some(line.freeze())
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.extend_from_slice(b"\n");
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // A comment or an unknown field.
            _ => {}
        }
    }

    /// Ends an event. An event without data is dropped, but its id counts.
    fn dispatch(&mut self) -> Option<Event> {
        if let Some(id) = self.id.take() {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let name = std::mem::take(&mut self.name);
        let mut data = self.data.split();
        data.truncate(data.len().saturating_sub(1));
        (!data.is_empty()).then(|| Event { name, data: data.freeze() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use capstan_process::turn::TURN;

    /// The events of a text that arrives in pieces of `step` bytes, as `name:data`.
    fn parse(text: &[u8], step: usize) -> (Vec<String>, Parser) {
        let (mut parser, mut events) = (Parser::new(100), Vec::new());
        for piece in text.chunks(step) {
            parser.push(piece);
            while let Some(event) = parser.next().unwrap() {
                events.push(format!("{}:{}", event.name, String::from_utf8_lossy(&event.data)));
            }
        }
        (events, parser)
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        for step in [1, 2, 3, 1000] {
            assert_eq!(parse(text.as_bytes(), step).0, expected, "in pieces of {step}: {text:?}");
        }
    }

    #[test]
    fn events_are_the_same_however_their_lines_end_and_arrive() {
        check("data: a\n\ndata:b\n\n", &[":a", ":b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[":a", ":b"]);
        check("data: a\r\rdata: b\r\r", &[":a", ":b"]);
        check("\u{feff}event: e\ndata: 1\ndata:  2\n\n", &["e:1\n 2"]);
    }

    #[test]
    fn comments_empty_and_half_events_are_no_events() {
        check(": hello\n\n:\n\nid: 3\ndata:\n\nevent: x\n\nfoo: bar\n\ndata\n\n", &[]);
        check("data: a\n\ndata: half", &[":a"]);
        check("data: a\n\ndata: half\n", &[":a"]);
    }

    #[test]
    fn the_id_and_the_wait_count_without_data_and_nonsense_does_not() {
        let (_, parser) = parse(b"id: 7\nretry: 250\ndata:\n\nid: a\0b\nretry: 1x\ndata: x\n\n", 5);
        assert_eq!(parser.last_id.as_deref(), Some("7"));
        assert_eq!(parser.retry, Some(Duration::from_millis(250)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_comments_without_a_pause_does_not_hold_up_a_timeout() {
        for piece in [": x\n", "data: x\n\n"] {
            let flood = Bytes::from(piece.repeat(TURN / piece.len() + 1));
            let stream = futures::stream::repeat_with(move || Ok(flood.clone())).take(100).boxed();
            let mut events = Events::new(stream, 1000);
            let reading = async { while events.next().await != Ok(None) {} };
            let late = tokio::time::timeout(Duration::ZERO, reading).await;
            assert!(late.is_err(), "{piece:?}");
        }
    }

    #[test]
    fn an_event_that_does_not_end_is_an_error_and_not_a_full_memory() {
        for piece in ["x", "data: x\n"] {
            let mut parser = Parser::new(100);
            let ended = (0..1000).find_map(|_| {
                parser.push(piece.as_bytes());
                parser.next().err()
            });
            assert_eq!(ended, Some(EventError::TooLong(100)), "{piece:?}");
        }
    }
}
