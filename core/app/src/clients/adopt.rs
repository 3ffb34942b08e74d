//! Moves a client's servers to Capstan.
//!
//! An adoption changes three kinds of files, each atomically: first the record in the state folder,
//! then Capstan's own file, which gets the servers, then the client's files, which lose them and get
//! the entry for Capstan. A return goes the other way; `undo` has it.
//!
//! **Invariant:** the client's files lack a server only while Capstan's file has it. After a kill at
//! any moment, the record has everything that both directions need.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capstan_config::Scope;
use capstan_config::edit::EditError;
use capstan_import::Client;
use capstan_import::clients::{ClientConnection, Presence, ServerKey, presence, replace, take};
use capstan_import::servers::Plan;
use serde::Serialize;

use super::adoptions::{AdoptedFile, Adoption, ConfigRecord, Records, without};
use super::{Clients, EditStart, Installed, Mode, client_failure};
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
    /// Servers of an earlier adoption that the client has again.
    pub returned: Vec<String>,
}

/// A planned change of a client's file.
struct FileChange {
    path: PathBuf,
    start: EditStart,
    new: String,
}

/// A planned change of Capstan's file.
struct ConfigChange {
    /// The text now; `None` if there is no file.
    now: Option<String>,
    new: String,
    /// Servers of an earlier adoption that are removed.
    returned: Vec<String>,
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
        let former = self.records()?.adoption(client, entry).cloned();
        let writable = self.writable(client, scope);
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
        match mode {
            Mode::Try => {
                let records = self.records()?;
                let former = records.adoption(moving.client, moving.entry);
                refuse_other_config(moving, former)?;
                let changes = self.changes(moving, former)?;
                let ConfigChange { returned, .. } = self.config_change(moving, &records)?;
                let tried = |change: &FileChange| (change.path.clone(), change.tried());
                Ok(Adopted { files: changes.iter().map(tried).collect(), returned })
            }
            Mode::Do => self.alone(|| self.adopt_alone(configs, moving)),
        }
    }

    fn adopt_alone(&self, configs: &Configs, moving: &ClientMove<'_>) -> Result<Adopted, AppError> {
        let ClientMove { client, entry, config, .. } = *moving;
        let records = self.records()?;
        let former = records.adoption(client, entry);
        refuse_other_config(moving, former)?;
        let changes = self.changes(moving, former)?;
        let change = self.config_change(moving, &records)?;
        let (adoption, former_config) =
            (self.record(moving, former, &change), records.config(&config.path));
        let config_record = ConfigRecord {
            path: config.path.clone(),
            before: records.bare(&config.path, change.now.as_deref())?,
            after: change.new.clone(),
        };
        self.change_records(|records| {
            records.set_adoption(client, entry, Some(adoption.clone()));
            records.set_config(&config.path, Some(config_record.clone()));
        })?;
        let ConfigChange { now, new, returned } = change;
        let written = write_config(configs, config, now.as_deref().unwrap_or_default(), &new);
        let done = written.and_then(|()| self.write_changes(configs, moving, &changes));
        match done {
            Ok(files) => Ok(Adopted { files, returned }),
            Err(error) => {
                // The client's files are as they were, so ours must be, too.
                drop(restore_config(configs, config, &new, now.as_deref()));
                self.change_records(|records| {
                    records.set_adoption(client, entry, former.cloned());
                    records.set_config(&config.path, former_config.cloned());
                })?;
                Err(error)
            }
        }
    }

    /// The planned changes of the client's files.
    fn changes(
        &self,
        moving: &ClientMove<'_>,
        former: Option<&Adoption>,
    ) -> Result<Vec<FileChange>, AppError> {
        let ClientMove { client, entry, way, .. } = *moving;
        let mut changes = Vec::new();
        for path in paths(moving, former) {
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

    /// The planned change of Capstan's file: it gets the new servers, and loses those of an earlier
    /// adoption that no client uses any more.
    fn config_change(
        &self,
        moving: &ClientMove<'_>,
        records: &Records,
    ) -> Result<ConfigChange, AppError> {
        let ClientMove { client, entry, config, config_text, plan, .. } = *moving;
        let now = self.environment.files.read(&config.path)?;
        let text = now.as_deref().unwrap_or_default();
        let is_new = |name: &String| plan.names().any(|new| new == name);
        let relies_on_text = !plan.limits.is_empty() || !moving.used.iter().all(is_new);
        if text != config_text && relies_on_text {
            return Err(raced(config));
        }
        let others = records.others(client, entry, &config.path);
        let is_used = |name: &String| {
            moving.used.contains(name) || others.iter().any(|other| other.uses(name))
        };
        let former = records.adoption(client, entry);
        let mut returned = former.map(|former| former.added.clone()).unwrap_or_default();
        returned.retain(|name| !is_used(name));
        let new = without(&plan.apply(text)?, &returned, &[])?;
        Ok(ConfigChange { now, new, returned })
    }

    fn record(
        &self,
        moving: &ClientMove<'_>,
        former: Option<&Adoption>,
        change: &ConfigChange,
    ) -> Adoption {
        let ClientMove { client, entry, config, plan, .. } = *moving;
        let file = |path: &Path| AdoptedFile {
            path: path.to_owned(),
            taken: moving.taken.get(path).cloned().unwrap_or_default(),
            has_entry: path == entry && !self.has_own_entry(client, path, former),
        };
        let mut added = former.map(|former| former.added.clone()).unwrap_or_default();
        added.retain(|name| !change.returned.contains(name));
        added.extend(plan.names().map(str::to_owned));
        let mut limits = former.map(|former| former.limits.clone()).unwrap_or_default();
        for limit in &plan.former_limits {
            if !limits.iter().any(|known| known.is_same_key(limit)) {
                limits.push(limit.clone());
            }
        }
        Adoption {
            client: client.as_str().to_owned(),
            entry: entry.to_owned(),
            files: paths(moving, former).into_iter().map(file).collect(),
            config: config.path.clone(),
            added,
            used: moving.used.clone(),
            limits,
        }
    }

    /// True if the client's file starts Capstan without our doing.
    fn has_own_entry(&self, client: Client, path: &Path, former: Option<&Adoption>) -> bool {
        let start = self.start_over(client, path, former);
        let base = start.ok().and_then(|start| start.base).unwrap_or_default();
        let present = presence(client, &path.display().to_string(), &base);
        present.is_ok_and(|present| present == Presence::Starts)
    }

    /// Writes the changes; after a failure, those that were made are reverted.
    fn write_changes(
        &self,
        configs: &Configs,
        moving: &ClientMove<'_>,
        changes: &[FileChange],
    ) -> Result<Vec<(PathBuf, Installed)>, AppError> {
        let mut done: Vec<(PathBuf, Installed)> = Vec::new();
        for change in changes {
            let FileChange { path, start, new } = change;
            let put = self.edits.put(path, start.clone(), new);
            let put = put.map_err(|fault| self.failure(path, fault)).and_then(|installed| {
                done.push((path.clone(), installed));
                approve_again(configs, path, start.now.as_deref(), new)
            });
            if let Err(error) = put {
                for made in changes.iter().take(done.len()).rev() {
                    self.revert(configs, moving.client, made);
                }
                return Err(error);
            }
        }
        Ok(done)
    }

    /// Reverts a change that was just made. A failure leaves the backup beside the file.
    fn revert(&self, configs: &Configs, client: Client, change: &FileChange) {
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
        if let Some(now) = &start.now {
            drop(approve_again(configs, path, Some(new), now));
        }
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

/// The client's files that an adoption changes: first the one with the entry. Files that only an
/// earlier adoption has changed are among them, as they get their servers back.
fn paths<'m>(moving: &'m ClientMove<'_>, former: Option<&'m Adoption>) -> Vec<&'m Path> {
    let mut all = vec![moving.entry];
    let earlier = former.into_iter().flat_map(|former| &former.files).map(|file| &file.path);
    for path in moving.taken.keys().chain(earlier) {
        if !all.contains(&path.as_path()) {
            all.push(path);
        }
    }
    all
}

/// Refuses to move servers whose client's file was adopted for another file of Capstan.
fn refuse_other_config(moving: &ClientMove<'_>, former: Option<&Adoption>) -> Result<(), AppError> {
    let ClientMove { client, entry, config, .. } = *moving;
    let Some(former) = former.filter(|former| former.config != config.path) else { return Ok(()) };
    let (entry, other) = (entry.display(), former.config.display());
    let message = format!("the servers of {entry} were moved to {other} before");
    Err(AppError::usage(message)
        .hint(format!("`capstan adopt {} --undo` moves them back first", client.as_str())))
}

fn raced(config: &ConfigFile) -> AppError {
    let error = AppError::from(EditError::FileRaced);
    AppError { message: format!("{} ({})", error.message, config.path.display()), ..error }
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

/// Restores Capstan's file, which must still be `now`; removes it if it did not exist.
pub(super) fn restore_config(
    configs: &Configs,
    config: &ConfigFile,
    now: &str,
    before: Option<&str>,
) -> Result<(), AppError> {
    match before {
        Some(before) => write_config(configs, config, now, before),
        None if configs.environment.files.remove(&config.path, now)? => Ok(()),
        None => Err(raced(config)),
    }
}

/// Approves the new text of a project's file if its old one was approved.
pub(super) fn approve_again(
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
