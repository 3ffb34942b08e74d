//! A log in a folder of its own, and entries to put into it.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use capstan_audit::{Broken, Verified};
use capstan_audit::{JsonLines, Limits, Query, Reader, Row, VerifyError};
use capstan_hub::ports::AuditLog;
use capstan_hub::{Entry, Ground, Outcome};
use capstan_model::{Caller, Effect, Kind, Verdict};
use jiff::Timestamp;

pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A world whose log holds the entries 1 to `count`.
    pub(crate) fn with_entries(count: u64) -> Self {
        let world = Self::new();
        world.record(1..=count);
        world
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.file("audit.jsonl")
    }

    pub(crate) fn open(&self) -> JsonLines {
        JsonLines::open(&self.log(), Limits::default()).unwrap()
    }

    /// Adds entries, as a process of its own would.
    pub(crate) fn record(&self, numbers: impl IntoIterator<Item = u64>) {
        let log = self.open();
        for number in numbers {
            log.record(entry(number));
        }
        assert_eq!(log.failures(), 0);
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.log()).unwrap()
    }

    pub(crate) fn rows(&self) -> Vec<Row> {
        self.reader().query(&Query { limit: usize::MAX, ..Query::default() }).unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        lines_of(&self.log())
    }

    pub(crate) fn set_lines(&self, lines: &[String]) {
        let ended: Vec<&str> = lines.iter().flat_map(|line| [line, "\n"]).collect();
        fs::write(self.log(), ended.concat()).unwrap();
    }

    #[track_caller]
    pub(crate) fn verified(&self) -> Verified {
        self.reader().verify().unwrap()
    }

    #[track_caller]
    pub(crate) fn broken(&self) -> Broken {
        let found = match self.reader().verify().unwrap_err() {
            VerifyError::Broken(broken) => Some(broken),
            VerifyError::Audit(_) => None,
        };
        found.unwrap()
    }
}

pub(crate) fn lines_of(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Waits for a future on this very thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A log whose chain is whole from its first entry on.
pub(crate) fn whole(entries: u64, breaks: u64) -> Verified {
    Verified { first: 1, entries, breaks, unclosed: 0 }
}

/// The `number`th call of a quiet day, one a second.
pub(crate) fn entry(number: u64) -> Entry {
    Entry {
        time: time(number),
        caller: Arc::new(Caller {
            roles: vec!["deployers".to_owned()],
            caller_id: Some("planner".to_owned()),
            client: Some("some-client/1.0".to_owned()),
            ..Caller::remote("ci", Vec::new())
        }),
        kind: Kind::Tool,
        method: None,
        server: Some("linear".to_owned()),
        item: format!("tool_{number}"),
        effect: Some(Effect::Write),
        verdict: Some(Verdict::Ask),
        rule: Some("permissions.ask: *".to_owned()),
        approval: Some(Ground::Asked),
        arguments: None,
        outcome: Outcome::Answered,
        duration: Duration::from_micros(12_345),
        request_bytes: 17,
        answer_bytes: 4711,
    }
}

pub(crate) fn time(number: u64) -> Timestamp {
    Timestamp::from_millisecond(i64::try_from(number).unwrap() * 1000 + 5).unwrap()
}
