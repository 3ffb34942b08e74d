//! Writing the log beside the calls, on a thread of its own.
//!
//! A gateway answers many calls a second, and none of them should wait for a disk. Entries are
//! gathered for a moment and written together. A process that is killed without warning loses those
//! of that moment; the marker that it leaves behind tells of it (`open_marker`). Where answers are to
//! wait until the disk has their entries, nothing is gathered on purpose: while the disk works for
//! some entries, the next ones come together by themselves.

use std::io;
use std::sync::{Arc, Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use capstan_hub::Entry;
use capstan_hub::ports::{AuditLog, Settling, Unwritten};
use futures::channel::oneshot;

use crate::open_marker::OpenMarker;
use crate::{Durability, JsonLines};

/// Entries that may wait to be written; beyond, whoever records waits too.
pub const MAX_WAITING: usize = 8192;

/// How many entries end the gathering.
const ENOUGH: usize = 1024;

/// How long entries are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// How often it is tried to write down that entries were lost.
const RETRY: Duration = Duration::from_secs(1);

/// An audit log that is written on a thread of its own. Nothing is lost when there is too much to
/// write: then recording waits.
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Tells others that there may be entries in memory, or lost ones of which the log does not tell;
    /// gone when there are none.
    marker: Mutex<Option<OpenMarker>>,
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
    batch: Batch,
    closed: bool,
}

/// Entries that are written together, and whoever waits for that.
#[derive(Debug, Default)]
struct Batch {
    entries: Vec<Entry>,
    waiting: Vec<Waiting>,
}

type Waiting = oneshot::Sender<Result<(), Unwritten>>;

/// What the writer has to do.
enum Work {
    Write,
    /// There are no entries, but there is something to tell about lost ones.
    TellLost,
    Stop,
}

// === impl Background ===

impl Background {
    /// Starts to write to this log.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(log: JsonLines) -> io::Result<Self> {
        let (more, room) = (Condvar::new(), Condvar::new());
        let marker = Mutex::new(log.mark_open());
        let shared = Arc::new(Shared { log, queue: Mutex::default(), more, room });
        let its = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || its.write())?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)), marker })
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
        if !self.shared.log.has_untold() {
            drop(whatever(self.marker.lock()).take());
        }
    }

    /// How many times something could not be written.
    pub fn failures(&self) -> u64 {
        self.shared.log.failures()
    }
}

impl AuditLog for Background {
    fn record(&self, entry: Entry) {
        if let Some(late) = self.shared.put(entry, None) {
            self.shared.log.record(late);
        }
    }

    fn settle(&self, entry: Entry) -> Settling {
        match self.shared.log.durability() {
            Durability::Fast => {
                self.record(entry);
                Settling::Done
            }
            Durability::Sync => {
                let (kept, waits) = oneshot::channel();
                match self.shared.put(entry, Some(kept)) {
                    None => Settling::Waits(Box::pin(async {
                        // Only a writer that panicked leaves somebody without an answer.
                        let gone = Unwritten("the writer of the audit log is gone".to_owned());
                        waits.await.unwrap_or(Err(gone))
                    })),
                    Some(late) => self.shared.log.settle(late),
                }
            }
        }
    }

    fn ready(&self) -> Result<(), Unwritten> {
        self.shared.log.ready()
    }

    fn withholds(&self) -> bool {
        self.shared.log.withholds()
    }

    fn lost(&self) -> u64 {
        self.shared.log.lost()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.close();
        if let Some(marker) = whatever(self.marker.lock()).take() {
            marker.leave();
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Adds an entry, when there is room; gives it back when it is too late.
    fn put(&self, entry: Entry, waiting: Option<Waiting>) -> Option<Entry> {
        let full = |queue: &mut Queue| queue.batch.entries.len() >= MAX_WAITING && !queue.closed;
        let mut queue = whatever(self.room.wait_while(self.queue(), full));
        if queue.closed {
            return Some(entry);
        }
        queue.batch.entries.push(entry);
        queue.batch.waiting.extend(waiting);
        let count = queue.batch.entries.len();
        drop(queue);
        // The writer is woken for the first entry and for enough of them, not for each.
        if count == 1 || count == ENOUGH {
            self.more.notify_one();
        }
        None
    }

    fn write(&self) {
        let mut batch = Batch::default();
        loop {
            match self.gather(&mut batch) {
                Work::Write => {
                    let written = self.log.record_all(&batch.entries);
                    batch.entries.clear();
                    for waiting in batch.waiting.drain(..) {
                        // Whoever waited may be gone; the entry is there all the same.
                        drop(waiting.send(written.clone()));
                    }
                }
                Work::TellLost => self.log.tell_lost(),
                Work::Stop => {
                    self.log.tell_lost();
                    return;
                }
            }
        }
    }

    /// Waits for entries and takes all there are.
    fn gather(&self, batch: &mut Batch) -> Work {
        let nothing = |queue: &mut Queue| queue.batch.entries.is_empty() && !queue.closed;
        let few = |queue: &mut Queue| queue.batch.entries.len() < ENOUGH && !queue.closed;
        let mut queue = if self.log.has_untold() {
            let (queue, waited) =
                whatever(self.more.wait_timeout_while(self.queue(), RETRY, nothing));
            if waited.timed_out() {
                return Work::TellLost;
            }
            queue
        } else {
            whatever(self.more.wait_while(self.queue(), nothing))
        };
        match self.log.durability() {
            Durability::Fast => {
                queue = whatever(self.more.wait_timeout_while(queue, GATHER, few)).0;
            }
            Durability::Sync => {}
        }
        // The two lists change places, so that their memory is used again.
        std::mem::swap(&mut queue.batch, batch);
        drop(queue);
        self.room.notify_all();
        if batch.entries.is_empty() { Work::Stop } else { Work::Write }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        whatever(self.queue.lock())
    }
}

/// A list of entries stays a list of entries, whoever panicked beside it.
fn whatever<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
