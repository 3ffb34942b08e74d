//! Implements the ports of the application layer: files, state, the audit log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_app::{
    AppError, Approval, AuditMark, AuditQuery, AuditRow, AuditWhole, Change, Check, ConfigFile,
    ErrorKind, Host, NameCache, Selection, Setup,
};
use capstan_config::edit::EditError;
use capstan_config::{Dialect, Scope, SourceFile, Surroundings};
use capstan_files::{Approvals, ApprovalsError, EditFileError, FileError, MAX_SIZE};
use capstan_hub::Hub;
use capstan_hub::ports::{BoxFuture, Clock};
use capstan_import::AllDialects;
use capstan_mcp::Others;
use capstan_model::{Kind, ServerName};

use crate::approvals;
use crate::assemble::{self, Approve};
use crate::audit;

use crate::clock::SystemClock;
use crate::demo;
use crate::doctor;
use crate::named::{unknown_dialect, without_repeats};
use crate::packages;
use crate::world::World;

/// The configuration file of the machine's administrator.
const MANAGED: &str = "/etc/capstan/config.toml";

/// The name of a configuration file.
const CONFIG: &str = "config.toml";

/// The ports of the application layer, on this machine.
#[derive(Clone)]
pub(crate) struct LocalHost {
    pub(crate) world: Arc<World>,
}

// === impl LocalHost ===

impl LocalHost {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world }
    }

    pub(crate) fn user_file(&self) -> PathBuf {
        self.world.config().join(CONFIG)
    }

    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        self.world.project().map(|project| project.join(".capstan").join(CONFIG))
    }

    fn approvals(&self) -> Result<Approvals, AppError> {
        Approvals::open(self.world.state()).map_err(|error| approvals_failure(&error))
    }

    /// Reads one file; `None` if it does not exist.
    fn read(&self, file: &ConfigFile) -> Result<Option<SourceFile>, AppError> {
        let Some(text) = read_file(&file.path)? else { return Ok(None) };
        let approved = match file.scope {
            Scope::Project => {
                let status = self.approvals()?.status(&file.path, &text);
                let status = status.map_err(|error| approvals_failure(&error))?;
                status == capstan_files::Approval::Approved
            }
            Scope::Managed | Scope::Flag | Scope::User => true,
        };
        let path = file.path.display().to_string();
        let dialect = file.dialect;
        Ok(Some(SourceFile { approved, dialect, ..SourceFile::new(path, file.scope, text) }))
    }

    fn demo_source(&self) -> Result<SourceFile, AppError> {
        let program = std::env::current_exe().map_err(|error| {
            AppError::internal(format!(
                "the path of the capstan program cannot be determined: {error}"
            ))
        })?;
        let data = self.world.data().join("demo");
        let text = demo::config(&program, self.world.here(), &data);
        let dialect = Some(Dialect::Native);
        Ok(SourceFile { dialect, ..SourceFile::new("(demo)", Scope::Flag, text) })
    }

    pub(crate) fn sources(&self, selection: &Selection) -> Result<Vec<SourceFile>, AppError> {
        if selection.demo {
            return Ok(vec![self.demo_source()?]);
        }
        let mut sources = Vec::new();
        for file in without_repeats(self.files(selection)?) {
            if packages::is_package(&file) {
                sources.extend(packages::read(&file, self.world.cache())?);
                continue;
            }
            match self.read(&file)? {
                Some(source) => sources.push(source),
                // A file that was named explicitly must exist.
                None if file.scope == Scope::Flag => {
                    let path = file.path.display();
                    let message = format!("the configuration file {path} does not exist");
                    let hint = unknown_dialect(&file.path, self.world.here());
                    return Err(AppError { hint, ..AppError::config(message) });
                }
                None => {}
            }
        }
        Ok(sources)
    }

    /// Merges these files into a setup.
    pub(crate) fn put_together(&self, sources: Vec<SourceFile>, selection: &Selection) -> Setup {
        let workspace = self.world.workspace();
        let around = Surroundings {
            variable: &|name| self.world.variable(name),
            project_dir: &workspace.to_string_lossy(),
        };
        let mut loaded = capstan_config::load(&sources, &around, &AllDialects);
        let now = SystemClock::new().now();
        loaded.problems.extend(capstan_config::dead_rules(&loaded.config, now));
        if selection.no_mcp || loaded.environment.no_mcp {
            loaded.config.servers.clear();
        }
        Setup { loaded: Arc::new(loaded), files: sources.into() }
    }

    fn names_file(&self, kind: Kind) -> PathBuf {
        let file = match kind {
            Kind::Tool => "names.json",
            Kind::Resource => "resources.json",
            Kind::Prompt => "prompts.json",
        };
        self.world.cache().join(file)
    }

    fn audit_path(&self, setup: &Setup) -> PathBuf {
        audit::path(&self.world, &setup.loaded.config)
    }
}

impl Host for LocalHost {
    fn load(&self, selection: &Selection) -> Result<Setup, AppError> {
        Ok(self.put_together(self.sources(selection)?, selection))
    }

    fn hub(&self, setup: &Setup, selection: &Selection) -> Result<Hub, AppError> {
        let mut hub = assemble::hub(&self.world, &setup.loaded, approve(selection), Others::People)
            .map_err(|error| AppError::config(format!("{error:#}")))?;
        hub.approvals = Arc::new(approvals::at_the_command_line(&self.world, &setup.loaded));
        Ok(hub.build())
    }

    fn target(&self, scope: Option<Scope>, _: &Selection) -> Result<ConfigFile, AppError> {
        let project = self.project_file();
        let (scope, path) = match (scope, project) {
            (Some(Scope::Project) | None, Some(path)) => (Scope::Project, path),
            // A project file that is requested outside a project is created in the current folder.
            (Some(Scope::Project), None) => {
                (Scope::Project, self.world.here().join(".capstan").join(CONFIG))
            }
            (Some(Scope::User | Scope::Flag) | None, _) => (Scope::User, self.user_file()),
            (Some(Scope::Managed), _) => (Scope::Managed, MANAGED.into()),
        };
        Ok(config_file(scope, path, Some(Dialect::Native)))
    }

    fn edit(&self, file: &ConfigFile, change: Change<'_>) -> Result<(), AppError> {
        let (mut before, mut after) = (String::new(), String::new());
        let edited = capstan_files::edit(&file.path, |text| {
            let new = change(text)?;
            (before, after) = (text.to_owned(), new.clone());
            Ok(new)
        });
        let edited = edited.map_err(|error: EditFileError<EditError>| match error {
            EditFileError::Edit { cause, path } => {
                let failure = AppError::from(cause);
                let message = format!("{} ({})", failure.message, path.display());
                AppError { message, ..failure }
            }
            EditFileError::File(error) => file_failure(&error),
        })?;
        if file.scope != Scope::Project {
            return Ok(());
        }
        // A change by the user is approved if the file is new or the text before it was approved;
        // both texts are those read and written under the lock.
        let status = self.approvals()?.status(&file.path, &before);
        let known = status.map_err(|error| approvals_failure(&error))?;
        let was_approved = known == capstan_files::Approval::Approved;
        if was_approved || edited.change == capstan_files::Change::Created {
            self.approve(file, &after)?;
        }
        Ok(())
    }

    fn files(&self, selection: &Selection) -> Result<Vec<ConfigFile>, AppError> {
        let native = Some(Dialect::Native);
        let named = |name: &str| self.world.variable(name).filter(|value| !value.is_empty());
        let mut files = vec![config_file(Scope::Managed, MANAGED.into(), native)];
        // Within a scope, a later file takes precedence.
        let shared = named("MCP_CONFIG_PATH").map(PathBuf::from);
        let shared = shared.unwrap_or_else(|| self.world.shared_config().join("mcp/servers.json"));
        files.push(config_file(Scope::User, self.world.here().join(shared), None));
        files.push(config_file(Scope::User, self.user_file(), native));
        if let Some(project) = self.world.project() {
            files.push(config_file(Scope::Project, project.join(".mcp.json"), None));
            files.push(config_file(Scope::Project, project.join(".capstan").join(CONFIG), native));
        }
        let flags = named("CAPSTAN_CONFIG").into_iter().chain(selection.config.iter().cloned());
        files.extend(flags.map(|argument| {
            let (dialect, path) = Dialect::of_argument(&argument);
            config_file(Scope::Flag, self.world.here().join(path), dialect)
        }));
        Ok(files)
    }

    fn approval(&self, file: &ConfigFile) -> Result<Approval, AppError> {
        if file.scope != Scope::Project {
            return Ok(Approval::NotNeeded);
        }
        let Some(now) = read_file(&file.path)? else { return Ok(Approval::NotNeeded) };
        let status = self.approvals()?.status(&file.path, &now);
        Ok(match status.map_err(|error| approvals_failure(&error))? {
            capstan_files::Approval::Approved => Approval::Approved,
            capstan_files::Approval::Unknown => Approval::Unknown { now },
            capstan_files::Approval::Changed { approved_text } => {
                Approval::Changed { before: approved_text, now }
            }
        })
    }

    fn approve(&self, file: &ConfigFile, text: &str) -> Result<(), AppError> {
        let now = SystemClock::new().now();
        self.approvals()?.approve(&file.path, text, now).map_err(|error| approvals_failure(&error))
    }

    fn revoke(&self, file: &ConfigFile) -> Result<bool, AppError> {
        self.approvals()?.revoke(&file.path).map_err(|error| approvals_failure(&error))
    }

    fn audit(&self, setup: &Setup, query: &AuditQuery) -> Result<Vec<AuditRow>, AppError> {
        audit::query(&self.audit_path(setup), query)
    }

    fn audit_since(&self, setup: &Setup, mark: &mut AuditMark) -> Result<Vec<AuditRow>, AppError> {
        audit::since(&self.audit_path(setup), mark)
    }

    fn verify_audit(&self, setup: &Setup) -> Result<AuditWhole, AppError> {
        audit::verify(&self.audit_path(setup))
    }

    fn program(&self) -> String {
        let Ok(own) = std::env::current_exe() else { return "capstan".to_owned() };
        let path = self.world.variable("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).any(|folder| folder.join("capstan") == own);
        if in_path {
            return "capstan".to_owned();
        }
        shell_word(match own.strip_prefix(self.world.here()) {
            Ok(relative) => format!("./{}", relative.display()),
            Err(_) => own.display().to_string(),
        })
    }

    fn checks<'a>(&'a self, setup: &'a Setup, listen: SocketAddr) -> BoxFuture<'a, Vec<Check>> {
        Box::pin(doctor::checks(self, setup, listen))
    }
}

impl NameCache for LocalHost {
    fn remember(&self, kind: Kind, server: &ServerName, new: Vec<String>) {
        // Completions are a convenience; failing to store them is no error.
        drop(capstan_files::edit(&self.names_file(kind), |text| {
            let mut names: BTreeMap<String, Vec<String>> =
                serde_json::from_str(text).unwrap_or_default();
            names.insert(server.to_string(), new);
            serde_json::to_string(&names)
        }));
    }

    fn remembered(&self, kind: Kind) -> Vec<(String, Vec<String>)> {
        let text = read_file(&self.names_file(kind)).ok().flatten().unwrap_or_default();
        let names: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).unwrap_or_default();
        names.into_iter().collect()
    }
}

pub(crate) fn approve(selection: &Selection) -> Approve {
    if selection.trust_project { Approve::All } else { Approve::Approved }
}

/// Quotes a word for a shell, if needed.
fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:".contains(c);
    if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

pub(crate) fn config_file(scope: Scope, path: PathBuf, dialect: Option<Dialect>) -> ConfigFile {
    ConfigFile { exists: path.exists(), path, scope, dialect }
}

pub(crate) fn read_file(path: &Path) -> Result<Option<String>, AppError> {
    capstan_files::read_bounded(path, MAX_SIZE).map_err(|error| file_failure(&error))
}

/// An error with its causes and a hint.
pub(crate) fn explained(
    error: &(dyn std::error::Error + 'static),
    hint: Option<String>,
) -> AppError {
    AppError { hint, ..AppError::caused(ErrorKind::Config, error) }
}

fn file_failure(error: &FileError) -> AppError {
    explained(error, error.hint())
}

fn approvals_failure(error: &ApprovalsError) -> AppError {
    explained(error, error.hint())
}
