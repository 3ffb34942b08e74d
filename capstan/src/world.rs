//! The environment of the program.
//!
//! Only this file reads environment variables; the OpenTelemetry SDK reads its own (`OTEL_…`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use capstan_store::Database;
use etcetera::{BaseStrategy, choose_base_strategy};

/// Entries that mark a folder as a project.
const PROJECT_SIGNS: [&str; 3] = [".capstan", ".git", ".mcp.json"];

/// The environment of the program: variables and folders.
pub(crate) struct World {
    variables: BTreeMap<String, String>,
    cwd: PathBuf,
    home: PathBuf,
    config: PathBuf,
    state: PathBuf,
    cache: PathBuf,
    data: PathBuf,
    database: OnceLock<Arc<Database>>,
}

// === impl World ===

impl World {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let cwd = std::env::current_dir().context("the current folder does not exist")?;
        // A configuration cannot refer to names or values that are not UTF-8.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(text).collect();
        let base = choose_base_strategy().context("HOME is not set")?;
        anyhow::ensure!(
            base.home_dir().is_absolute(),
            "HOME is `{}`, which is not an absolute path",
            base.home_dir().display()
        );
        let own = |folder: PathBuf| folder.join("capstan");
        let state = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self {
            variables,
            cwd,
            home: base.home_dir().to_owned(),
            config: own(base.config_dir()),
            state: own(state),
            cache: own(base.cache_dir()),
            data: own(base.data_dir()),
            database: OnceLock::new(),
        })
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The current folder at startup.
    pub(crate) fn here(&self) -> &Path {
        &self.cwd
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Our configuration folder.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// The configuration folder that all programs share.
    pub(crate) fn shared_config(&self) -> &Path {
        self.config.parent().unwrap_or(&self.config)
    }

    /// Our folder for state that must be kept: the audit log and approvals.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// The database for persistent state: one shared instance, opened on first use.
    pub(crate) fn database(&self) -> Arc<Database> {
        let open = || Arc::new(Database::at(self.state.join("state.db")));
        Arc::clone(self.database.get_or_init(open))
    }

    /// Our folder for data that can be recreated.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// Our folder for data that users create.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The current project: the nearest folder upwards that looks like one.
    ///
    /// The home folder is never a project, even if it is a git repository.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let signs = |folder: &Path| PROJECT_SIGNS.iter().any(|sign| folder.join(sign).exists());
        let inside = self.cwd.ancestors().take_while(|folder| **folder != *self.home);
        inside.into_iter().find(|folder| signs(folder)).map(Path::to_owned)
    }

    /// The root of the workspace: the project, or the current folder.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.project().unwrap_or_else(|| self.cwd.clone())
    }
}
