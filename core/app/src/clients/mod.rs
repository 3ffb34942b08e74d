//! Configuration files of other MCP clients: locates them, adds and removes an entry for Capstan.
//!
//! `adopt` moves a client's servers to Capstan, and `undo` moves them back; `adoptions` are the
//! records of that.

mod adopt;
mod adoptions;
mod undo;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_config::{Scope, SourceFile};
use capstan_import::Client;
use capstan_import::clients::{
    Base, ClientConnection, ClientError, ClientFile, Named, Presence, Use, presence, put, take,
};
use capstan_import::servers::ClientRules;
use serde::Serialize;

use crate::{AppError, ConfigFile, Environment, FileFacts};

pub use adopt::{AdoptableFile, Adopted, ClientMove};
pub use undo::UndoneAdoption;

/// The folder in which desktop programs keep their configuration on macOS.
const APPLICATION_SUPPORT: &str = "Library/Application Support";

/// The folder in which an administrator configures Claude Code.
const CLAUDE_MANAGED: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode"
} else {
    "/etc/claude-code"
};

/// Reads and changes the configuration files of other MCP clients.
pub struct Clients {
    /// The environment whose files are changed.
    pub environment: Arc<Environment>,
    /// Changes that can be undone.
    pub edits: Arc<dyn ReversibleEdits>,
}

/// Changes other programs' files so that the change can be undone exactly.
pub trait ReversibleEdits: Send + Sync {
    /// Reads a file of bounded size; `None` if it does not exist.
    fn read(&self, path: &Path) -> Result<Option<String>, AppError>;

    /// True if a change of the file is recorded.
    fn is_recorded(&self, path: &Path) -> Result<bool, EditFault>;

    /// The place of the backup of a changed file.
    fn backup_path(&self, path: &Path) -> PathBuf;

    /// The text before a recorded change, if its backup is intact.
    fn backup(&self, path: &Path) -> Result<Option<String>, EditFault>;

    /// The starting point of a change; `take` removes our entry from a text.
    fn start(&self, path: &Path, take: TakeEntry<'_>) -> Result<EditStart, EditFault>;

    /// Replaces the text of a file by `new`, which was made from `start`.
    fn put(&self, path: &Path, start: EditStart, new: &str) -> Result<Installed, EditFault>;

    /// Undoes a change; `take` removes our entry from a text that others have changed since. It
    /// gets an empty text if the file is missing.
    fn undo(&self, path: &Path, take: TakeEntry<'_>, mode: Mode) -> Result<Uninstalled, EditFault>;
}

/// Removes our entry from a text; `None` if it has none.
pub type TakeEntry<'a> = &'a dyn Fn(&str) -> Result<Option<String>, ClientError>;

/// The starting point of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditStart {
    /// The current text; `None` if there is no file.
    pub now: Option<String>,
    /// The current text without an earlier change of ours.
    pub base: Option<String>,
}

/// The reason why a client's file is not changed.
#[derive(Debug)]
pub enum EditFault {
    /// The client's format does not allow the change.
    Refused(ClientError),
    /// A file cannot be read or written.
    File(AppError),
}

/// The file of a client that gets the entry for Capstan.
#[derive(Clone, Copy, Debug)]
pub struct EntryFile<'a> {
    /// The client.
    pub client: Client,
    /// The file.
    pub path: &'a Path,
}

/// Dry run or real change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only checks that the change is possible.
    Try,
    /// Makes the change.
    Do,
}

/// The result of adding the entry to a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Installed {
    /// The entry exists and is up to date.
    Already,
    /// The file has an entry that starts Capstan, and Capstan did not write it.
    ByHand,
    /// The file was created.
    Created,
    /// The file was changed.
    Changed {
        /// The backup of the previous text.
        #[serde(skip_serializing_if = "Option::is_none")]
        backup: Option<PathBuf>,
    },
}

/// The result of removing the entry from a client's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Uninstalled {
    /// The file is byte for byte what it was before the entry.
    Restored,
    /// The file had been created for the entry and was deleted.
    Removed,
    /// The file has been changed since, so only the entry was removed.
    TakenOut {
        /// The backup of the text from before the entry.
        #[serde(skip_serializing_if = "Option::is_none")]
        backup: Option<PathBuf>,
    },
    /// The entry was not there.
    Nothing,
}

// === impl Clients ===

impl Clients {
    /// The existing files of this scope from which a client's servers are read.
    pub fn files(&self, client: Client, scope: Scope) -> Vec<PathBuf> {
        let places = client.places(scope);
        let paths = places.iter().map(|place| self.locate(place));
        let is_file =
            |path: &PathBuf| self.environment.files.facts(path).is_some_and(FileFacts::is_file);
        // A link in a project must not expose files outside the project.
        let inside = |path: &PathBuf| scope != Scope::Project || self.refuse_outside(path).is_ok();
        paths.filter(is_file).filter(inside).collect()
    }

    /// The rules that a client has for its servers, beside the files with the servers.
    pub fn rules(&self, client: Client) -> ClientRules {
        let (mut files, mut unread) = (Vec::new(), Vec::new());
        for path in client.rule_places().iter().map(|place| self.locate(place)) {
            let name = path.display().to_string();
            match self.edits.read(&path) {
                Ok(Some(text)) => files.push(SourceFile::new(name, Scope::User, text)),
                Ok(None) => {}
                Err(error) => unread.push((name, error.message)),
            }
        }
        let project = self.environment.workspace();
        let mut rules = ClientRules::read(&files, &project.to_string_lossy());
        for (file, reason) in unread {
            rules.refuse(&file, &reason);
        }
        rules
    }

    /// The places of this scope that a client's servers can be moved from.
    pub fn writable(&self, client: Client, scope: Scope) -> Vec<PathBuf> {
        let places = client.places(scope).into_iter();
        places.filter(|place| place.for_use == Use::Both).map(|it| self.locate(&it)).collect()
    }

    /// True if two paths lead to the same file.
    pub fn is_same_file(&self, one: &Path, other: &Path) -> bool {
        let real = |path| self.environment.files.real_path(path).ok();
        one == other || real(one).is_some_and(|path| Some(path) == real(other))
    }

    /// The file of this scope that an entry for Capstan belongs in, even if it does not exist yet.
    ///
    /// # Errors
    /// If a link in a project leads out of it.
    pub fn target(&self, client: Client, scope: Scope) -> Result<Option<PathBuf>, AppError> {
        let files = &self.environment.files;
        let paths = self.writable(client, scope);
        let is_there = |path: &&PathBuf| files.is_link(path) || files.facts(path).is_some();
        let Some(path) = paths.iter().find(is_there).or(paths.first()) else { return Ok(None) };
        if scope == Scope::Project {
            self.refuse_outside(path)?;
        }
        Ok(Some(path.clone()))
    }

    /// The text of a client's file or of a Capstan file; empty if the file does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn text(&self, path: &Path) -> Result<String, AppError> {
        Ok(self.edits.read(path)?.unwrap_or_default())
    }

    /// A path for display: relative to the home folder (`~/…`) if it is inside it.
    pub fn shown_path(&self, path: &str) -> String {
        match Path::new(path).strip_prefix(&self.environment.home) {
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.to_owned(),
        }
    }

    /// True if only the user can read a file, or will be able to once it is created.
    pub fn is_private(&self, file: &ConfigFile) -> bool {
        self.environment.files.facts(&file.path).is_none_or(|facts| facts.is_private)
    }

    /// Adds an entry for Capstan to a client's file, in a way that can be undone.
    ///
    /// # Errors
    /// If the file cannot be parsed or written; it is then unchanged.
    pub fn install(
        &self,
        file: EntryFile<'_>,
        way: &ClientConnection,
        mode: Mode,
    ) -> Result<Installed, AppError> {
        let EntryFile { client, path } = file;
        self.refuse_adopted(file)?;
        let name = path.display().to_string();
        let failed = |fault| self.failure(path, fault);
        let start = self.edits.start(path, &|text| take(client, &name, text)).map_err(failed)?;
        let text = start.base.clone().unwrap_or_default();
        let refused = |error| client_failure(path, &text, error);
        if presence(client, &name, &text).map_err(refused)? == Presence::Starts {
            return Ok(Installed::ByHand);
        }
        let new = put(client, &name, &text, way).map_err(refused)?;
        match mode {
            Mode::Try if start.now.as_deref() == Some(new.as_str()) => Ok(Installed::Already),
            Mode::Try if start.base.is_none() => Ok(Installed::Created),
            Mode::Try => Ok(Installed::Changed { backup: None }),
            Mode::Do => self.edits.put(path, start, &new).map_err(failed),
        }
    }

    /// Removes that entry.
    ///
    /// # Errors
    /// If the file cannot be parsed or written, or if the entry is not ours.
    pub fn uninstall(&self, file: EntryFile<'_>, mode: Mode) -> Result<Uninstalled, AppError> {
        let EntryFile { client, path } = file;
        self.refuse_adopted(file)?;
        let name = path.display().to_string();
        let failed = |fault| self.failure(path, fault);
        let known = self.edits.is_recorded(path).map_err(failed)?;
        let take_entry = |text: &str| {
            // An entry that is not recorded as ours is removed only if it starts Capstan.
            if !known && presence(client, &name, text)? == Presence::Other {
                return Err(ClientError::NotOurs);
            }
            take(client, &name, text)
        };
        self.edits.undo(path, &take_entry, mode).map_err(failed)
    }

    fn locate(&self, place: &ClientFile) -> PathBuf {
        let Environment { current_folder: here, home, shared_config, .. } = &*self.environment;
        let variable = |name| self.environment.filled_variable(name);
        match place.named {
            Some(Named::Folder(name, file)) if let Some(folder) = variable(name) => {
                return here.join(folder).join(file);
            }
            Some(Named::File(name)) if let Some(file) = variable(name) => {
                return here.join(file);
            }
            Some(Named::Folder(..) | Named::File(_)) | None => {}
        }
        let base = match place.base {
            Base::Home => home.clone(),
            Base::App if cfg!(target_os = "macos") => home.join(APPLICATION_SUPPORT),
            Base::Config | Base::App => shared_config.clone(),
            Base::Project => self.environment.workspace(),
            Base::Managed => CLAUDE_MANAGED.into(),
        };
        base.join(place.path)
    }

    /// Refuses a path that a link in a project leads outside the project.
    fn refuse_outside(&self, path: &Path) -> Result<(), AppError> {
        let files = &self.environment.files;
        let project = files.real_path(&self.environment.workspace());
        let existing = path.ancestors().find_map(|part| files.real_path(part).ok());
        let (Ok(project), Some(existing)) = (project, existing) else { return Ok(()) };
        let dangling = files.is_link(path) && files.facts(path).is_none();
        if existing.starts_with(&project) && !dangling {
            return Ok(());
        }
        let message = format!("{} is a link that leaves the project", path.display());
        Err(AppError::usage(message).hint("name the target of the link in your own configuration"))
    }

    fn failure(&self, path: &Path, fault: EditFault) -> AppError {
        match fault {
            EditFault::Refused(cause) => {
                client_failure(path, &self.text(path).unwrap_or_default(), cause)
            }
            EditFault::File(error) => error,
        }
    }
}

fn client_failure(path: &Path, text: &str, error: ClientError) -> AppError {
    let name = path.display().to_string();
    let hint = error.hint();
    if let ClientError::Broken(problem) = error {
        let file = SourceFile::new(name.clone(), Scope::User, text);
        let message = format!("{name} cannot be read, and is not changed");
        return AppError { message, hint, ..AppError::problems(vec![*problem], vec![file]) };
    }
    let message = format!("{error} ({name})");
    AppError { hint, ..AppError::config(message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, environment};

    const FILE: &str = "/home/me/.cursor/mcp.json";

    /// Edits without a record of earlier changes.
    struct Edits(Arc<FakeFiles>);

    impl ReversibleEdits for Edits {
        fn read(&self, path: &Path) -> Result<Option<String>, AppError> {
            Ok(self.0.text(path.to_str().unwrap()))
        }

        fn is_recorded(&self, _: &Path) -> Result<bool, EditFault> {
            Ok(false)
        }

        fn backup_path(&self, path: &Path) -> PathBuf {
            path.with_extension("backup")
        }

        fn backup(&self, _: &Path) -> Result<Option<String>, EditFault> {
            Ok(None)
        }

        fn start(&self, path: &Path, _: TakeEntry<'_>) -> Result<EditStart, EditFault> {
            let now = self.read(path).map_err(EditFault::File)?;
            Ok(EditStart { base: now.clone(), now })
        }

        fn put(&self, path: &Path, start: EditStart, new: &str) -> Result<Installed, EditFault> {
            crate::Files::write(&*self.0, path, new.as_bytes()).map_err(EditFault::File)?;
            Ok(match start.base {
                Some(_) => Installed::Changed { backup: None },
                None => Installed::Created,
            })
        }

        fn undo(
            &self,
            path: &Path,
            take: TakeEntry<'_>,
            _: Mode,
        ) -> Result<Uninstalled, EditFault> {
            let Some(text) = self.read(path).map_err(EditFault::File)? else {
                return Ok(Uninstalled::Nothing);
            };
            match take(&text).map_err(EditFault::Refused)? {
                Some(_) => Ok(Uninstalled::TakenOut { backup: None }),
                None => Ok(Uninstalled::Nothing),
            }
        }
    }

    fn clients(files: &Arc<FakeFiles>) -> Clients {
        let environment = Arc::new(environment(Arc::clone(files)));
        Clients { environment, edits: Arc::new(Edits(Arc::clone(files))) }
    }

    fn cursor() -> EntryFile<'static> {
        EntryFile { client: Client::Cursor, path: Path::new(FILE) }
    }

    fn way() -> ClientConnection {
        ClientConnection::Stdio {
            command: "/usr/bin/capstan".to_owned(),
            args: vec!["serve".to_owned()],
        }
    }

    #[test]
    fn a_dry_run_writes_nothing_and_says_what_would_happen() {
        let files = FakeFiles::with(&[]);
        let installed = clients(&files).install(cursor(), &way(), Mode::Try).unwrap();
        assert_eq!((installed, files.text(FILE)), (Installed::Created, None));
    }

    #[test]
    fn an_entry_that_starts_capstan_is_left_alone() {
        let files = FakeFiles::with(&[]);
        let clients = clients(&files);
        assert_eq!(clients.install(cursor(), &way(), Mode::Do).unwrap(), Installed::Created);
        assert_eq!(clients.install(cursor(), &way(), Mode::Do).unwrap(), Installed::ByHand);
    }

    #[test]
    fn an_entry_that_does_not_start_capstan_is_not_removed() {
        let other = r#"{"mcpServers": {"capstan": {"command": "/usr/bin/other"}}}"#;
        let files = FakeFiles::with(&[(FILE, other)]);
        assert!(clients(&files).uninstall(cursor(), Mode::Do).is_err());
        assert_eq!(files.text(FILE).as_deref(), Some(other));
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_not_changed_and_its_error_is_shown() {
        let files = FakeFiles::with(&[(FILE, "{")]);
        let error = clients(&files).install(cursor(), &way(), Mode::Do).unwrap_err();
        assert!(error.message.ends_with("cannot be read, and is not changed"), "{error:?}");
        assert_eq!((error.problems.len(), files.text(FILE).as_deref()), (1, Some("{")));
    }

    #[test]
    fn a_link_out_of_the_project_is_neither_read_nor_written() {
        let files = FakeFiles::with(&[("/home/me/project/.git/HEAD", ""), ("/etc/mcp.json", "{}")]);
        let clients = clients(&files);
        files.link("/home/me/project/.cursor/mcp.json", "/etc/mcp.json");
        assert_eq!(clients.files(Client::Cursor, Scope::Project), Vec::<PathBuf>::new());
        let error = clients.target(Client::Cursor, Scope::Project).unwrap_err();
        assert!(error.message.ends_with("is a link that leaves the project"), "{}", error.message);
    }

    #[test]
    fn only_a_file_that_others_can_read_is_not_private() {
        let files = FakeFiles::with(&[("/open", ""), ("/closed", "")]);
        files.open_to_others("/open");
        let clients = clients(&files);
        for (path, expected) in [("/open", false), ("/closed", true), ("/new", true)] {
            let file =
                ConfigFile { path: path.into(), scope: Scope::User, exists: true, dialect: None };
            assert_eq!(clients.is_private(&file), expected, "{path}");
        }
    }
}
