//! Time that has provably passed. Retention uses it instead of the wall clock.
//!
//! A wall clock can jump: a wrong date after a flat battery, a bad time server, a typing error.
//! Within one boot of the system, its monotonic time proves how much time has passed. Across a
//! restart only the dates of entries are available, so a restart counts for a bounded part of the
//! retention time. The file `audit.clock` stores the sum, and the number of the last entry at some
//! moments of it; without the file, counting starts anew and nothing is removed early.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::AuditError;
use crate::files::log_files::{LogFiles, PRIVATE};
use crate::retention::limits::{Limits, passed};

/// Shorter times are not stored.
const STEP: Duration = Duration::from_mins(1);

/// Number of marks within the retention time. A file is kept longer by one part at most.
const MARKS: u32 = 36;

/// Maximum size of the file, in bytes.
const MAX_FILE: u64 = 16 * 1024;

/// The time since the system was booted, and an id of that boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootTime {
    /// Unique for each boot.
    pub boot: String,
    /// The time since the boot, including suspension.
    pub elapsed: Duration,
}

/// Reads the time since the boot; `None` if the system does not provide it.
#[derive(Clone)]
pub struct BootClock(Arc<dyn Fn() -> Option<BootTime> + Send + Sync>);

/// The time that has provably passed while the log was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Age {
    /// The boot of the last reading; `elapsed` is the time since that boot.
    boot: Option<String>,
    elapsed: Duration,
    /// The wall clock at the last reading.
    wall: Timestamp,
    /// The sum of the time that has passed.
    proven: Duration,
    /// The sum at the last removal by retention.
    removed: Option<Duration>,
    marks: Vec<Mark>,
}

/// The number of the last entry at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    seq: u64,
    proven: Duration,
}

// === impl BootClock ===

impl BootClock {
    /// Creates a clock that is read with this function.
    pub fn new(read: impl Fn() -> Option<BootTime> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn read(&self) -> Option<BootTime> {
        (self.0)()
    }
}

impl Default for BootClock {
    /// The system's clock.
    fn default() -> Self {
        Self::new(|| {
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
            let uptime = fs::read_to_string("/proc/uptime").ok()?;
            let seconds: f64 = uptime.split(' ').next()?.parse().ok()?;
            let elapsed = Duration::try_from_secs_f64(seconds).ok()?;
            Some(BootTime { boot: boot.trim().to_owned(), elapsed })
        })
    }
}

impl std::fmt::Debug for BootClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BootClock")
    }
}

// === impl Age ===

impl Age {
    /// Reads the file. `None` if it is missing or damaged, so that no time has passed.
    pub(crate) fn load(files: &LogFiles) -> Result<Option<Self>, AuditError> {
        let path = files.clock();
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(MAX_FILE).read_to_end(&mut text));
        match read {
            Ok(_) => Ok(serde_json::from_slice(&text).ok()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(AuditError::read(&path)(cause)),
        }
    }

    /// Replaces the file. The caller must hold the lock of the log.
    pub(crate) fn save(&self, files: &LogFiles) -> Result<(), AuditError> {
        let path = files.clock();
        let new = path.with_extension("clock.new");
        let write = |to: &Path| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(PRIVATE)
                .open(to)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            fs::rename(to, &path)
        };
        write(&new).map_err(AuditError::write(&path))
    }

    /// Starts to count now, after the entry `seq`.
    pub(crate) fn begin(at: Option<BootTime>, wall: Timestamp, seq: u64) -> Self {
        let marks = vec![Mark { seq, proven: Duration::ZERO }];
        let (boot, elapsed) = at.map(|at| (at.boot, at.elapsed)).unzip();
        Self { boot, elapsed: elapsed.unwrap_or_default(), wall, marks, ..Self::default() }
    }

    /// Adds the time since the last reading; returns true if it must be stored.
    pub(crate) fn advance(
        &mut self,
        at: Option<BootTime>,
        wall: Timestamp,
        seq: u64,
        limits: &Limits,
    ) -> bool {
        if self.marks.last().is_some_and(|mark| mark.seq > seq) {
            // The log was started anew: the marks belong to another log.
            *self = Self::begin(at, wall, seq);
            return true;
        }
        let (boot, elapsed) = at.map(|at| (at.boot, at.elapsed)).unzip();
        let elapsed = elapsed.unwrap_or_default();
        let is_same_boot = boot.is_some() && boot == self.boot;
        let more = match elapsed.checked_sub(self.elapsed) {
            Some(more) if is_same_boot => more,
            Some(_) | None => passed(self.wall, wall).min(limits.part()),
        };
        if is_same_boot && more < STEP {
            return false;
        }
        self.proven = self.proven.saturating_add(more);
        (self.boot, self.elapsed, self.wall) = (boot, elapsed, wall);
        self.mark(seq, limits.retention);
        true
    }

    /// Marks the last entry, unless there is a recent mark.
    fn mark(&mut self, seq: u64, retention: Duration) {
        let since = self.marks.last().map(|mark| self.proven.saturating_sub(mark.proven));
        if since.is_none_or(|since| since >= retention / MARKS) {
            self.marks.push(Mark { seq, proven: self.proven });
        }
        // Of the marks older than the retention time, only the newest is needed.
        let is_old = |mark: &Mark| self.proven.saturating_sub(mark.proven) >= retention;
        let old = self.marks.iter().take_while(|mark| is_old(mark)).count();
        self.marks.drain(..old.saturating_sub(1));
    }

    /// The minimum time that has provably passed since this entry was written.
    pub(crate) fn since(&self, seq: u64) -> Duration {
        let mark = self.marks.iter().find(|mark| mark.seq >= seq);
        mark.map_or(Duration::ZERO, |mark| self.proven.saturating_sub(mark.proven))
    }

    /// True if retention has removed nothing for this period.
    pub(crate) fn has_rested(&self, period: Duration) -> bool {
        self.removed.is_none_or(|removed| self.proven.saturating_sub(removed) >= period)
    }

    /// Records a removal by retention, which the entry `seq` documents.
    pub(crate) fn note_removal(&mut self, seq: u64) {
        self.removed = Some(self.proven);
        // That entry is of the same moment as the one before it.
        if let Some(mark) = self.marks.last_mut().filter(|mark| mark.seq.saturating_add(1) == seq) {
            mark.seq = seq;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn at(boot: &str, days: u32) -> BootTime {
        BootTime { boot: boot.to_owned(), elapsed: DAY * days }
    }

    fn wall(day: i64) -> Timestamp {
        Timestamp::from_second(day * 24 * 3600).unwrap()
    }

    /// Holes 4.
    #[test]
    fn only_the_time_of_a_boot_and_a_part_for_each_restart_count() {
        let limits = Limits { retention: DAY * 90, ..Limits::default() };
        let begun = || Age::begin(Some(at("a", 1)), wall(1000), 7);
        for (what, readings, expected) in [
            ("a jump of the clock", vec![(Some(at("a", 1)), wall(9000))], 0),
            ("a jump, and a day", vec![(Some(at("a", 2)), wall(9000))], 1),
            (
                "a jump there and back",
                vec![(Some(at("a", 2)), wall(9000)), (Some(at("a", 3)), wall(1002))],
                2,
            ),
            ("a clock that is set back", vec![(Some(at("a", 31)), wall(3))], 30),
            ("a restart after a day", vec![(Some(at("b", 0)), wall(1001))], 1),
            ("a restart with a jump", vec![(Some(at("b", 0)), wall(9000))], 10),
            ("a restart with a clock that is set back", vec![(Some(at("b", 0)), wall(3))], 0),
            ("an uptime that goes back", vec![(Some(at("a", 0)), wall(1003))], 3),
            ("no uptime, and a jump", vec![(None, wall(9000))], 10),
        ] {
            let mut age = begun();
            for (at, wall) in readings {
                age.advance(at, wall, 8, &limits);
            }
            assert_eq!(age.since(7), DAY * expected, "{what}");
            // Later entries are at most as old as the last mark.
            assert_eq!(age.since(9), Duration::ZERO, "{what}");
        }
    }

    #[test]
    fn marks_are_few_and_say_no_more_than_has_passed() {
        let limits = Limits { retention: DAY * 36, ..Limits::default() };
        let mut age = Age::begin(Some(at("a", 0)), wall(0), 0);
        for day in 1..1000 {
            age.advance(Some(at("a", day)), wall(i64::from(day)), u64::from(day), &limits);
            assert!(age.marks.len() <= 38, "{}", age.marks.len());
            let old = day.saturating_sub(20);
            assert!(age.since(u64::from(old)) <= DAY * (day - old).max(1), "{day}");
        }
        assert!(age.since(960) >= DAY * 36 && age.since(970) < DAY * 36);
        // A log that starts anew does not inherit the age of its predecessor.
        age.advance(Some(at("a", 1000)), wall(1000), 3, &limits);
        assert_eq!(age.since(1), Duration::ZERO);
    }
}
