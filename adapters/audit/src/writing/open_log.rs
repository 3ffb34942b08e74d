//! The open log of one process.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::Timestamp;

use crate::files::lines::first_row;
use crate::row::ChainLink;

/// The log, and its end as of the last write of this process.
#[derive(Debug)]
pub(crate) struct OpenLog {
    pub(crate) file: File,
    inode: u64,
    pub(crate) len: u64,
    /// The number and the time of its first entry.
    pub(crate) first: Option<(u64, Timestamp)>,
    pub(crate) last: ChainLink,
}

// === impl OpenLog ===

impl OpenLog {
    pub(crate) fn new(file: File, last: ChainLink) -> io::Result<Self> {
        let meta = file.metadata()?;
        let first = first_row(&file)?.map(|row| (row.seq, row.time));
        Ok(Self { file, inode: meta.ino(), len: meta.len(), first, last })
    }

    /// Appends lines; `last` is the new end of the chain.
    pub(crate) fn add(&mut self, text: &[u8], last: ChainLink) -> io::Result<()> {
        if let Err(cause) = self.file.write_all(text) {
            // Removes a partial write; if that fails too, the next writer finds it.
            drop(self.file.set_len(self.len));
            return Err(cause);
        }
        self.len += text.len() as u64;
        self.last = last;
        Ok(())
    }

    /// True if the file at `path` is this one and has not grown since.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|meta| meta.ino() == self.inode && meta.len() == self.len)
    }
}
