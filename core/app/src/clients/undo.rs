//! Moves the servers of an adopted client back.

use std::path::{Path, PathBuf};

use capstan_config::Scope;
use capstan_import::Client;
use capstan_import::clients::{ClientError, lacking, put_back, take};
use serde::Serialize;

use super::adopt::{approve_again, restore_config};
use super::adoptions::{AdoptedFile, Adoption, ConfigRecord, Records, without};
use super::{Clients, Mode, Uninstalled};
use crate::{AppError, ConfigFile, Configs};

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

/// The planned change of Capstan's file.
struct ConfigReturn {
    /// The text now; `None` if there is no file.
    now: Option<String>,
    /// The text after the return; `None` if there is no file then.
    new: Option<String>,
    change: Uninstalled,
    /// Servers that stay.
    kept: Vec<String>,
    /// The record of the file for the other adoptions; `None` if there are none.
    record: Option<ConfigRecord>,
}

// === impl Clients ===

impl Clients {
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
        let undo = || {
            let records = self.records()?;
            let Some(adoption) = records.adoption(client, entry) else {
                return Err(not_adopted(client));
            };
            // Nothing is changed if one of the files cannot be.
            let mut files = self.undo_files(configs, client, adoption, Mode::Try)?;
            let back = self.config_return(&records, client, adoption)?;
            if mode == Mode::Do {
                files = self.undo_files(configs, client, adoption, mode)?;
                if let (Some(now), true) = (&back.now, back.now != back.new) {
                    let config = config_of(configs, adoption);
                    restore_config(configs, &config, now, back.new.as_deref())?;
                }
                self.change_records(|records| {
                    records.hand_over(client, adoption, &back.kept);
                    records.set_adoption(client, entry, None);
                    records.set_config(&adoption.config, back.record.clone());
                })?;
            }
            let ConfigReturn { change: config_change, kept, .. } = back;
            Ok(UndoneAdoption { files, config: adoption.config.clone(), config_change, kept })
        };
        match mode {
            Mode::Try => undo(),
            Mode::Do => self.alone(undo),
        }
    }

    fn config_return(
        &self,
        records: &Records,
        client: Client,
        adoption: &Adoption,
    ) -> Result<ConfigReturn, AppError> {
        let path = &adoption.config;
        let others = records.others(client, &adoption.entry, path);
        let is_used = |name: &String| others.iter().any(|other| other.uses(name));
        let (kept, free): (Vec<String>, Vec<String>) =
            adoption.added.iter().cloned().partition(is_used);
        let mut limits = adoption.limits.clone();
        limits.retain(|limit| !others.iter().any(|other| other.demands(limit)));
        let now = self.environment.files.read(path)?;
        let bare = records.bare(path, now.as_deref())?;
        let new = match &now {
            Some(now) if !others.is_empty() => Some(without(now, &free, &limits)?),
            Some(_) | None => bare.clone(),
        };
        let is_untouched = now.as_ref() == records.config(path).map(|record| &record.after);
        let change = match (&now, &new) {
            (None, _) => Uninstalled::Nothing,
            (Some(now), Some(new)) if now == new => Uninstalled::Nothing,
            (Some(_), None) => Uninstalled::Removed,
            (Some(_), Some(_)) if is_untouched && others.is_empty() => Uninstalled::Restored,
            (Some(_), Some(_)) => Uninstalled::TakenOut { backup: None },
        };
        let record = (!others.is_empty()).then(|| ConfigRecord {
            path: path.clone(),
            before: bare,
            after: new.clone().unwrap_or_default(),
        });
        Ok(ConfigReturn { now, new, change, kept, record })
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

    /// A text that others have changed since, without our entry and with the servers; `None` if it
    /// is so already.
    pub(super) fn without_us(
        &self,
        client: Client,
        file: &AdoptedFile,
        text: &str,
    ) -> Result<Option<String>, ClientError> {
        let name = file.path.display().to_string();
        let alone = if file.has_entry { take(client, &name, text)? } else { None };
        let base = alone.as_deref().unwrap_or(text);
        let lacking = lacking(client, &name, base, &file.taken)?;
        if lacking.is_empty() {
            return Ok(alone);
        }
        // Without a backup the servers would be lost.
        let original = self.edits.backup(&file.path).unwrap_or_default();
        let original = original.ok_or_else(|| ClientError::no_backup(&lacking))?;
        put_back(client, &name, base, &lacking, &original).map(Some)
    }
}

// === impl Records ===

impl Records {
    /// Passes servers and limits on that other adoptions use, so that the last of them removes them.
    fn hand_over(&mut self, client: Client, gone: &Adoption, kept: &[String]) {
        let at = self.adoptions.iter().position(|adoption| adoption.is_of(client, &gone.entry));
        let others = self.adoptions.iter_mut().enumerate();
        let mut others: Vec<(usize, &mut Adoption)> =
            others.filter(|(_, other)| other.config == gone.config).collect();
        others.retain(|(index, _)| Some(*index) != at);
        for name in kept {
            let user = others.iter_mut().find(|(_, other)| other.uses(name));
            if let Some((_, user)) = user.filter(|(_, user)| !user.added.contains(name)) {
                user.added.push(name.clone());
            }
        }
        for limit in &gone.limits {
            // The earliest adoption knows the value that the file had before all of them.
            for (_, later) in others.iter_mut().filter(|(index, _)| Some(*index) > at) {
                for own in later.limits.iter_mut().filter(|own| own.is_same_key(limit)) {
                    own.clone_from(limit);
                }
            }
        }
    }
}

fn not_adopted(client: Client) -> AppError {
    let title = client.title();
    let message = format!("the servers of {title} were not moved to Capstan");
    let hint = format!("`capstan uninstall {}` removes an entry", client.as_str());
    AppError::not_found(message).hint(hint)
}

/// Capstan's file of an adoption.
fn config_of(configs: &Configs, adoption: &Adoption) -> ConfigFile {
    let project = configs.target(Some(Scope::Project));
    let target =
        if project.path == adoption.config { project } else { configs.target(Some(Scope::User)) };
    ConfigFile { path: adoption.config.clone(), ..target }
}
