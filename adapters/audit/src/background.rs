//! Writing the log beside the calls, on a thread of its own.
//!
//! A gateway answers many calls a second, and none of them should wait for a disk. Entries are
//! gathered for a moment and written together; a process that is killed without warning loses
//! those of that moment.

use std::io;
use std::sync::{Arc, Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use capstan_hub::Entry;
use capstan_hub::ports::AuditLog;

use crate::JsonLines;

/// Entries that may wait to be written; beyond, whoever records waits too.
pub const MAX_WAITING: usize = 8192;

/// How many entries end the gathering.
const ENOUGH: usize = 1024;

/// How long entries are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// An audit log that is written on a thread of its own. Nothing is lost when there is too much to
/// write: then recording waits.
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    log: JsonLines,
    queue: Mutex<Queue>,
    /// There is something to write, or enough of it, or it is over.
    more: Condvar,
    /// There is room again.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    entries: Vec<Entry>,
    closed: bool,
}

// === impl Background ===

impl Background {
    /// Starts to write to this log.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(log: JsonLines) -> io::Result<Self> {
        let (more, room) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { log, queue: Mutex::default(), more, room });
        let its = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || its.write())?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)) })
    }

    /// Writes what waits, and ends the thread. What is recorded afterwards is written at once.
    pub fn close(&self) {
        self.shared.queue().closed = true;
        self.shared.more.notify_all();
        let writer = whatever(self.writer.lock()).take();
        if let Some(writer) = writer {
            // It ends by itself; were it to panic, there would be nobody to tell.
            drop(writer.join());
        }
    }

    /// How many times something could not be written.
    pub fn failures(&self) -> u64 {
        self.shared.log.failures()
    }
}

impl AuditLog for Background {
    fn record(&self, entry: Entry) {
        if let Some(late) = self.shared.put(entry) {
            self.shared.log.record(late);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.close();
    }
}

// === impl Shared ===

impl Shared {
    /// Adds an entry, when there is room; gives it back when it is too late.
    fn put(&self, entry: Entry) -> Option<Entry> {
        let full = |queue: &mut Queue| queue.entries.len() >= MAX_WAITING && !queue.closed;
        let mut queue = whatever(self.room.wait_while(self.queue(), full));
        if queue.closed {
            return Some(entry);
        }
        queue.entries.push(entry);
        let waiting = queue.entries.len();
        drop(queue);
        // The writer is woken for the first entry and for enough of them, not for each.
        if waiting == 1 || waiting == ENOUGH {
            self.more.notify_one();
        }
        None
    }

    fn write(&self) {
        let mut entries = Vec::new();
        while self.gather(&mut entries) {
            self.log.record_all(&entries);
            entries.clear();
        }
    }

    /// Waits for entries and takes all there are; `false` when there will be none.
    #[expect(
        clippy::significant_drop_tightening,
        reason = "a guard that is handed on to a wait is not held meanwhile"
    )]
    fn gather(&self, entries: &mut Vec<Entry>) -> bool {
        let nothing = |queue: &mut Queue| queue.entries.is_empty() && !queue.closed;
        let few = |queue: &mut Queue| queue.entries.len() < ENOUGH && !queue.closed;
        let queue = whatever(self.more.wait_while(self.queue(), nothing));
        let (mut queue, _) = whatever(self.more.wait_timeout_while(queue, GATHER, few));
        // The two lists change places, so that their memory is used again.
        std::mem::swap(&mut queue.entries, entries);
        drop(queue);
        self.room.notify_all();
        !entries.is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        whatever(self.queue.lock())
    }
}

/// A list of entries stays a list of entries, whoever panicked beside it.
fn whatever<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
