//! Detects tampering: every line must be unchanged and in its place.

use std::path::PathBuf;

use crate::AuditError;
use crate::files::head::Head;
use crate::files::lines::Line;
use crate::reading::reader::Reader;
use crate::row::{ChainLink, Row};

/// The result for a log with an intact chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The number of the oldest entry that is kept; above 1 if older ones were removed.
    pub first: u64,
    /// The number of lines.
    pub entries: u64,
    /// The number of lines that record a crash, lost entries, or damage.
    pub breaks: u64,
    /// The number of processes that ended without closing the log and are not recorded there yet.
    pub unclosed: u64,
}

/// The first position where the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` line {line}: {}", file.display(), self.in_words())]
pub struct Broken {
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1.
    pub line: u64,
    /// The number of the entry that belongs there.
    pub seq: u64,
    /// The kind of damage.
    pub reason: Reason,
}

/// The kinds of damage of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// It is not an entry.
    #[error("not an entry")]
    NotARow,
    /// It is incomplete.
    #[error("an incomplete line")]
    Torn,
    /// It was changed after it was written.
    #[error("the entry was changed")]
    Changed,
    /// It is another entry than the expected one: lines were removed, added or moved.
    #[error("entry {found} is out of place")]
    OutOfPlace {
        /// The entry that was found.
        found: u64,
    },
    /// It does not continue the previous entry, which was replaced.
    #[error("the entry does not continue the one before it")]
    NotContinued,
    /// The entries from here on are missing.
    #[error("the log ends, but entries up to {last} were written")]
    Cut {
        /// The last written entry.
        last: u64,
    },
    /// The head is missing or damaged, so the completeness of the log is unknown.
    #[error("the head of the log is missing or damaged")]
    Unanchored,
}

/// Failure of a verification: the log is unreadable or broken.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The log could not be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The chain is broken.
    #[error("the audit log is broken")]
    Broken(#[from] Broken),
}

/// The chain up to the current line.
struct Chain {
    head: Option<Head>,
    /// The last entry; `None` before the first.
    last: Option<ChainLink>,
    verified: Verified,
}

// === impl Broken ===

impl Broken {
    fn in_words(&self) -> String {
        let Self { seq, reason, .. } = self;
        match reason {
            Reason::OutOfPlace { found } if found > seq => {
                let gone = match found - 1 {
                    last if last == *seq => format!("entry {seq} is missing"),
                    last => format!("entries {seq} to {last} are missing"),
                };
                format!("{gone}: lines were removed, or the file that held them")
            }
            Reason::NotARow
            | Reason::Torn
            | Reason::Changed
            | Reason::OutOfPlace { .. }
            | Reason::NotContinued
            | Reason::Cut { .. }
            | Reason::Unanchored => format!("{reason} (entry {seq} belongs here)"),
        }
    }
}

// === impl Reader ===

impl Reader {
    /// Follows the chain through all files, oldest first, up to the last written entry.
    pub fn verify(&self) -> Result<Verified, VerifyError> {
        // Read before the entries: a marker is removed when there is an entry instead.
        let unclosed = self.unclosed()?;
        let snapshot = self.snapshot()?;
        let mut chain = Chain::new(snapshot.head);
        chain.verified.unclosed = unclosed;
        let mut end = (PathBuf::new(), 0);
        for piece in snapshot.pieces {
            let path = piece.path.clone();
            let mut lines = piece.lines(0)?;
            while let Some(line) = lines.next().map_err(AuditError::read(&path))? {
                let followed = chain.follow(&line);
                let broken = |reason| chain.broken_at(path.clone(), lines.number, reason);
                followed.map_err(broken)?;
            }
            end = (path, lines.number);
        }
        let broken = |reason| chain.broken_at(end.0.clone(), end.1 + 1, reason);
        chain.check_end().map_err(broken)?;
        Ok(chain.verified)
    }
}

// === impl Chain ===

impl Chain {
    fn new(head: Option<Head>) -> Self {
        Self {
            head,
            last: None,
            verified: Verified { first: 1, entries: 0, breaks: 0, unclosed: 0 },
        }
    }

    fn follow(&mut self, line: &Line<'_>) -> Result<(), Reason> {
        let row = match line {
            Line::Whole(line) => Row::unseal(line)?,
            Line::TooLong => return Err(Reason::NotARow),
            // A probe for free space was not removed.
            Line::Torn(rest) if rest.iter().all(|byte| *byte == b' ') => return Ok(()),
            Line::Torn(_) => return Err(Reason::Torn),
        };
        let before = match &self.last {
            Some(last) => last.clone(),
            None => self.start(&row),
        };
        if row.seq != before.seq.saturating_add(1) {
            return Err(Reason::OutOfPlace { found: row.seq });
        }
        if row.prev != before.hash {
            return Err(Reason::NotContinued);
        }
        let here = row.link();
        if let Some(head) = &self.head
            && [&head.start, &head.last]
                .iter()
                .any(|known| known.seq == here.seq && **known != here)
        {
            return Err(Reason::Changed);
        }
        if self.last.is_none() {
            self.verified.first = here.seq;
        }
        self.last = Some(here);
        self.verified.entries += 1;
        self.verified.breaks += u64::from(row.is_break());
        Ok(())
    }

    /// The link before the first line.
    ///
    /// A file whose removal was interrupted begins before the start; then the chain must lead to
    /// the start, which `follow` checks.
    fn start(&self, first: &Row) -> ChainLink {
        match &self.head {
            Some(head) if first.seq > head.start.seq => head.start.clone(),
            Some(_) => first.link_before(),
            None => ChainLink::start(),
        }
    }

    /// Checks that the log contains the last written entry.
    fn check_end(&self) -> Result<(), Reason> {
        let reached = self.last.as_ref().map(|last| last.seq);
        match &self.head {
            None if reached.is_none() => Ok(()),
            None => Err(Reason::Unanchored),
            Some(head) if head.last.seq > reached.unwrap_or(head.start.seq) => {
                Err(Reason::Cut { last: head.last.seq })
            }
            Some(_) => Ok(()),
        }
    }

    fn broken_at(&self, file: PathBuf, line: u64, reason: Reason) -> Broken {
        let before = self.last.as_ref().or(self.head.as_ref().map(|head| &head.start));
        let seq = before.map_or(1, |before| before.seq.saturating_add(1));
        Broken { file, line, seq, reason }
    }
}
