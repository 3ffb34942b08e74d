//! Writes the log.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use capstan_hub::Entry;
use capstan_hub::ports::{AuditLog, Settling, Unwritten};
use jiff::Timestamp;

use crate::error::AuditError;
use crate::files::head::{HeadFile, LOCK_WAIT};
use crate::files::log_files::{LogFiles, open_private};
use crate::files::open_marker::{OpenMarker, Unclosed};
use crate::retention::age::BootClock;
use crate::retention::limits::Limits;
use crate::retention::removal::{Retention, Step};
use crate::retention::rotate;
use crate::row::{ChainLink, Fault, Row};
use crate::writing::health::{Health, OnFull};
use crate::writing::open_log::OpenLog;
use crate::writing::recover::recover;

/// Number of bytes that must be free for an entry.
const PROBE: usize = 4096;

/// Length that most lines do not exceed.
const LINE: usize = 640;

/// The moment when an entry counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the system has it: it survives the end of the process, but perhaps not a power cut.
    #[default]
    Fast,
    /// When the disk has it; every call waits for that.
    Sync,
}

/// The audit log as a file of JSON lines, shared by all processes that open the same path.
#[derive(Debug)]
pub struct JsonLines {
    files: LogFiles,
    limits: Limits,
    durability: Durability,
    on_full: OnFull,
    head: HeadFile,
    boot_clock: BootClock,
    state: Mutex<State>,
    health: Health,
}

/// The state of the log in this process.
#[derive(Debug, Default)]
struct State {
    /// The log after the last entry of this process.
    log: Option<OpenLog>,
    /// Faults that the next write must record.
    faults: Vec<Fault>,
    /// Number of entries lost since the last successful write.
    lost: u64,
    /// Time of the last call, written or lost.
    now: Timestamp,
    /// Time of the last sweep for old logs and for markers of killed processes.
    swept: Option<Instant>,
    /// The occasion for the next retention step.
    step: Step,
    /// True if the last attempt to lock timed out; then the next one does not wait.
    busy: bool,
}

// === impl JsonLines ===

impl JsonLines {
    /// Opens the log at `path`; creates it, for its owner only, if it does not exist.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, AuditError> {
        let files = LogFiles::new(path);
        files.create_folder().map_err(AuditError::open(files.folder()))?;
        let head = HeadFile::create(files.head())?;
        {
            let _lock = head.lock(LOCK_WAIT)?;
            let log = open_private(path).map_err(AuditError::open(path))?;
            let empty = log.metadata().map_err(AuditError::read(path))?.len() == 0;
            let older = files.older_numbers().map_err(AuditError::read(files.folder()))?;
            // Before the first entry, so that a log without a head is always a sign of damage.
            if empty && older.is_empty() && head.read()?.is_none() {
                head.write_start(&ChainLink::start())?;
                head.write_last(&ChainLink::start())?;
            }
        }
        let (state, health) = (Mutex::default(), Health::default());
        let (durability, on_full) = (Durability::default(), OnFull::default());
        let boot_clock = BootClock::default();
        Ok(Self { files, limits, durability, on_full, head, boot_clock, state, health })
    }

    /// Sets the clock that proves how much time has passed, for retention.
    #[must_use]
    pub fn with_boot_clock(self, boot_clock: BootClock) -> Self {
        Self { boot_clock, ..self }
    }

    /// Sets the moment when an entry counts as written.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the treatment of calls that cannot be recorded.
    #[must_use]
    pub fn with_on_full(self, on_full: OnFull) -> Self {
        Self { on_full, ..self }
    }

    /// The moment when an entry counts as written.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The number of failed writes.
    pub fn failures(&self) -> u64 {
        self.health.failures()
    }

    /// Writes entries, oldest first, with one lock, one write and one update of the head.
    ///
    /// Failures are reported as by [`AuditLog::record`].
    ///
    /// # Errors
    /// If they could not be written, and answers must be withheld in that case.
    pub fn record_all(&self, entries: &[Entry]) -> Result<(), Unwritten> {
        match (self.append(entries), self.on_full) {
            (Ok(()), _) | (Err(_), OnFull::Degrade) => Ok(()),
            (Err(_), OnFull::Refuse) => Err(self.health.unwritten()),
        }
    }

    /// True if there are lost entries that the log does not record yet.
    pub fn has_untold(&self) -> bool {
        self.state().lost > 0
    }

    /// Tries to record the number of lost entries.
    pub fn tell_lost(&self) {
        if self.has_untold() {
            drop(self.append(&[]));
        }
    }

    /// Marks the log as written in the background, until the marker is dropped.
    ///
    /// A failure is reported, because a kill would then leave no trace.
    pub(crate) fn mark_open(&self) -> Option<OpenMarker> {
        let marked = self.head.lock(LOCK_WAIT).and_then(|_lock| {
            OpenMarker::create(&self.files).map_err(AuditError::open(&self.files.open_markers()))
        });
        marked.map_err(|error| self.health.tell(&error)).ok()
    }

    fn append(&self, entries: &[Entry]) -> Result<(), AuditError> {
        let mut state = self.state();
        let before = state.lost;
        // They count as lost until the system has them.
        state.lost += entries.len() as u64;
        if let Some(last) = entries.last() {
            state.now = last.time;
        }
        if state.lost == 0 {
            return Ok(());
        }
        let written = self.locked(&mut state, |state| {
            self.put(state, before, entries)?;
            self.confirm(state)
        });
        let lost = state.lost.saturating_sub(before);
        drop(state);
        match &written {
            Ok(()) => self.health.is_good(),
            Err(error) => self.health.is_bad(error, lost),
        }
        written
    }

    /// Runs `work` under the lock that excludes other processes.
    fn locked(
        &self,
        state: &mut State,
        work: impl FnOnce(&mut State) -> Result<(), AuditError>,
    ) -> Result<(), AuditError> {
        let wait = if state.busy { Duration::ZERO } else { LOCK_WAIT };
        let lock = self.head.lock(wait);
        state.busy = matches!(lock, Err(AuditError::Busy { .. }));
        let _lock = lock?;
        work(state)
    }

    /// Appends the entries to the log, after rows about faults of the log itself.
    fn put(&self, state: &mut State, missed: u64, entries: &[Entry]) -> Result<(), AuditError> {
        let now = state.now;
        let mut log = self.current(state)?;
        let unclosed = self.look_for_unclosed(state);
        let told = state.faults.iter().copied();
        let told = told.chain((missed > 0).then_some(Fault::Lost { entries: missed }));
        let told = told.map(|fault| Row::of_fault(fault, now));
        let mut text = Vec::with_capacity(entries.len() * LINE);
        let mut last = log.last.clone();
        for row in told.chain(entries.iter().map(Row::of)) {
            row.seal_into(&mut last, &mut text);
        }
        let is_full = log.len + text.len() as u64 > self.limits.max_size;
        let (mut step, first) = (Step::Sweep, log.last.seq.saturating_add(1));
        if log.len > 0
            && (is_full || self.limits.is_time_for_another(log.first.map(|(_, time)| time), now))
        {
            log = self.rotate(log)?;
            (step, state.swept) = (Step::Rotation, None);
        }
        log.add(&text, last).map_err(AuditError::write(self.files.log()))?;
        log.first = log.first.or(Some((first, now)));
        for marker in unclosed {
            // A marker that stays is recorded again.
            drop(marker.remove());
        }
        let swept = state.swept;
        *state = State { log: Some(log), step, now, swept, ..State::default() };
        Ok(())
    }

    /// Finds the markers of killed processes, and schedules a fault for each.
    fn look_for_unclosed(&self, state: &mut State) -> Vec<Unclosed> {
        if !self.is_time_to_sweep(state) {
            return Vec::new();
        }
        let unclosed = Unclosed::find(&self.files).unwrap_or_else(|cause| {
            self.health.tell(&AuditError::read(&self.files.open_markers())(cause));
            Vec::new()
        });
        for marker in &unclosed {
            self.found(state, Fault::Unclosed { process: marker.process });
        }
        unclosed
    }

    /// True if older logs and markers are due for a sweep: at first, and then periodically.
    fn is_time_to_sweep(&self, state: &State) -> bool {
        state.swept.is_none_or(|swept| swept.elapsed() >= self.limits.sweep_every())
    }

    /// Schedules a fault for the next write.
    fn found(&self, state: &mut State, fault: Fault) {
        if !state.faults.contains(&fault) {
            Health::found(fault, self.files.log());
            state.faults.push(fault);
        }
    }

    /// Completes a write: syncs, updates the head, and sweeps.
    fn confirm(&self, state: &mut State) -> Result<(), AuditError> {
        let is_due = self.is_time_to_sweep(state);
        let Some(log) = &mut state.log else { return Ok(()) };
        match self.durability {
            Durability::Fast => {}
            Durability::Sync => {
                log.file.sync_data().map_err(AuditError::write(self.files.log()))?;
            }
        }
        self.head.write_last(&log.last)?;
        if is_due {
            let Self { files, head, limits, boot_clock, .. } = self;
            let retention = Retention { files, head, limits, boot_clock };
            if let Err(error) = retention.sweep(log, state.step, state.now) {
                self.health.tell(&error);
            }
            state.swept = Some(Instant::now());
        }
        Ok(())
    }

    /// The current log: as this process left it, or read anew.
    fn current(&self, state: &mut State) -> Result<OpenLog, AuditError> {
        if let Some(log) = state.log.take()
            && log.is_at(self.files.log())
        {
            return Ok(log);
        }
        let file = self.open_log()?;
        let head = self.head.read()?;
        let recovered = recover(&self.files, &file, head.as_ref())?;
        if head.is_none() {
            self.head.write_start(&ChainLink::start())?;
        }
        for fault in recovered.faults {
            self.found(state, fault);
        }
        OpenLog::new(file, recovered.last).map_err(AuditError::read(self.files.log()))
    }

    /// Starts a new log.
    ///
    /// An entry in an oversized log is better than none, so a failure is reported and the entry
    /// still written.
    fn rotate(&self, log: OpenLog) -> Result<OpenLog, AuditError> {
        let aside = rotate::put_aside(&self.files);
        let room = |()| rotate::make_room(&self.files, &self.head, &self.limits, &log.last);
        if let Err(error) = aside.and_then(room) {
            self.health.tell(&error);
        }
        let file = self.open_log()?;
        OpenLog::new(file, log.last).map_err(AuditError::read(self.files.log()))
    }

    fn open_log(&self) -> Result<File, AuditError> {
        let path = self.files.log();
        let file = open_private(path).map_err(AuditError::open(path))?;
        match self.durability {
            Durability::Fast => {}
            // An entry is useless in a file whose name is lost.
            Durability::Sync => {
                self.files.sync_folder().map_err(AuditError::write(self.files.folder()))?;
            }
        }
        Ok(file)
    }

    /// Checks if there is room for an entry: writes blanks of its size and removes them.
    ///
    /// If the process dies in between, only blanks are left, which are harmless.
    fn probe(&self) {
        let mut state = self.state();
        let probed = self.locked(&mut state, |state| {
            let mut log = self.current(state)?;
            let written = log.file.write_all(&[b' '; PROBE]);
            let taken_back = log.file.set_len(log.len);
            written.and(taken_back).map_err(AuditError::write(self.files.log()))?;
            state.log = Some(log);
            Ok(())
        });
        drop(state);
        match probed {
            Ok(()) => self.health.is_good(),
            Err(error) => self.health.is_bad(&error, 0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuditLog for JsonLines {
    /// Writes one entry.
    ///
    /// A failure is logged, at most once a minute, counted, and recorded in the log itself by the
    /// next successful write.
    fn record(&self, entry: Entry) {
        drop(self.record_all(&[entry]));
    }

    fn settle(&self, entry: Entry) -> Settling {
        match (self.record_all(&[entry]), self.durability) {
            (Err(unwritten), Durability::Sync) => {
                Settling::Waits(Box::pin(std::future::ready(Err(unwritten))))
            }
            (Ok(()), _) | (Err(_), Durability::Fast) => Settling::Done,
        }
    }

    fn ready(&self) -> Result<(), Unwritten> {
        match self.on_full {
            OnFull::Degrade => Ok(()),
            OnFull::Refuse => self.health.check(|| self.probe()),
        }
    }

    fn withholds(&self) -> bool {
        self.durability == Durability::Sync
    }

    fn lost(&self) -> u64 {
        self.health.lost()
    }
}
