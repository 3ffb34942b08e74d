//! Assembles approvals: who may approve a call, and where approvals are stored.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;

use capstan_app::{ConfigFile, Host};
use capstan_config::edit::{EditError, add_permission_rule, allow_effect};
use capstan_config::{Dialect, Loaded, Origin, Scope, SourceFile, Surroundings, load, show};
use capstan_hub::Approvals;
use capstan_hub::approvals::{OtherShells, Span, policy_version};
use capstan_hub::ports::{BoxFuture, Clock, NewRule, NotSaved, RuleBook};
use capstan_import::AllDialects;
use capstan_model::{ServerName, Verdict};

use crate::host::{LocalHost, config_file};
use crate::world::World;

/// Stores rules in the operator's configuration.
struct ConfigBook {
    world: Arc<World>,
    /// The origin of each server.
    origins: HashMap<ServerName, Origin>,
}

/// Approvals for one command, typed by the operator.
///
/// The session is this one call, so only a saved approval can cover more.
pub(crate) fn at_the_command_line(world: &Arc<World>, loaded: &Loaded) -> Approvals {
    Approvals::at_the_front(vec![Span::Saved], Arc::new(ConfigBook::new(world, loaded)))
}

/// Approvals for clients, whose operator may use another shell.
pub(crate) fn at_the_gateway(
    world: &Arc<World>,
    loaded: &Loaded,
    clock: &Arc<dyn Clock>,
) -> Approvals {
    let mut spans = vec![Span::Session];
    if loaded.config.gateway.save_approvals {
        spans.push(Span::Saved);
    }
    let shown = show(loaded);
    // Every value of the configuration counts as policy. At worst, a question is asked once more
    // than needed.
    let texts = shown.iter().flat_map(|one| [one.key.as_str(), one.value.as_str()]);
    let shells = OtherShells {
        store: world.database(),
        clock: Arc::clone(clock),
        policy: policy_version(texts),
        wait: loaded.config.gateway.approval_wait,
        seed: RandomState::new().build_hasher().finish(),
    };
    let book = ConfigBook::new(world, loaded);
    Approvals::at_the_front(spans, Arc::new(book)).and_elsewhere(shells)
}

// === impl ConfigBook ===

impl ConfigBook {
    fn new(world: &Arc<World>, loaded: &Loaded) -> Self {
        let servers = loaded.config.servers.values();
        let origins = servers.map(|entry| (entry.name.clone(), entry.origin.clone())).collect();
        Self { world: Arc::clone(world), origins }
    }

    /// The file for rules about a server: the project's own file for a server that comes from it,
    /// else the user's.
    fn file(&self, host: &LocalHost, server: &ServerName) -> ConfigFile {
        let is_origin = |path: &PathBuf| {
            let origin = self.origins.get(server);
            origin.is_some_and(|origin| {
                origin.scope == Scope::Project && origin.file == path.display().to_string()
            })
        };
        let native = Some(Dialect::Native);
        match host.project_file().filter(is_origin) {
            Some(path) => config_file(Scope::Project, path, native),
            None => config_file(Scope::User, host.user_file(), native),
        }
    }
}

impl RuleBook for ConfigBook {
    fn allow<'a>(&'a self, rule: &'a NewRule) -> BoxFuture<'a, Result<String, NotSaved>> {
        let host = LocalHost::new(Arc::clone(&self.world));
        let (file, rule) = (self.file(&host, &rule.server), rule.clone());
        Box::pin(async move {
            // Locking files and syncing them to disk can take a while.
            let written = tokio::task::spawn_blocking(move || write(&host, &file, &rule));
            written.await.unwrap_or_else(|error| Err(NotSaved { reason: error.to_string() }))
        })
    }
}

/// Adds the rule; returns the file and the rule, in words.
fn write(host: &LocalHost, file: &ConfigFile, rule: &NewRule) -> Result<String, NotSaved> {
    let NewRule { pattern, effect, .. } = rule;
    let change = |text: &str| {
        let new = match effect {
            Some(effect) => allow_effect(text, pattern, *effect),
            None => add_permission_rule(text, Verdict::Allow, pattern, None),
        }?;
        check(host, file, text, &new)?;
        Ok(new)
    };
    host.edit(file, &change).map_err(|failure| NotSaved { reason: failure.message })?;
    let shown = match effect {
        Some(effect) => format!("{{ pattern = \"{pattern}\", effect = \"{}\" }}", effect.as_str()),
        None => format!("\"{pattern}\""),
    };
    Ok(format!("`permissions.allow = [{shown}]` in {}", file.path.display()))
}

/// Parses the new text as it will be loaded, so that a rule that cannot be parsed is not written.
fn check(host: &LocalHost, file: &ConfigFile, old: &str, new: &str) -> Result<(), EditError> {
    let errors = |text: &str| {
        let path = file.path.display().to_string();
        let source =
            SourceFile { dialect: file.dialect, ..SourceFile::new(path, file.scope, text) };
        let workspace = host.world.workspace();
        let around = Surroundings {
            variable: &|name| host.world.variable(name),
            project_dir: &workspace.to_string_lossy(),
        };
        let loaded = load(&[source], &around, &AllDialects);
        loaded.fatal().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    let before = errors(old);
    match errors(new).into_iter().find(|error| !before.contains(error)) {
        Some(reason) => Err(EditError::Rule { reason }),
        None => Ok(()),
    }
}
