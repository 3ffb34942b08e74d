//! The file ports of the application layer, with the adapter for files.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_app::{
    AppError, Approval, EditFault, EditStart, EditText, Edited, Environment, ErrorKind, FileFacts,
    FileKind, Files, Installed, ItemArguments, Mode, NameCache, ProjectApprovals, ReversibleEdits,
    TakeEntry, Uninstalled,
};
use capstan_config::edit::EditError;
use capstan_files::{
    Approvals, ApprovalsError, BundleLimits, EditFileError, MAX_SIZE, Placed, PlacedError, Put,
    Start, Taken,
};
use capstan_import::clients::ClientError;
use capstan_model::{Kind, ServerName};
use jiff::Timestamp;

/// The permission bits for users other than the owner.
const OTHERS: u32 = 0o077;

/// The files of this machine.
pub(crate) struct LocalFiles;

/// Approvals of project files, and the record of changed client files, in the state folder.
pub(crate) struct StateFolder(pub(crate) Arc<Environment>);

/// Names for completions, in the cache folder.
pub(crate) struct CacheFolder(pub(crate) Arc<Environment>);

// === impl LocalFiles ===

impl Files for LocalFiles {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        let metadata = fs::metadata(path).ok()?;
        let kind = match (metadata.is_file(), metadata.is_dir()) {
            (true, _) => FileKind::File,
            (_, true) => FileKind::Folder,
            (false, false) => FileKind::Other,
        };
        Some(FileFacts {
            kind,
            is_private: metadata.permissions().mode() & OTHERS == 0,
            size: metadata.len(),
            modified: metadata.modified().ok().and_then(|time| Timestamp::try_from(time).ok()),
        })
    }

    fn is_link(&self, path: &Path) -> bool {
        path.is_symlink()
    }

    fn real_path(&self, path: &Path) -> Result<PathBuf, String> {
        path.canonicalize().map_err(|error| error.to_string())
    }

    fn may_write(&self, path: &Path) -> bool {
        capstan_files::may_write(path)
    }

    fn read(&self, path: &Path) -> Result<Option<String>, AppError> {
        let read = capstan_files::read_bounded(path, MAX_SIZE);
        read.map_err(|error| failure(&error, error.hint()))
    }

    fn edit(&self, path: &Path, change: EditText<'_>) -> Result<Edited, AppError> {
        match capstan_files::edit(path, change) {
            Ok(edited) => Ok(match edited.change {
                capstan_files::Change::Created => Edited::Created,
                capstan_files::Change::Replaced | capstan_files::Change::Unchanged => {
                    Edited::Changed
                }
            }),
            Err(EditFileError::<EditError>::Edit { cause, path }) => {
                let error = AppError::from(cause);
                let message = format!("{} ({})", error.message, path.display());
                Err(AppError { message, ..error })
            }
            Err(EditFileError::File(error)) => Err(failure(&error, error.hint())),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), AppError> {
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(path, bytes));
        written.map_err(|error| AppError::internal(format!("{}: {error}", path.display())))
    }

    fn remove(&self, path: &Path, expected: &str) -> Result<bool, AppError> {
        let removed = capstan_files::remove_unchanged(path, expected);
        removed.map_err(|error| failure(&error, error.hint()))
    }

    fn locked(&self, folder: &Path, work: &mut dyn FnMut()) -> Result<(), AppError> {
        let done = capstan_files::with_lock(folder, work);
        done.map_err(|error| failure(&error, error.hint()))
    }

    fn unpack(&self, bundle: &Path, bundles: &Path) -> Result<PathBuf, AppError> {
        let unpacked = capstan_files::unpack(bundle, bundles, BundleLimits::default());
        unpacked.map_err(|error| failure(&error, error.hint()))
    }
}

// === impl StateFolder ===

impl StateFolder {
    fn approvals(&self) -> Result<Approvals, AppError> {
        Approvals::open(&self.0.state).map_err(|error| not_usable(&error))
    }

    fn placed(&self) -> Placed {
        Placed::open(&self.0.state)
    }
}

impl ProjectApprovals for StateFolder {
    fn status(&self, path: &Path, text: &str) -> Result<Approval, AppError> {
        let status = self.approvals()?.status(path, text).map_err(|error| not_usable(&error))?;
        Ok(match status {
            capstan_files::Approval::Approved => Approval::Approved,
            capstan_files::Approval::Unknown => Approval::Unknown { now: text.to_owned() },
            capstan_files::Approval::Changed { approved_text } => {
                Approval::Changed { before: approved_text, now: text.to_owned() }
            }
        })
    }

    fn approve(&self, path: &Path, text: &str, time: Timestamp) -> Result<(), AppError> {
        self.approvals()?.approve(path, text, time).map_err(|error| not_usable(&error))
    }

    fn revoke(&self, path: &Path) -> Result<bool, AppError> {
        self.approvals()?.revoke(path).map_err(|error| not_usable(&error))
    }
}

impl ReversibleEdits for StateFolder {
    fn read(&self, path: &Path) -> Result<Option<String>, AppError> {
        Placed::read(path).map_err(|error| failure(&error, error.hint()))
    }

    fn is_recorded(&self, path: &Path) -> Result<bool, EditFault> {
        self.placed().knows(path).map_err(fault)
    }

    fn backup_path(&self, path: &Path) -> PathBuf {
        Placed::backup_path(path)
    }

    fn backup(&self, path: &Path) -> Result<Option<String>, EditFault> {
        self.placed().backup(path).map_err(fault)
    }

    fn start(&self, path: &Path, take: TakeEntry<'_>) -> Result<EditStart, EditFault> {
        let Start { now, base } = self.placed().start(path, take).map_err(fault)?;
        Ok(EditStart { now, base })
    }

    fn put(&self, path: &Path, start: EditStart, new: &str) -> Result<Installed, EditFault> {
        let EditStart { now, base } = start;
        Ok(match self.placed().put(path, &Start { now, base }, new).map_err(fault)? {
            Put::Already => Installed::Already,
            Put::Done { backup: None } => Installed::Created,
            Put::Done { backup } => Installed::Changed { backup },
        })
    }

    fn undo(&self, path: &Path, take: TakeEntry<'_>, mode: Mode) -> Result<Uninstalled, EditFault> {
        let taken = match mode {
            Mode::Do => self.placed().take_back(path, take),
            Mode::Try => self.placed().would_take_back(path, take),
        };
        Ok(match taken.map_err(fault)? {
            Taken::Restored => Uninstalled::Restored,
            Taken::Removed => Uninstalled::Removed,
            Taken::TakenOut { backup } => Uninstalled::TakenOut { backup },
            Taken::Nothing => Uninstalled::Nothing,
        })
    }
}

// === impl CacheFolder ===

impl CacheFolder {
    fn arguments_file(&self, kind: Kind) -> PathBuf {
        self.0.cache.join(match kind {
            Kind::Tool => "tool-arguments.json",
            Kind::Resource => "resource-arguments.json",
            Kind::Prompt => "prompt-arguments.json",
        })
    }

    fn file(&self, kind: Kind) -> PathBuf {
        self.0.cache.join(match kind {
            Kind::Tool => "names.json",
            Kind::Resource => "resources.json",
            Kind::Prompt => "prompts.json",
        })
    }
}

impl NameCache for CacheFolder {
    fn remember(&self, kind: Kind, server: &ServerName, new: Vec<String>) {
        // Completions are a convenience; failing to store them is no error.
        drop(capstan_files::edit(&self.file(kind), |text| {
            let mut names: BTreeMap<String, Vec<String>> =
                serde_json::from_str(text).unwrap_or_default();
            names.insert(server.to_string(), new);
            serde_json::to_string(&names)
        }));
    }

    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)> {
        let text = LocalFiles.read(&self.file(kind)).ok().flatten().unwrap_or_default();
        let names: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).unwrap_or_default();
        names.into_iter().collect()
    }

    fn remember_arguments(&self, kind: Kind, servers: Vec<(ServerName, ItemArguments)>) {
        // Completions are a convenience; failing to store them is no error.
        drop(capstan_files::edit(&self.arguments_file(kind), |text| {
            let mut known: BTreeMap<String, ItemArguments> =
                serde_json::from_str(text).unwrap_or_default();
            known.extend(servers.into_iter().map(|(server, items)| (server.to_string(), items)));
            serde_json::to_string(&known)
        }));
    }

    fn arguments(&self, kind: Kind, server: &str, item: &str) -> Vec<String> {
        let text = LocalFiles.read(&self.arguments_file(kind)).ok().flatten().unwrap_or_default();
        let mut known: BTreeMap<String, ItemArguments> =
            serde_json::from_str(&text).unwrap_or_default();
        known.remove(server).and_then(|mut items| items.remove(item)).unwrap_or_default()
    }
}

/// An error with its causes and a hint.
fn failure(error: &(dyn Error + 'static), hint: Option<String>) -> AppError {
    AppError { hint, ..AppError::caused(ErrorKind::Config, error) }
}

fn not_usable(error: &ApprovalsError) -> AppError {
    failure(error, error.hint())
}

fn fault(error: PlacedError<ClientError>) -> EditFault {
    let hint = error.hint();
    match error {
        PlacedError::Edit { cause, .. } => EditFault::Refused(cause),
        PlacedError::File(_)
        | PlacedError::Corrupt { .. }
        | PlacedError::Raced { .. }
        | PlacedError::BadPath { .. } => EditFault::File(failure(&error, hint)),
    }
}
