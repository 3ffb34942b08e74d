//! A loaded configuration, and the selection of what to load.

use std::sync::Arc;

use capstan_config::{Loaded, Origin, Problem, ServerEntry, SourceFile};
use capstan_hub::Hub;
use capstan_model::{Expose, ServerName};

use crate::AppError;

/// Selects the configuration that an operation uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Files in addition to those found by default: `[DIALECT:]FILE`.
    pub config: Vec<String>,
    /// Use the built-in demo servers instead of files.
    pub demo: bool,
    /// Start no server.
    pub no_mcp: bool,
    /// Use project files that the user has not approved.
    pub trust_project: bool,
    /// The tools that clients of the gateway get, in place of what the files say.
    pub expose: Option<Expose>,
}

/// A configuration and the files it was read from.
#[derive(Clone)]
pub struct Setup {
    /// The merged configuration.
    pub loaded: Arc<Loaded>,
    /// The files, for error messages that quote them.
    pub files: Arc<[SourceFile]>,
}

/// Builds a hub for one command.
pub trait BuildHub: Send + Sync {
    /// Builds a hub from a configuration without starting a server.
    fn build(&self, setup: &Setup, purpose: HubPurpose) -> Result<Hub, AppError>;
}

/// The purpose of a command's hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubPurpose {
    /// Calls. Servers are asked for the lists that a call needs, which are saved.
    Calls,
    /// Lists. Saved lists are used, and those of servers that are asked are saved.
    Lists,
}

// === impl Setup ===

impl Setup {
    /// Returns the setup, unless it has an error that affects everything.
    ///
    /// An unapproved file starts nothing, so its errors are ignored.
    ///
    /// # Errors
    /// The errors that affect everything.
    pub fn checked(self) -> Result<Self, AppError> {
        let fatal: Vec<Problem> =
            self.loaded.fatal().filter(|problem| self.counts(problem)).cloned().collect();
        if fatal.is_empty() {
            return Ok(self);
        }
        Err(AppError::problems(fatal, self.files.to_vec()))
    }

    /// True unless the problem is in a file that the user has not approved.
    pub fn counts(&self, problem: &Problem) -> bool {
        let place = problem.place.as_ref();
        let file = place.and_then(|place| self.files.iter().find(|file| file.path == place.file));
        file.is_none_or(|file| file.approved)
    }

    /// The entry of a server, by its slug or its display name.
    ///
    /// # Errors
    /// If no server has this name.
    pub fn server(&self, name: &str) -> Result<&ServerEntry, AppError> {
        let servers = &self.loaded.config.servers;
        let by_slug = name.parse::<ServerName>().ok().and_then(|slug| servers.get(&slug));
        let found = by_slug.or_else(|| servers.values().find(|entry| entry.display == name));
        found.ok_or_else(|| {
            let error = AppError::not_found(format!("no server named `{name}`"));
            match nearest(name, servers.values().map(|entry| entry.display.as_str())) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("`capstan list` shows all servers"),
            }
        })
    }
}

/// The word for the scope in which a server is configured.
pub(crate) fn scope_word(origin: &Origin) -> &'static str {
    if origin.is_dynamic() { "dynamic" } else { origin.scope.as_str() }
}

/// The word most similar to `wanted`, if one is similar enough to suggest.
pub fn nearest<'a>(wanted: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    words
        .map(|word| (strsim::jaro_winkler(wanted, word), word))
        .filter(|(score, _)| *score >= 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}
