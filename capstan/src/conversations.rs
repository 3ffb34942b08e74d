//! Conversations in the state folder, one file each, readable by their owner only.
//!
//! A line counts once its newline is on disk. What a crash leaves behind the last newline is ignored
//! and removed before the next line is written.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::chat::ConversationStore;
use capstan_app::{AppError, Environment};
use jiff::Timestamp;

/// The number of conversations that are kept.
const MAX_KEPT: usize = 200;

/// The largest file that is read, in bytes.
const MAX_SIZE: u64 = 256 << 20;

/// The end of the name of a file.
const END: &str = ".jsonl";

/// Conversations in the state folder.
pub(crate) struct ConversationFolder(pub(crate) Arc<Environment>);

// === impl ConversationFolder ===

impl ConversationFolder {
    fn folder(&self) -> PathBuf {
        self.0.state.join("conversations")
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder().join(format!("{id}{END}"))
    }

    fn failed(&self, error: &io::Error) -> AppError {
        let folder = self.folder();
        AppError::internal(format!("conversations in {}: {error}", folder.display()))
            .hint("check the permissions of the folder and the space on its disk")
    }

    /// The ids, oldest first.
    fn ids(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.folder()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            ids.extend(name.strip_suffix(END).map(ToOwned::to_owned));
        }
        // The names begin with the time.
        ids.sort();
        Ok(ids)
    }

    fn try_create(&self, now: Timestamp) -> io::Result<String> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder())?;
        let ids = self.ids()?;
        for old in ids.iter().take((ids.len() + 1).saturating_sub(MAX_KEPT)) {
            fs::remove_file(self.file(old))?;
        }
        let time = now.strftime("%Y%m%dT%H%M%S%.6f").to_string();
        let id = format!("{time}-{}", std::process::id());
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.file(&id))?;
        Ok(id)
    }

    fn try_append(&self, id: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().read(true).append(true).open(self.file(id))?;
        remove_torn_line(&mut file)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_data()
    }

    fn try_lines(&self, id: &str) -> io::Result<Vec<String>> {
        let mut text = Vec::new();
        File::open(self.file(id))?.take(MAX_SIZE).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        Ok(whole.lines().map(ToOwned::to_owned).collect())
    }
}

impl ConversationStore for ConversationFolder {
    fn create(&self, now: Timestamp) -> Result<String, AppError> {
        self.try_create(now).map_err(|error| self.failed(&error))
    }

    fn append(&self, id: &str, line: &str) -> Result<(), AppError> {
        self.try_append(id, line).map_err(|error| self.failed(&error))
    }

    fn lines(&self, id: &str) -> Result<Vec<String>, AppError> {
        self.try_lines(id).map_err(|error| self.failed(&error))
    }

    fn latest(&self) -> Result<Vec<String>, AppError> {
        let mut ids = self.ids().map_err(|error| self.failed(&error))?;
        ids.reverse();
        Ok(ids)
    }
}

/// Removes what stands behind the last newline.
fn remove_torn_line(file: &mut File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" {
        return Ok(());
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_SIZE).read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    file.set_len(u64::try_from(whole).unwrap_or(0))
}
