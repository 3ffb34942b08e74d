//! Takes a stream of server-sent events apart; only their data matters to the formats.

use memchr::memchr;

/// The largest size of one event, in bytes.
const MAX_EVENT: usize = 8 << 20;

/// An incremental parser.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

/// An event has more bytes than allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

// === impl Events ===

impl Events {
    /// Reads a piece of the stream and returns the data of the events that it completes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut complete = Vec::new();
        while let Some(end) = memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(end);
            self.line.extend_from_slice(head);
            bytes = rest.get(1..).unwrap_or_default();
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            let line = std::mem::take(&mut self.line);
            self.line_ended(&line, &mut complete)?;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_EVENT {
            return Err(TooLong);
        }
        Ok(complete)
    }

    /// Ends the stream; some servers leave out the empty line after the last event.
    pub(crate) fn end(&mut self) -> Result<Vec<Vec<u8>>, TooLong> {
        self.push(b"\n\n")
    }

    fn line_ended(&mut self, line: &[u8], complete: &mut Vec<Vec<u8>>) -> Result<(), TooLong> {
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                complete.push(std::mem::take(&mut self.data));
            }
            return Ok(());
        }
        let Some(value) = line.strip_prefix(b"data:") else { return Ok(()) };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        if self.data.len().saturating_add(value.len()) > MAX_EVENT {
            return Err(TooLong);
        }
        self.data.extend_from_slice(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let stream = "event: a\r\ndata: {\"x\":\r\ndata: \"ü\"}\r\n\r\n: note\n\ndata:[DONE]\n\n";
        let expected: Vec<Vec<u8>> = vec!["{\"x\":\n\"ü\"}".into(), b"[DONE]".to_vec()];
        for size in 1..stream.len() {
            let mut events = Events::default();
            let found: Vec<Vec<u8>> = stream
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| events.push(piece).unwrap())
                .collect();
            assert_eq!(found, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_last_event_without_an_empty_line_counts() {
        let mut events = Events::default();
        assert_eq!(events.push(b"data: 1\n\ndata: 2"), Ok(vec![b"1".to_vec()]));
        assert_eq!(events.end(), Ok(vec![b"2".to_vec()]));
        assert_eq!(events.end(), Ok(Vec::new()));
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; MAX_EVENT];
        assert_eq!(events.push(&piece), Ok(Vec::new()));
        assert_eq!(events.push(b"x"), Err(TooLong));
        let mut events = Events::default();
        let line = [b"data:".as_slice(), &piece, b"\n"].concat();
        assert_eq!(events.push(line.split_at(9).0), Ok(Vec::new()));
        let mut many = Events::default();
        assert!(
            (0..3)
                .any(|_| many.push(&[b"data:", &piece[..MAX_EVENT / 2], b"\n"].concat()).is_err())
        );
    }
}
