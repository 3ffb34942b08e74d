//! Writing the log.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use capstan_hub::Entry;
use capstan_hub::ports::AuditLog;

use crate::error::{AuditError, FailureKind};
use crate::head::{HeadFile, LOCK_WAIT};
use crate::place::{Place, open_private};
use crate::recover::recover;
use crate::rotate;
use crate::row::{Fault, Link, Row};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A log that would grow beyond this many bytes is put aside, and a new one begun.
    pub max_size: u64,
    /// How many older logs are kept.
    pub keep: u32,
}

/// When an entry counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system has it: outlives the process, but perhaps not a power cut.
    #[default]
    Fast,
    /// When the disk has it; every call waits for that.
    Sync,
}

/// The audit log as a file of JSON lines, shared by all processes that open the same path.
#[derive(Debug)]
pub struct JsonLines {
    place: Place,
    limits: Limits,
    durability: Durability,
    head: HeadFile,
    state: Mutex<State>,
    failures: AtomicU64,
    /// A bit for each kind of failure that was told.
    told: AtomicU8,
}

/// What this process knows about the log.
#[derive(Debug, Default)]
struct State {
    /// The log as it was after the last entry of this process.
    log: Option<OpenLog>,
    /// What the next entry must tell about.
    faults: Vec<Fault>,
    /// Entries that could not be written since the last one that could.
    lost: u64,
    /// Whether the lock could not be got the last time; then nobody waits for it again.
    busy: bool,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    inode: u64,
    len: u64,
    last: Link,
}

// === impl Limits ===

impl Limits {
    /// Size at which a log is put aside.
    pub const MAX_SIZE: u64 = 64 * 1024 * 1024;
    /// Number of older logs kept.
    pub const KEEP: u32 = 8;
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_size: Self::MAX_SIZE, keep: Self::KEEP }
    }
}

// === impl JsonLines ===

impl JsonLines {
    /// Opens the log at `path` and makes it, for its owner only, where there is none.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, AuditError> {
        let place = Place::new(path);
        place.create_folder().map_err(AuditError::open(place.folder()))?;
        let head = HeadFile::create(place.head())?;
        {
            let _lock = head.lock(LOCK_WAIT)?;
            let log = open_private(path).map_err(AuditError::open(path))?;
            let empty = log.metadata().map_err(AuditError::read(path))?.len() == 0;
            let older = place.older_numbers().map_err(AuditError::read(place.folder()))?;
            // Before the first entry, so that a log without a head is always a sign of damage.
            if empty && older.is_empty() && head.read()?.is_none() {
                head.write_start(&Link::start())?;
                head.write_last(&Link::start())?;
            }
        }
        let state = Mutex::default();
        let (failures, told) = (AtomicU64::new(0), AtomicU8::new(0));
        let durability = Durability::default();
        Ok(Self { place, limits, durability, head, state, failures, told })
    }

    /// Sets when an entry counts as written.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// How many times something could not be written.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Writes entries, oldest first: one lock, one write and one note of where the chain ends for
    /// all of them. A failure is told as by [`AuditLog::record`].
    pub fn record_all(&self, entries: &[Entry]) {
        if let Err(error) = self.append(entries) {
            self.tell(&error);
        }
    }

    fn append(&self, entries: &[Entry]) -> Result<(), AuditError> {
        let Some(first) = entries.first() else { return Ok(()) };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = if state.busy { Duration::ZERO } else { LOCK_WAIT };
        let result = match self.head.lock(wait) {
            Ok(_lock) => {
                state.busy = false;
                self.put(&mut state, first, entries).and_then(|()| self.confirm(&state))
            }
            Err(error) => {
                state.busy = true;
                state.lost += entries.len() as u64;
                Err(error)
            }
        };
        drop(state);
        result
    }

    /// Adds the entries to the log, behind what there is to tell about the log itself.
    fn put(&self, state: &mut State, first: &Entry, entries: &[Entry]) -> Result<(), AuditError> {
        // Lost until the system has them.
        let missed = state.lost;
        state.lost += entries.len() as u64;
        let mut log = self.current(state)?;
        let told = state.faults.iter().copied();
        let told = told.chain((missed > 0).then_some(Fault::Lost { entries: missed }));
        let told = told.map(|fault| Row::of_fault(fault, first.time));
        let rows = told.chain(entries.iter().map(Row::of));
        let mut text = String::new();
        let mut last = log.last.clone();
        for row in rows {
            last = row.seal_into(&last, &mut text);
        }
        if log.len > 0 && log.len + text.len() as u64 > self.limits.max_size {
            log = self.rotate(log)?;
        }
        if let Err(cause) = log.file.write_all(text.as_bytes()) {
            // Takes back what is half written; should that fail too, the next writer finds it.
            drop(log.file.set_len(log.len));
            return Err(AuditError::write(self.place.log())(cause));
        }
        log.len += text.len() as u64;
        log.last = last;
        *state = State { log: Some(log), ..State::default() };
        Ok(())
    }

    /// What remains to be done when the entries are in the log.
    fn confirm(&self, state: &State) -> Result<(), AuditError> {
        let Some(log) = &state.log else { return Ok(()) };
        match self.durability {
            Durability::Fast => {}
            Durability::Sync => {
                log.file.sync_data().map_err(AuditError::write(self.place.log()))?;
            }
        }
        self.head.write_last(&log.last)
    }

    /// The log as it is now: as this process left it, or read anew.
    fn current(&self, state: &mut State) -> Result<OpenLog, AuditError> {
        if let Some(log) = state.log.take()
            && log.is_at(self.place.log())
        {
            return Ok(log);
        }
        let path = self.place.log();
        let file = open_private(path).map_err(AuditError::open(path))?;
        let head = self.head.read()?;
        let recovered = recover(&self.place, &file, head.as_ref())?;
        if head.is_none() {
            self.head.write_start(&Link::start())?;
        }
        for fault in recovered.faults {
            if !state.faults.contains(&fault) {
                state.faults.push(fault);
            }
        }
        OpenLog::new(file, recovered.last).map_err(AuditError::read(path))
    }

    /// Begins a new log. An entry in a log that is too large is better than none, so a failure
    /// is told and the entry still written.
    fn rotate(&self, log: OpenLog) -> Result<OpenLog, AuditError> {
        let keep = self.limits.keep;
        let rotated = rotate::put_aside(&self.place)
            .and_then(|()| rotate::drop_oldest(&self.place, &self.head, keep, &log.last));
        if let Err(error) = rotated {
            self.tell(&error);
        }
        let path = self.place.log();
        let file = open_private(path).map_err(AuditError::open(path))?;
        OpenLog::new(file, log.last).map_err(AuditError::read(path))
    }

    fn tell(&self, error: &AuditError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let bit = match error.kind() {
            FailureKind::Busy => 1,
            FailureKind::Full => 2,
            FailureKind::Forbidden => 4,
            FailureKind::Other => 8,
        };
        if self.told.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            let hint = error.hint().unwrap_or_default();
            let error: &dyn std::error::Error = error;
            tracing::error!(error, hint, "calls are not written to the audit log");
        }
    }
}

impl AuditLog for JsonLines {
    /// Writes one entry. A failure is logged, once for each kind, counted, and noted in the log
    /// itself by the next entry that can be written.
    fn record(&self, entry: Entry) {
        self.record_all(&[entry]);
    }
}

// === impl OpenLog ===

impl OpenLog {
    fn new(file: File, last: Link) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self { file, inode: meta.ino(), len: meta.len(), last })
    }

    /// Whether the file at `path` is this one, and nobody has added to it since.
    fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| meta.ino() == self.inode && meta.len() == self.len)
    }
}
