//! Ports for files: plain access, approved project files, other programs' files, cached names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capstan_config::edit::EditError;
use capstan_model::{Kind, ServerName};
use jiff::Timestamp;

use crate::{AppError, Approval};

/// Access to the files of this machine.
pub trait Files: Send + Sync {
    /// Facts about a file or folder, after resolving links; `None` if it does not exist.
    fn facts(&self, path: &Path) -> Option<FileFacts>;

    /// True if the path itself is a link, also one that leads nowhere.
    fn is_link(&self, path: &Path) -> bool;

    /// The path without links.
    ///
    /// # Errors
    /// The reason, for example that the file does not exist.
    fn real_path(&self, path: &Path) -> Result<PathBuf, String>;

    /// True if the user may write to an existing file or folder.
    fn may_write(&self, path: &Path) -> bool;

    /// Reads a text file of bounded size; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, is too large or is not UTF-8.
    fn read(&self, path: &Path) -> Result<Option<String>, AppError>;

    /// Changes a text file atomically and under a lock; a missing file counts as empty.
    ///
    /// # Errors
    /// If the change is refused or the file cannot be replaced. The file is then unchanged.
    fn edit(&self, path: &Path, change: EditText<'_>) -> Result<Edited, AppError>;

    /// Writes a file and creates its folder.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), AppError>;

    /// Removes a file under a lock, and follows links, which stay; true if its text was `expected`.
    /// Otherwise the file is left alone.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, path: &Path, expected: &str) -> Result<bool, AppError>;

    /// Does some work while no other process has the lock on this folder, which is created.
    ///
    /// The work must not change files of this folder.
    ///
    /// # Errors
    /// If the lock cannot be had in time; the work was then not begun.
    fn locked(&self, folder: &Path, work: &mut dyn FnMut()) -> Result<(), AppError>;

    /// Unpacks a bundle into a folder below `bundles`, and returns that folder.
    ///
    /// # Errors
    /// If it is no bundle, exceeds a limit, or cannot be written.
    fn unpack(&self, bundle: &Path, bundles: &Path) -> Result<PathBuf, AppError>;
}

/// A change of a file's text, which may be refused.
pub type EditText<'a> = &'a mut dyn FnMut(&str) -> Result<String, EditError>;

/// Facts about a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// File, folder or something else.
    pub kind: FileKind,
    /// True if only its owner can read it.
    pub is_private: bool,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, if the file system has one.
    pub modified: Option<Timestamp>,
}

/// The kinds of entries in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A socket, pipe or device.
    Other,
}

/// The result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The file was created.
    Created,
    /// The file existed, and has the new text.
    Changed,
}

/// Stores the user's approvals of project files.
pub trait ProjectApprovals: Send + Sync {
    /// The approval of a file whose text is now `text`.
    fn status(&self, path: &Path, text: &str) -> Result<Approval, AppError>;

    /// Approves exactly this text.
    fn approve(&self, path: &Path, text: &str, time: Timestamp) -> Result<(), AppError>;

    /// Revokes an approval; true if there was one.
    fn revoke(&self, path: &Path) -> Result<bool, AppError>;
}

/// Stores the names of items between commands, for completions.
pub trait NameCache: Send + Sync {
    /// Stores the names of a server's tools, resources or prompts.
    fn remember(&self, kind: Kind, server: &ServerName, names: Vec<String>);

    /// The stored names, by server.
    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)>;

    /// Stores the names of the arguments of tools or prompts.
    fn remember_arguments(&self, kind: Kind, servers: Vec<(ServerName, ItemArguments)>);

    /// The stored names of an item's arguments.
    fn arguments(&self, kind: Kind, server: &str, item: &str) -> Vec<String>;
}

/// The names of arguments, by item.
pub type ItemArguments = BTreeMap<String, Vec<String>>;

// === impl FileFacts ===

impl FileFacts {
    /// True for a regular file.
    pub fn is_file(self) -> bool {
        self.kind == FileKind::File
    }

    /// True for a folder.
    pub fn is_folder(self) -> bool {
        self.kind == FileKind::Folder
    }
}
