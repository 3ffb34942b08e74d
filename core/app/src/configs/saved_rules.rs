//! Rules that a person adds by approving a call permanently.

use std::collections::HashMap;
use std::sync::Arc;

use capstan_config::edit::{EditError, add_permission_rule, allow_effect};
use capstan_config::{Loaded, Origin, Scope, SourceFile};
use capstan_hub::ports::NewRule;
use capstan_model::{ServerName, Verdict};

use super::{ConfigFile, Configs};
use crate::AppError;

/// Writes rules to the operator's configuration.
pub struct SavedRules {
    configs: Arc<Configs>,
    /// The origin of each server.
    origins: HashMap<ServerName, Origin>,
}

// === impl SavedRules ===

impl SavedRules {
    /// Rules about the servers of this configuration.
    pub fn new(configs: &Arc<Configs>, loaded: &Loaded) -> Self {
        let servers = loaded.config.servers.values();
        let origins = servers.map(|entry| (entry.name.clone(), entry.origin.clone())).collect();
        Self { configs: Arc::clone(configs), origins }
    }

    /// Adds a rule; returns the file and the rule, in words. Blocks on file locks.
    ///
    /// # Errors
    /// If the rule cannot be parsed or the file cannot be written.
    pub fn add(&self, rule: &NewRule) -> Result<String, AppError> {
        let NewRule { server, pattern, effect, .. } = rule;
        let file = self.file(server);
        self.configs.edit(&file, &|text| {
            let new = match effect {
                Some(effect) => allow_effect(text, pattern, *effect),
                None => add_permission_rule(text, Verdict::Allow, pattern, None),
            }?;
            self.check(&file, text, &new)?;
            Ok(new)
        })?;
        let shown = match effect {
            Some(effect) => {
                format!("{{ pattern = \"{pattern}\", effect = \"{}\" }}", effect.as_str())
            }
            None => format!("\"{pattern}\""),
        };
        Ok(format!("`permissions.allow = [{shown}]` in {}", file.path.display()))
    }

    /// The file for rules about a server: the project's own file for a server that comes from it,
    /// else the user's.
    fn file(&self, server: &ServerName) -> ConfigFile {
        let project = self.configs.environment.project();
        let project = project.map(|project| self.configs.project_file(&project));
        let is_origin = |file: &ConfigFile| {
            self.origins.get(server).is_some_and(|origin| {
                origin.scope == Scope::Project && origin.file == file.path.display().to_string()
            })
        };
        project.filter(is_origin).unwrap_or_else(|| self.configs.user_file())
    }

    /// Parses the new text as it will be loaded, so that a rule that cannot be parsed is not
    /// written.
    fn check(&self, file: &ConfigFile, old: &str, new: &str) -> Result<(), EditError> {
        let errors = |text: &str| {
            let path = file.path.display().to_string();
            let source =
                SourceFile { dialect: file.dialect, ..SourceFile::new(path, file.scope, text) };
            let loaded = self.configs.environment.load(&[source]);
            loaded.fatal().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        };
        let before = errors(old);
        match errors(new).into_iter().find(|error| !before.contains(error)) {
            Some(reason) => Err(EditError::Rule { reason }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Selection;
    use crate::fakes::{FakeFiles, configs};

    const PROJECT: &str = "/home/me/project/.capstan/config.toml";
    const USER: &str = "/home/me/.config/capstan/config.toml";

    fn rule(server: &str, pattern: &str) -> NewRule {
        let server = server.parse().unwrap();
        NewRule { server, pattern: pattern.to_owned(), effect: None }
    }

    #[test]
    fn a_rule_goes_to_the_file_that_the_server_comes_from() {
        let files = FakeFiles::with(&[
            (PROJECT, "[servers.ours]\ncommand = \"x\"\n"),
            (USER, "[servers.mine]\ncommand = \"x\"\n"),
        ]);
        let configs = Arc::new(configs(Arc::clone(&files)));
        let setup = configs.load(&Selection::default()).unwrap();
        let rules = SavedRules::new(&configs, &setup.loaded);
        for (server, file) in [("ours", PROJECT), ("mine", USER)] {
            let saved = rules.add(&rule(server, &format!("{server}__read"))).unwrap();
            assert_eq!(saved, format!("`permissions.allow = [\"{server}__read\"]` in {file}"));
            assert!(files.text(file).unwrap().contains(&format!("{server}__read")));
        }
    }

    #[test]
    fn a_rule_that_cannot_be_parsed_is_not_written() {
        let files = FakeFiles::with(&[(USER, "")]);
        let configs = Arc::new(configs(Arc::clone(&files)));
        let setup = configs.load(&Selection::default()).unwrap();
        let rules = SavedRules::new(&configs, &setup.loaded);
        assert!(rules.add(&rule("s", "s__{read")).is_err());
        assert_eq!(files.text(USER).as_deref(), Some(""));
    }
}
