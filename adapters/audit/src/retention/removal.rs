//! Removes old logs, step by step, and records each removal.

use jiff::Timestamp;

use crate::AuditError;
use crate::files::head::HeadFile;
use crate::files::log_files::LogFiles;
use crate::retention::age::{Age, BootClock};
use crate::retention::limits::Limits;
use crate::retention::rotate;
use crate::row::Row;
use crate::writing::health::Health;
use crate::writing::open_log::OpenLog;

/// Removes old logs of one place.
pub(crate) struct Retention<'a> {
    pub(crate) files: &'a LogFiles,
    pub(crate) head: &'a HeadFile,
    pub(crate) limits: &'a Limits,
    pub(crate) boot_clock: &'a BootClock,
}

/// The occasion of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// A periodic sweep: removes at most one log per hour.
    #[default]
    Sweep,
    /// A rotation: removes at most one log for each new one.
    Rotation,
}

// === impl Retention ===

impl Retention<'_> {
    /// Removes logs beyond the size limit, and the oldest log if it is too old.
    ///
    /// It removes one old log per step, so that a wrong clock cannot remove the complete log
    /// unnoticed.
    pub(crate) fn sweep(
        &self,
        log: &mut OpenLog,
        step: Step,
        now: Timestamp,
    ) -> Result<(), AuditError> {
        rotate::make_room(self.files, self.head, self.limits, &log.last)?;
        let mut age = self.age(log.last.seq, now)?;
        if log.first.is_some_and(|(first, _)| age.since(first) >= self.limits.part()) {
            // Its dates say that no rotation is due: the clock was set back. The next write finds
            // no log and starts one.
            rotate::put_aside(self.files)?;
        }
        if step == Step::Sweep && !age.has_rested(self.limits.sweep_every()) {
            return Ok(());
        }
        let expired = rotate::expired(self.files, self.limits, &age, &log.last, now)?;
        let Some(fault) = expired else { return Ok(()) };
        let (mut text, mut last) = (Vec::new(), log.last.clone());
        Row::of_fault(fault, now).seal_into(&mut last, &mut text);
        // The log records the removal before it happens.
        log.add(&text, last).map_err(AuditError::write(self.files.log()))?;
        self.head.write_last(&log.last)?;
        age.note_removal(log.last.seq);
        age.save(self.files)?;
        Health::found(fault, self.files.log());
        rotate::drop_oldest(self.files, self.head, &log.last)
    }

    /// The time that has provably passed, with `seq` as the last entry.
    fn age(&self, seq: u64, now: Timestamp) -> Result<Age, AuditError> {
        let read = self.boot_clock.read();
        let (age, is_news) = match Age::load(self.files)? {
            Some(mut age) => {
                let is_news = age.advance(read, now, seq, self.limits);
                (age, is_news)
            }
            None => (Age::begin(read, now, seq), true),
        };
        if is_news {
            age.save(self.files)?;
        }
        Ok(age)
    }
}
