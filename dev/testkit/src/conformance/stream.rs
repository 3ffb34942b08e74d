//! A stream of messages to a client that can be broken off and taken up again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::lock;

/// How many messages that were read already are kept for a reader who lost them.
const KEPT: usize = 1024;

/// Messages in the order in which they were sent.
pub(super) struct Stream {
    /// Names the stream within its session.
    pub(super) number: u64,
    log: Mutex<Log>,
    changed: Notify,
}

/// Reads a stream from some point on. Ends with the stream, or when the stream is cut.
pub(super) struct Reader {
    stream: Arc<Stream>,
    next: usize,
    cuts: usize,
}

/// A message and its place in the stream, from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) place: usize,
    pub(super) line: Arc<str>,
}

/// What a reader finds.
enum Look {
    Event(Event),
    End,
    Wait,
}

#[derive(Default)]
struct Log {
    lines: VecDeque<Arc<str>>,
    /// How many lines were dropped from the front.
    dropped: usize,
    /// How many were read, by whoever read furthest.
    read: usize,
    /// How often the stream was cut, and where the last time.
    cuts: usize,
    cut_at: usize,
    closed: bool,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(number: u64) -> Arc<Self> {
        Arc::new(Self { number, log: Mutex::default(), changed: Notify::new() })
    }

    pub(super) fn push(&self, line: String) {
        lock(&self.log).push(line);
        self.changed.notify_waiters();
    }

    /// Ends the stream with a last message, or without one.
    pub(super) fn end(&self, last: Option<String>) {
        let mut log = lock(&self.log);
        if let Some(line) = last {
            log.push(line);
        }
        log.closed = true;
        drop(log);
        self.changed.notify_waiters();
    }

    /// Sends all readers away; what comes later waits for the next.
    pub(super) fn cut(&self) {
        let mut log = lock(&self.log);
        log.cuts += 1;
        log.cut_at = log.end();
        drop(log);
        self.changed.notify_waiters();
    }

    /// The whole stream, if it has ended with its first message.
    pub(super) fn only(&self) -> Option<Arc<str>> {
        let log = lock(&self.log);
        if log.closed && log.end() == 1 { log.lines.front().cloned() } else { None }
    }

    /// Reads what nobody has read yet.
    pub(super) fn reader(self: &Arc<Self>) -> Reader {
        let log = lock(&self.log);
        let (next, cuts) = (log.read, log.cuts);
        drop(log);
        Reader { stream: Arc::clone(self), next, cuts }
    }

    /// Reads what came after that place.
    pub(super) fn reader_after(self: &Arc<Self>, place: usize) -> Reader {
        let cuts = lock(&self.log).cuts;
        Reader { stream: Arc::clone(self), next: place, cuts }
    }
}

// === impl Log ===

impl Log {
    fn end(&self) -> usize {
        self.dropped + self.lines.len()
    }

    fn push(&mut self, line: String) {
        self.lines.push_back(line.into());
        // Only what was read: a slow reader loses nothing.
        while self.read > self.dropped + KEPT {
            self.lines.pop_front();
            self.dropped += 1;
        }
    }
}

// === impl Reader ===

impl Reader {
    pub(super) fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// The next message, once there is one.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            let stream = Arc::clone(&self.stream);
            let changed = stream.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that nothing is missed in between.
            changed.as_mut().enable();
            match self.look() {
                Look::Event(event) => return Some(event),
                Look::End => return None,
                Look::Wait => changed.await,
            }
        }
    }

    fn look(&mut self) -> Look {
        let mut log = lock(&self.stream.log);
        if log.cuts != self.cuts && self.next >= log.cut_at {
            return Look::End;
        }
        let place = self.next.max(log.dropped);
        match log.lines.get(place - log.dropped).cloned() {
            Some(line) => {
                self.next = place + 1;
                log.read = log.read.max(self.next);
                Look::Event(Event { place: self.next, line })
            }
            None if log.closed => Look::End,
            None => Look::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(mut reader: Reader) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(event) = reader.next().await {
            lines.push(event.line.to_string());
        }
        lines
    }

    #[tokio::test]
    async fn a_reader_who_comes_back_gets_what_came_after_the_place_it_names() {
        let stream = Stream::new(1);
        let first = stream.reader();
        stream.push("a".to_owned());
        stream.cut();
        stream.push("b".to_owned());
        stream.end(Some("c".to_owned()));
        assert_eq!(lines(first).await, ["a"]);
        assert_eq!(lines(stream.reader_after(1)).await, ["b", "c"]);
        assert_eq!(lines(stream.reader_after(0)).await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn a_reader_without_a_place_gets_what_nobody_has_read() {
        let stream = Stream::new(1);
        let mut first = stream.reader();
        stream.push("a".to_owned());
        assert_eq!(first.next().await.map(|event| event.place), Some(1));
        stream.end(Some("b".to_owned()));
        assert_eq!(lines(stream.reader()).await, ["b"]);
    }

    #[tokio::test]
    async fn only_a_stream_that_ended_with_its_first_message_is_a_single_answer() {
        let stream = Stream::new(1);
        assert_eq!(stream.only(), None);
        stream.push("a".to_owned());
        assert_eq!(stream.only(), None);
        stream.end(None);
        assert_eq!(stream.only().as_deref(), Some("a"));
        let two = Stream::new(2);
        two.push("a".to_owned());
        two.end(Some("b".to_owned()));
        assert_eq!(two.only(), None);
    }

    #[tokio::test]
    async fn only_what_was_read_is_forgotten() {
        let stream = Stream::new(1);
        for number in 0..KEPT * 2 {
            stream.push(number.to_string());
        }
        let mut reader = stream.reader();
        for _ in 0..KEPT * 2 {
            reader.next().await;
        }
        stream.end(Some("last".to_owned()));
        let kept = lines(stream.reader_after(0)).await;
        assert_eq!(kept.len(), KEPT + 1);
        assert_eq!(kept.first().map(String::as_str), Some("1024"));
    }
}
