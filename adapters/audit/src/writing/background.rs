//! Writes the log on a separate thread, so that calls need not wait for the disk.
//!
//! Entries are collected for a moment and written together. A process that is killed loses the
//! entries of that moment; the marker that it leaves behind reveals this (`open_marker`). If
//! answers must wait until their entries are on disk, there is no delay: while the disk writes some
//! entries, the next ones accumulate by themselves.

use std::io;
use std::sync::{Arc, Condvar, LockResult, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use capstan_hub::Entry;
use capstan_hub::ports::{AuditLog, Settling, Unwritten};
use futures::channel::oneshot;

use crate::files::open_marker::OpenMarker;
use crate::{Durability, JsonLines};

/// Maximum number of queued entries; beyond it, recording blocks.
pub const MAX_WAITING: usize = 8192;

/// Number of entries that ends the collection.
const ENOUGH: usize = 1024;

/// Maximum time to collect entries.
const GATHER: Duration = Duration::from_millis(10);

/// Interval of attempts to record that entries were lost.
const RETRY: Duration = Duration::from_secs(1);

/// An audit log that is written on a separate thread.
///
/// Under load, recording blocks instead of losing entries.
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Shows other processes that there may be unwritten entries.
    ///
    /// These are in memory, or lost and not recorded in the log. Removed when there are none.
    marker: Mutex<Option<OpenMarker>>,
}

#[derive(Debug)]
struct Shared {
    log: JsonLines,
    queue: Mutex<Queue>,
    /// Signals the writer: entries, enough entries, or close.
    more: Condvar,
    /// Signals room in the queue.
    room: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    batch: Batch,
    closed: bool,
}

/// Entries that are written together, and the callers that wait for them.
#[derive(Debug, Default)]
struct Batch {
    entries: Vec<Entry>,
    waiting: Vec<Waiting>,
}

type Waiting = oneshot::Sender<Result<(), Unwritten>>;

/// The next step of the writer.
enum Work {
    Write,
    /// There are no entries, but lost ones must be recorded.
    TellLost,
    Stop,
}

// === impl Background ===

impl Background {
    /// Starts to write to this log.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(log: JsonLines) -> io::Result<Self> {
        let (more, room) = (Condvar::new(), Condvar::new());
        let marker = Mutex::new(log.mark_open());
        let shared = Arc::new(Shared { log, queue: Mutex::default(), more, room });
        let its = Arc::clone(&shared);
        let writer =
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || its.write())?;
        Ok(Self { shared, writer: Mutex::new(Some(writer)), marker })
    }

    /// Writes the queued entries and ends the thread. Later entries are written at once.
    pub fn close(&self) {
        self.shared.queue().closed = true;
        self.shared.more.notify_all();
        let writer = ignore_poison(self.writer.lock()).take();
        if let Some(writer) = writer {
            // It ends by itself; a panic is ignored.
            drop(writer.join());
        }
        if !self.shared.log.has_untold() {
            drop(ignore_poison(self.marker.lock()).take());
        }
    }

    /// The number of failed writes.
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
                        // The sender is dropped only if the writer panicked.
                        let gone = Unwritten("the writer of the audit log has ended".to_owned());
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
        if let Some(marker) = ignore_poison(self.marker.lock()).take() {
            marker.leave();
        }
    }
}

// === impl Shared ===

impl Shared {
    /// Queues an entry, waiting for room; returns it if the queue is closed.
    fn put(&self, entry: Entry, waiting: Option<Waiting>) -> Option<Entry> {
        let full = |queue: &mut Queue| queue.batch.entries.len() >= MAX_WAITING && !queue.closed;
        let mut queue = ignore_poison(self.room.wait_while(self.queue(), full));
        if queue.closed {
            return Some(entry);
        }
        queue.batch.entries.push(entry);
        queue.batch.waiting.extend(waiting);
        let count = queue.batch.entries.len();
        drop(queue);
        // The writer is woken for the first entry and for a full batch, not for each entry.
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
                        // The waiting caller may be gone; the entry is written all the same.
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

    /// Waits for entries and takes all of them.
    fn gather(&self, batch: &mut Batch) -> Work {
        let nothing = |queue: &mut Queue| queue.batch.entries.is_empty() && !queue.closed;
        let few = |queue: &mut Queue| queue.batch.entries.len() < ENOUGH && !queue.closed;
        let mut queue = if self.log.has_untold() {
            let (queue, waited) =
                ignore_poison(self.more.wait_timeout_while(self.queue(), RETRY, nothing));
            if waited.timed_out() {
                return Work::TellLost;
            }
            queue
        } else {
            ignore_poison(self.more.wait_while(self.queue(), nothing))
        };
        match self.log.durability() {
            Durability::Fast => {
                queue = ignore_poison(self.more.wait_timeout_while(queue, GATHER, few)).0;
            }
            Durability::Sync => {}
        }
        // The two lists are swapped, so that their memory is reused.
        std::mem::swap(&mut queue.batch, batch);
        drop(queue);
        self.room.notify_all();
        if batch.entries.is_empty() { Work::Stop } else { Work::Write }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        ignore_poison(self.queue.lock())
    }
}

/// Ignores poisoning: a list of entries stays valid after a panic.
fn ignore_poison<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}
