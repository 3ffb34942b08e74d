//! Configuration files: finds, merges and changes them, and keeps track of approved project files.
//!
//! `packages` reads plugin folders and bundles, `saved_rules` writes rules that an approval adds.

mod packages;
mod saved_rules;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use capstan_config::edit::EditError;
use capstan_config::{Dialect, Problem, Scope, SourceFile};
use capstan_hub::ports::Clock;
use capstan_import::detect_at;
use jiff::Timestamp;
use serde::Serialize;

use crate::{AppError, Edited, Environment, ProjectApprovals, Selection, Setup};

pub(crate) use packages::read as read_package;
pub use saved_rules::SavedRules;

/// The configuration file of the machine's administrator.
const MANAGED: &str = "/etc/capstan/config.toml";

/// The variable that names the file of avelino's program, in place of the usual one.
const AVELINO_FILE: &str = "MCP_CONFIG_PATH";

/// The name of a configuration file.
const CONFIG: &str = "config.toml";

/// The folder of a project that has our files.
const PROJECT_FOLDER: &str = ".capstan";

/// A change of a file's text.
pub type Change<'a> = &'a dyn Fn(&str) -> Result<String, EditError>;

/// The configuration of the built-in demo servers, from our program, the folder that they show and
/// the folder of their data.
pub type DemoConfig = fn(program: &Path, shown: &Path, data: &Path) -> String;

/// Finds, loads and changes configuration files.
pub struct Configs {
    /// The environment whose files are read.
    pub environment: Arc<Environment>,
    /// Approvals of project files.
    pub approvals: Arc<dyn ProjectApprovals>,
    /// The clock by which rules expire.
    pub clock: Arc<dyn Clock>,
    /// The configuration of the demo servers.
    pub demo: DemoConfig,
}

/// A configuration file, which may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigFile {
    /// The path.
    pub path: PathBuf,
    /// The scope.
    pub scope: Scope,
    /// True if the file exists.
    pub exists: bool,
    /// The program whose format it has, if that is known without reading it.
    #[serde(skip)]
    pub dialect: Option<Dialect>,
}

/// The user's approval of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The file does not exist, or it needs no approval.
    NotNeeded,
    /// The current text is approved.
    Approved,
    /// An earlier text was approved; the file has changed since.
    Changed {
        /// The approved text.
        before: String,
        /// The current text.
        now: String,
    },
    /// Never approved.
    Unknown {
        /// The current text.
        now: String,
    },
}

// === impl Configs ===

impl Configs {
    /// Loads the configuration. Problems in it are part of the result, also files that cannot be
    /// read, unless they were named explicitly.
    ///
    /// # Errors
    /// If a file that was named explicitly cannot be read.
    pub fn load(&self, selection: &Selection) -> Result<Setup, AppError> {
        let (sources, unread) = self.readable_sources(selection)?;
        let mut setup = self.merge(sources, selection);
        Arc::make_mut(&mut setup.loaded).problems.extend(unread.into_iter().map(problem_of));
        let missing = self.avelino_file().filter(|file| !file.exists && !selection.demo);
        if let Some(file) = missing {
            let path = file.path.display();
            let problem = Problem::warning(format!(
                "the file that `{AVELINO_FILE}` names does not exist: {path}"
            ));
            let problem = problem.help("correct the variable, or unset it");
            Arc::make_mut(&mut setup.loaded).problems.push(problem);
        }
        Ok(setup)
    }

    /// Loads only the managed file and the files that `--config` and `CAPSTAN_CONFIG` name.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn load_alone(&self, selection: &Selection) -> Result<Setup, AppError> {
        let mut sources = self.sources(selection)?;
        sources.retain(|source| match source.scope {
            Scope::Managed | Scope::Flag => true,
            Scope::Project | Scope::User => false,
        });
        Ok(self.merge(sources, selection))
    }

    /// Reads the files of a configuration, lowest precedence first.
    ///
    /// # Errors
    /// If a file cannot be read, or does not exist although it was named.
    pub fn sources(&self, selection: &Selection) -> Result<Vec<SourceFile>, AppError> {
        let (sources, unread) = self.readable_sources(selection)?;
        unread.into_iter().next().map_or(Ok(sources), Err)
    }

    /// Reads the files that can be read, and returns the errors of the others.
    ///
    /// # Errors
    /// If a file that was named explicitly cannot be read.
    fn readable_sources(
        &self,
        selection: &Selection,
    ) -> Result<(Vec<SourceFile>, Vec<AppError>), AppError> {
        if selection.demo {
            return Ok((vec![self.demo_source()?], Vec::new()));
        }
        let (mut sources, mut unread) = (Vec::new(), Vec::new());
        for file in self.without_repeats(self.files(selection)) {
            match self.sources_of(&file, selection) {
                Ok(found) => sources.extend(found),
                Err(error) if file.scope == Scope::Flag => return Err(error),
                Err(error) => unread.push(error),
            }
        }
        Ok((sources, unread))
    }

    /// Reads one file or package; nothing if it does not exist.
    fn sources_of(
        &self,
        file: &ConfigFile,
        selection: &Selection,
    ) -> Result<Vec<SourceFile>, AppError> {
        if packages::is_package(&self.environment, file) {
            return read_package(&self.environment, file, &self.environment.cache);
        }
        match self.read(file)? {
            Some(source) => {
                let approved = source.approved || selection.trust_project;
                Ok(vec![SourceFile { approved, ..source }])
            }
            // A file that was named explicitly must exist.
            None if file.scope == Scope::Flag => {
                let path = file.path.display();
                let message = format!("the configuration file {path} does not exist");
                let hint = unknown_dialect(&file.path, &self.environment.current_folder);
                Err(AppError { hint, ..AppError::config(message) })
            }
            None => Ok(Vec::new()),
        }
    }

    /// Merges sources into a setup.
    pub fn merge(&self, sources: Vec<SourceFile>, selection: &Selection) -> Setup {
        let mut loaded = self.environment.load(&sources);
        loaded.problems.extend(capstan_config::dead_rules(&loaded.config, self.now()));
        if selection.no_mcp || loaded.environment.no_mcp {
            loaded.config.servers.clear();
        }
        if let Some(expose) = selection.expose {
            loaded.config.gateway.expose = expose;
            loaded.config.gateway.clients.clear();
        }
        Setup { loaded: Arc::new(loaded), files: sources.into() }
    }

    /// The files in which configuration is looked for; within a scope, a later file takes
    /// precedence.
    pub fn files(&self, selection: &Selection) -> Vec<ConfigFile> {
        let (native, here) = (Some(Dialect::Native), &self.environment.current_folder);
        let mut files = vec![self.file(Scope::Managed, MANAGED.into(), native)];
        let usual = || self.environment.shared_config.join("mcp/servers.json");
        let shared = self.avelino_file().unwrap_or_else(|| self.file(Scope::User, usual(), None));
        files.extend([shared, self.user_file()]);
        if let Some(project) = self.environment.project() {
            files.push(self.file(Scope::Project, project.join(".mcp.json"), None));
            files.push(self.project_file(&project));
        }
        let named = self.environment.filled_variable("CAPSTAN_CONFIG").into_iter();
        files.extend(named.chain(selection.config.iter().cloned()).map(|argument| {
            let (dialect, path) = Dialect::of_argument(&argument);
            self.file(Scope::Flag, here.join(path), dialect)
        }));
        files
    }

    /// The file that a change to this scope is written to; `None` uses the default scope.
    pub fn target(&self, scope: Option<Scope>) -> ConfigFile {
        match (scope, self.environment.project()) {
            (Some(Scope::Project) | None, Some(project)) => self.project_file(&project),
            // A project file that is requested outside a project is created in the current folder.
            (Some(Scope::Project), None) => self.project_file(&self.environment.current_folder),
            (Some(Scope::User | Scope::Flag) | None, _) => self.user_file(),
            (Some(Scope::Managed), _) => {
                self.file(Scope::Managed, MANAGED.into(), Some(Dialect::Native))
            }
        }
    }

    /// Changes a file atomically.
    ///
    /// A change to a project file is approved if the file is new or its text was approved before.
    ///
    /// # Errors
    /// If the change is refused or the file cannot be written.
    pub fn edit(&self, file: &ConfigFile, change: Change<'_>) -> Result<(), AppError> {
        // Both texts are those read and written under the lock.
        let (mut before, mut after) = (String::new(), String::new());
        let edited = self.environment.files.edit(&file.path, &mut |text| {
            let new = change(text)?;
            (before, after) = (text.to_owned(), new.clone());
            Ok(new)
        })?;
        if file.scope != Scope::Project {
            return Ok(());
        }
        let was_approved = self.approvals.status(&file.path, &before)? == Approval::Approved;
        if was_approved || edited == Edited::Created {
            self.approve(file, &after)?;
        }
        Ok(())
    }

    /// The user's approval of a project file.
    ///
    /// # Errors
    /// If the file or the approvals cannot be read.
    pub fn approval(&self, file: &ConfigFile) -> Result<Approval, AppError> {
        if file.scope != Scope::Project {
            return Ok(Approval::NotNeeded);
        }
        match self.environment.files.read(&file.path)? {
            Some(now) => self.approvals.status(&file.path, &now),
            None => Ok(Approval::NotNeeded),
        }
    }

    /// Approves a project file with exactly this text, which the user has seen.
    ///
    /// # Errors
    /// If the approval cannot be stored.
    pub fn approve(&self, file: &ConfigFile, text: &str) -> Result<(), AppError> {
        self.approvals.approve(&file.path, text, self.now())
    }

    /// Revokes an approval; true if there was one.
    ///
    /// # Errors
    /// If the approvals cannot be changed.
    pub fn revoke(&self, file: &ConfigFile) -> Result<bool, AppError> {
        self.approvals.revoke(&file.path)
    }

    /// The time at which rules are evaluated.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The file that `MCP_CONFIG_PATH` names, if it is set.
    fn avelino_file(&self) -> Option<ConfigFile> {
        let named = self.environment.filled_variable(AVELINO_FILE)?;
        Some(self.file(Scope::User, self.environment.current_folder.join(named), None))
    }

    fn user_file(&self) -> ConfigFile {
        let path = self.environment.config.join(CONFIG);
        self.file(Scope::User, path, Some(Dialect::Native))
    }

    fn project_file(&self, project: &Path) -> ConfigFile {
        let path = project.join(PROJECT_FOLDER).join(CONFIG);
        self.file(Scope::Project, path, Some(Dialect::Native))
    }

    fn file(&self, scope: Scope, path: PathBuf, dialect: Option<Dialect>) -> ConfigFile {
        let exists = self.environment.files.facts(&path).is_some();
        ConfigFile { path, scope, exists, dialect }
    }

    /// Reads one file; `None` if it does not exist.
    fn read(&self, file: &ConfigFile) -> Result<Option<SourceFile>, AppError> {
        let Some(text) = self.environment.files.read(&file.path)? else { return Ok(None) };
        let approved = match file.scope {
            Scope::Project => self.approvals.status(&file.path, &text)? == Approval::Approved,
            Scope::Managed | Scope::Flag | Scope::User => true,
        };
        let path = file.path.display().to_string();
        let dialect = file.dialect.or_else(|| {
            // Wherever it is, this file has the meaning that avelino's program gives it.
            let is_named = self.avelino_file().is_some_and(|named| named == *file);
            let place = Some(Dialect::Avelino).filter(|_| is_named)?;
            detect_at(Some(place), &path, &text).ok()
        });
        Ok(Some(SourceFile { approved, dialect, ..SourceFile::new(path, file.scope, text) }))
    }

    fn demo_source(&self) -> Result<SourceFile, AppError> {
        let Environment { current_folder, data, .. } = &*self.environment;
        let text = (self.demo)(self.environment.program()?, current_folder, &data.join("demo"));
        let dialect = Some(Dialect::Native);
        Ok(SourceFile { dialect, ..SourceFile::new("(demo)", Scope::Flag, text) })
    }

    /// Removes found files that are also named explicitly, so that each is read once, as named.
    fn without_repeats(&self, mut files: Vec<ConfigFile>) -> Vec<ConfigFile> {
        let real = |file: &ConfigFile| self.environment.files.real_path(&file.path).ok();
        let flags = files.iter().filter(|file| file.scope == Scope::Flag);
        let named: Vec<PathBuf> = flags.filter_map(real).collect();
        files.retain(|file| match file.scope {
            Scope::Managed | Scope::Flag => true,
            Scope::Project | Scope::User => real(file).is_none_or(|path| !named.contains(&path)),
        });
        files
    }
}

/// The problem of a configuration with a file that cannot be read.
fn problem_of(error: AppError) -> Problem {
    let problem = Problem::error(error.message);
    match error.hint {
        Some(hint) => problem.help(hint),
        None => problem,
    }
}

/// The hint for `WORD:FILE` where no such file exists: `WORD` may be a misspelt dialect.
fn unknown_dialect(path: &Path, here: &Path) -> Option<String> {
    let (word, file) = path.strip_prefix(here).unwrap_or(path).to_str()?.split_once(':')?;
    let is_word = !word.is_empty() && !word.contains('/') && !file.is_empty();
    let unknown = word.parse::<Dialect>().err()?;
    is_word.then(|| unknown.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fakes::{FakeFiles, configs};

    const PROJECT: &str = "/home/me/project/.capstan/config.toml";

    fn in_project(text: &str) -> (Arc<FakeFiles>, Configs) {
        let files = FakeFiles::with(&[(PROJECT, text)]);
        (Arc::clone(&files), configs(files))
    }

    #[test]
    fn a_project_file_is_used_only_after_its_text_is_approved() {
        let (_, configs) = in_project("[servers.s]\ncommand = \"x\"");
        let approved = |configs: &Configs| {
            configs.load(&Selection::default()).unwrap().files.iter().all(|file| file.approved)
        };
        assert!(!approved(&configs));
        // The whole file counts: its servers, its errors and its restrictions.
        let trusting = Selection { trust_project: true, ..Selection::default() };
        assert!(configs.load(&trusting).unwrap().files.iter().all(|file| file.approved));
        let file = configs.target(None);
        let Approval::Unknown { now } = configs.approval(&file).unwrap() else { panic!("known") };
        configs.approve(&file, &now).unwrap();
        assert!(approved(&configs));
        assert!(configs.revoke(&file).unwrap());
        assert!(!approved(&configs));
    }

    #[test]
    fn a_change_by_the_user_keeps_an_approval_and_never_gives_one() {
        let (files, configs) = in_project("a = 1");
        let file = configs.target(None);
        configs.edit(&file, &|text| Ok(format!("{text}\nb = 2"))).unwrap();
        assert!(matches!(configs.approval(&file).unwrap(), Approval::Unknown { .. }));
        configs.approve(&file, "a = 1\nb = 2").unwrap();
        configs.edit(&file, &|text| Ok(format!("{text}\nc = 3"))).unwrap();
        assert_eq!(configs.approval(&file).unwrap(), Approval::Approved);
        files.remove(PROJECT);
        configs.edit(&file, &|_| Ok("new = 1".to_owned())).unwrap();
        assert_eq!(configs.approval(&file).unwrap(), Approval::Approved, "our own new file");
    }

    #[test]
    fn a_found_file_that_is_also_named_is_read_once_as_named() {
        let (_, configs) = in_project("");
        let named = Selection { config: vec![PROJECT.to_owned()], ..Selection::default() };
        let scopes: Vec<Scope> =
            configs.sources(&named).unwrap().iter().map(|source| source.scope).collect();
        assert_eq!(scopes, [Scope::Flag]);
    }

    #[test]
    fn a_named_file_that_does_not_exist_is_an_error_with_a_hint() {
        let (_, configs) = in_project("");
        let missing = |name: &str| {
            let selection = Selection { config: vec![name.to_owned()], ..Selection::default() };
            configs.sources(&selection).unwrap_err()
        };
        assert!(missing("no.toml").hint.is_none());
        assert!(missing("cladue:no.json").hint.unwrap().contains("cladue"));
    }

    #[test]
    fn without_servers_nothing_is_started() {
        let (_, configs) = in_project("[servers.s]\ncommand = \"x\"");
        let selection = Selection { no_mcp: true, ..Selection::default() };
        assert!(configs.load(&selection).unwrap().loaded.config.servers.is_empty());
    }

    #[test]
    fn a_change_goes_to_the_project_and_outside_of_one_to_the_user() {
        let (_, inside) = in_project("");
        assert_eq!(inside.target(None).path, Path::new(PROJECT));
        let outside = configs(FakeFiles::with(&[]));
        assert_eq!(outside.target(None).scope, Scope::User);
        assert_eq!(outside.target(Some(Scope::Project)).path, Path::new(PROJECT));
    }
}
