//! Moves a client's servers to Capstan, and moves them back.
//!
//! An adoption changes three kinds of files, each atomically: first the record in the state folder,
//! then Capstan's own file, which gets the servers, then the client's files, which lose them and get
//! the entry for Capstan. A return goes the other way.
//!
//! **Invariant:** the client's files lack a server only while Capstan's file has it. After a kill at
//! any moment, the record has everything that both directions need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capstan_config::Scope;
use capstan_config::edit::EditError;
use capstan_import::Client;
use capstan_import::clients::{
    ClientConnection, ClientError, Presence, ServerKey, Use, presence, put_back, replace, take,
};
use capstan_import::servers::Plan;
use serde::Serialize;

use super::adoptions::{AdoptedFile, Adoption, without};
use super::{Clients, EditStart, Installed, Mode, Uninstalled, client_failure};
use crate::{AppError, Approval, ConfigFile, Configs};

/// A client's file, as it would be without an adoption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptableFile {
    /// The file.
    pub path: PathBuf,
    /// Its text without our changes.
    pub text: String,
    /// False if nothing is written to it.
    pub is_written: bool,
}

/// The servers of a client that move to Capstan.
pub struct ClientMove<'a> {
    /// The client.
    pub client: Client,
    /// The client's file that gets the entry for Capstan.
    pub entry: &'a Path,
    /// The transport of that entry.
    pub way: &'a ClientConnection,
    /// The servers to remove, by file.
    pub taken: BTreeMap<PathBuf, Vec<ServerKey>>,
    /// Capstan's file that gets the servers.
    pub config: &'a ConfigFile,
    /// The text of that file that the plan was made for.
    pub config_text: &'a str,
    /// The plan.
    pub plan: &'a Plan,
    /// The names of all moved servers in that file, also of those that it has already.
    pub used: Vec<String>,
}

/// The result of an adoption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// The changes of the client's files.
    pub files: Vec<(PathBuf, Installed)>,
}

/// The result of a return.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoneAdoption {
    /// The changes of the client's files.
    pub files: Vec<(PathBuf, Uninstalled)>,
    /// Capstan's file.
    pub config: PathBuf,
    /// The change of that file.
    pub config_change: Uninstalled,
    /// Servers that stay in it, because another adopted client uses them.
    pub kept: Vec<String>,
}

/// A planned change of a client's file.
struct FileChange {
    path: PathBuf,
    start: EditStart,
    new: String,
}

// === impl Clients ===

impl Clients {
    /// The files of a client whose servers can move, as they would be without an adoption.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn adoptable(
        &self,
        client: Client,
        scope: Scope,
        entry: &Path,
    ) -> Result<Vec<AdoptableFile>, AppError> {
        let former = self.adoption(client, entry)?;
        let writable: Vec<PathBuf> = client
            .places(scope)
            .iter()
            .filter(|place| place.for_use == Use::Both)
            .map(|place| self.locate(place))
            .collect();
        let mut all = Vec::new();
        for path in self.files(client, scope) {
            let start = self.start_over(client, &path, former.as_ref())?;
            let is_written = writable.contains(&path);
            all.push(AdoptableFile { text: start.base.unwrap_or_default(), is_written, path });
        }
        Ok(all)
    }

    /// Moves servers: Capstan's file gets them, and the client's file an entry for Capstan.
    ///
    /// # Errors
    /// If a file cannot be parsed or written. All files are then as they were.
    pub fn adopt(
        &self,
        configs: &Configs,
        moving: &ClientMove<'_>,
        mode: Mode,
    ) -> Result<Adopted, AppError> {
        let ClientMove { client, config, config_text, .. } = *moving;
        let former = self.adoption(client, moving.entry)?;
        let changes = self.changes(moving, former.as_ref())?;
        let after = moving.plan.apply(config_text)?;
        if mode == Mode::Try {
            let tried = |change: &FileChange| (change.path.clone(), change.tried());
            return Ok(Adopted { files: changes.iter().map(tried).collect() });
        }
        let record = self.record(moving, former.as_ref(), &after)?;
        let records = self.adoptions()?;
        let mut next = records.clone();
        next.retain(|adoption| !adoption.is_of(client, moving.entry));
        next.push(record);
        self.save_adoptions(&next)?;
        let written = write_config(configs, config, config_text, &after);
        let done = written.and_then(|()| {
            let done = self.write_changes(configs, moving, &changes);
            done.inspect_err(|_| {
                // The client's files are as they were, so ours must be, too.
                let before = config.exists.then_some(config_text);
                drop(restore_config(configs, config, &after, before));
            })
        });
        match done {
            Ok(files) => Ok(Adopted { files }),
            Err(error) => {
                self.save_adoptions(&records)?;
                Err(error)
            }
        }
    }

    /// Moves the servers of an adoption back.
    ///
    /// # Errors
    /// If there is no adoption, or a file cannot be parsed or written.
    pub fn undo_adoption(
        &self,
        configs: &Configs,
        client: Client,
        entry: &Path,
        mode: Mode,
    ) -> Result<UndoneAdoption, AppError> {
        let Some(adoption) = self.adoption(client, entry)? else {
            let title = client.title();
            let message = format!("the servers of {title} were not moved to Capstan");
            return Err(AppError::not_found(message)
                .hint(format!("`capstan uninstall {}` removes an entry", client.as_str())));
        };
        // Nothing is changed if one of the files cannot be.
        let mut files = self.undo_files(configs, client, &adoption, Mode::Try)?;
        let others: Vec<Adoption> = self.other_adoptions(client, entry)?;
        let is_used = |name: &&String| others.iter().any(|other| other.uses(&adoption, name));
        let (kept, free): (Vec<String>, Vec<String>) =
            adoption.added.iter().cloned().partition(|name| is_used(&name));
        let scope = if files_of_project(configs, &adoption) { Scope::Project } else { Scope::User };
        let config = ConfigFile { path: adoption.config.clone(), ..configs.target(Some(scope)) };
        let text = self.environment.files.read(&config.path)?;
        let before = match &text {
            None => None,
            Some(now) if kept.is_empty() => adoption.before(now)?,
            Some(now) => Some(without(now, &free)?),
        };
        let config_change = match (&text, &before) {
            (None, _) => Uninstalled::Nothing,
            (Some(now), Some(before)) if now == before => Uninstalled::Nothing,
            (Some(_), None) => Uninstalled::Removed,
            (Some(now), Some(_)) if *now == adoption.after && kept.is_empty() => {
                Uninstalled::Restored
            }
            (Some(_), Some(_)) => Uninstalled::TakenOut { backup: None },
        };
        if mode == Mode::Do {
            files = self.undo_files(configs, client, &adoption, mode)?;
            if let (Some(now), true) = (&text, text != before) {
                restore_config(configs, &config, now, before.as_deref())?;
            }
            self.save_adoptions(&handed_over(others, &adoption, &kept))?;
        }
        Ok(UndoneAdoption { files, config: adoption.config, config_change, kept })
    }

    fn adoption(&self, client: Client, entry: &Path) -> Result<Option<Adoption>, AppError> {
        let all = self.adoptions()?;
        Ok(all.into_iter().find(|adoption| adoption.is_of(client, entry)))
    }

    fn other_adoptions(&self, client: Client, entry: &Path) -> Result<Vec<Adoption>, AppError> {
        let mut all = self.adoptions()?;
        all.retain(|adoption| !adoption.is_of(client, entry));
        Ok(all)
    }

    /// The planned changes of the client's files.
    fn changes(
        &self,
        moving: &ClientMove<'_>,
        former: Option<&Adoption>,
    ) -> Result<Vec<FileChange>, AppError> {
        let ClientMove { client, entry, way, .. } = *moving;
        let others = moving.taken.keys().filter(|path| *path != entry);
        let mut changes = Vec::new();
        for path in std::iter::once(entry).chain(others.map(PathBuf::as_path)) {
            let start = self.start_over(client, path, former)?;
            let base = start.base.clone().unwrap_or_default();
            let taken = moving.taken.get(path).map(Vec::as_slice).unwrap_or_default();
            let (name, way) = (path.display().to_string(), (path == entry).then_some(way));
            let new = replace(client, &name, &base, taken, way)
                .map_err(|error| client_failure(path, &base, error))?;
            changes.push(FileChange { path: path.to_owned(), start, new });
        }
        Ok(changes)
    }

    fn record(
        &self,
        moving: &ClientMove<'_>,
        former: Option<&Adoption>,
        after: &str,
    ) -> Result<Adoption, AppError> {
        let ClientMove { client, entry, config, config_text, .. } = *moving;
        let file = |path: &Path| AdoptedFile {
            path: path.to_owned(),
            taken: moving.taken.get(path).cloned().unwrap_or_default(),
            has_entry: path == entry && !self.has_own_entry(client, path, former),
        };
        let others = moving.taken.keys().filter(|path| *path != entry);
        let files = std::iter::once(entry).chain(others.map(PathBuf::as_path)).map(file);
        let mut added = former.map(|former| former.added.clone()).unwrap_or_default();
        added.extend(moving.plan.names().map(str::to_owned));
        let before = match former {
            Some(former) if config.exists => former.before(config_text)?,
            Some(_) | None => config.exists.then(|| config_text.to_owned()),
        };
        Ok(Adoption {
            client: client.as_str().to_owned(),
            entry: entry.to_owned(),
            files: files.collect(),
            config: config.path.clone(),
            before,
            after: after.to_owned(),
            added,
            used: moving.used.clone(),
        })
    }

    /// True if the client's file starts Capstan without our doing.
    fn has_own_entry(&self, client: Client, path: &Path, former: Option<&Adoption>) -> bool {
        let start = self.start_over(client, path, former);
        let base = start.ok().and_then(|start| start.base).unwrap_or_default();
        let present = presence(client, &path.display().to_string(), &base);
        present.is_ok_and(|present| present == Presence::Starts)
    }

    /// Writes the changes; after a failure, the earlier ones are reverted.
    fn write_changes(
        &self,
        configs: &Configs,
        moving: &ClientMove<'_>,
        changes: &[FileChange],
    ) -> Result<Vec<(PathBuf, Installed)>, AppError> {
        let mut done: Vec<(PathBuf, Installed)> = Vec::new();
        for change in changes {
            let FileChange { path, start, new } = change;
            match self.edits.put(path, start.clone(), new) {
                Ok(installed) => {
                    approve_again(configs, path, start.now.as_deref(), new)?;
                    done.push((path.clone(), installed));
                }
                Err(fault) => {
                    for earlier in changes.iter().take(done.len()).rev() {
                        self.revert(moving.client, earlier);
                    }
                    return Err(self.failure(path, fault));
                }
            }
        }
        Ok(done)
    }

    /// Reverts a change that was just made. A failure leaves the backup beside the file.
    fn revert(&self, client: Client, change: &FileChange) {
        let FileChange { path, start, new } = change;
        match &start.now {
            // The file had an earlier change of ours, which is made again.
            Some(now) if start.now != start.base => {
                let back = EditStart { now: Some(new.clone()), base: start.base.clone() };
                drop(self.edits.put(path, back, now));
            }
            Some(_) | None => {
                let name = path.display().to_string();
                drop(self.edits.undo(path, &|text| take(client, &name, text), Mode::Do));
            }
        }
    }

    fn undo_files(
        &self,
        configs: &Configs,
        client: Client,
        adoption: &Adoption,
        mode: Mode,
    ) -> Result<Vec<(PathBuf, Uninstalled)>, AppError> {
        let mut done = Vec::new();
        for file in &adoption.files {
            let path = file.path.as_path();
            let now = self.edits.read(path)?;
            let undone = self.edits.undo(path, &|text| self.without_us(client, file, text), mode);
            let undone = undone.map_err(|fault| self.failure(path, fault))?;
            if mode == Mode::Do
                && let Some(new) = self.edits.read(path)?
            {
                approve_again(configs, path, now.as_deref(), &new)?;
            }
            done.push((file.path.clone(), undone));
        }
        Ok(done)
    }

    /// The starting point of a change: the text of a file without our earlier changes.
    fn start_over(
        &self,
        client: Client,
        path: &Path,
        former: Option<&Adoption>,
    ) -> Result<EditStart, AppError> {
        let name = path.display().to_string();
        let start = match former.and_then(|former| former.file(path)) {
            Some(file) => self.edits.start(path, &|text| self.without_us(client, file, text)),
            None => self.edits.start(path, &|text| take(client, &name, text)),
        };
        start.map_err(|fault| self.failure(path, fault))
    }

    /// A text that others have changed since, without our entry and with the servers.
    fn without_us(
        &self,
        client: Client,
        file: &AdoptedFile,
        text: &str,
    ) -> Result<Option<String>, ClientError> {
        let name = file.path.display().to_string();
        let alone = if file.has_entry { take(client, &name, text)? } else { None };
        let original = self.edits.backup(&file.path).unwrap_or_default();
        let Some(original) = original else {
            // Without a backup the servers would be lost, unless nothing was changed yet.
            let is_changed = alone.is_some() && !file.taken.is_empty();
            return if is_changed { Err(ClientError::Unsafe) } else { Ok(alone) };
        };
        let base = alone.as_deref().unwrap_or(text);
        let back = put_back(client, &name, base, &file.taken, &original)?;
        Ok((back != text).then_some(back))
    }
}

// === impl Adoption ===

impl Adoption {
    /// True if this adoption uses a server that another one has added.
    fn uses(&self, other: &Self, name: &str) -> bool {
        self.config == other.config && self.used.iter().any(|used| used == name)
    }
}

// === impl FileChange ===

impl FileChange {
    /// The result that the change would have.
    fn tried(&self) -> Installed {
        match &self.start.now {
            Some(now) if *now == self.new => Installed::Already,
            Some(_) => Installed::Changed { backup: None },
            None => Installed::Created,
        }
    }
}

/// Passes servers on that other adoptions use, so that the last of them removes them.
fn handed_over(mut others: Vec<Adoption>, gone: &Adoption, kept: &[String]) -> Vec<Adoption> {
    for name in kept {
        let user = others.iter_mut().find(|other| other.uses(gone, name));
        if let Some(user) = user.filter(|user| !user.added.contains(name)) {
            user.added.push(name.clone());
        }
    }
    others
}

/// True if Capstan's file of an adoption is the project's.
fn files_of_project(configs: &Configs, adoption: &Adoption) -> bool {
    configs.target(Some(Scope::Project)).path == adoption.config
}

/// Replaces the text of Capstan's file, which must still be `now`.
fn write_config(
    configs: &Configs,
    config: &ConfigFile,
    now: &str,
    new: &str,
) -> Result<(), AppError> {
    let change =
        |text: &str| if text == now { Ok(new.to_owned()) } else { Err(EditError::FileRaced) };
    configs.edit(config, &change)
}

/// Restores Capstan's file; removes it if it did not exist.
fn restore_config(
    configs: &Configs,
    config: &ConfigFile,
    now: &str,
    before: Option<&str>,
) -> Result<(), AppError> {
    match before {
        Some(before) => write_config(configs, config, now, before),
        None => configs.environment.files.delete(&config.path),
    }
}

/// Approves the new text of a project's file if its old one was approved.
fn approve_again(
    configs: &Configs,
    path: &Path,
    now: Option<&str>,
    new: &str,
) -> Result<(), AppError> {
    let Some(now) = now else { return Ok(()) };
    if configs.approvals.status(path, now)? == Approval::Approved {
        configs.approvals.approve(path, new, configs.now())?;
    }
    Ok(())
}
