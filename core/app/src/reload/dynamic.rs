//! Servers that are added while the gateway runs, and that exist only until it ends.

use std::sync::Arc;

use capstan_config::source::DYNAMIC;
use capstan_config::{Dialect, Scope, ServerEntry, SourceFile};
use capstan_model::ServerName;

use super::{LiveConfig, decisions};
use crate::server_settings::forbidden;
use crate::{AppError, ErrorKind};

impl LiveConfig {
    /// Adds a server; `text` is its entry, in the format of a file.
    ///
    /// # Errors
    /// If a server has that name already, if there are too many, or if a rule forbids it.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "changes of the configuration are serialized on purpose"
    )]
    pub async fn add(&self, name: &str, text: String) -> Result<ServerName, AppError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let setup = self.setup();
        let config = &setup.loaded.config;
        let source = source(name, text);
        let entry = self.alone(&source)?;
        if let Some(known) = config.servers.get(&entry.name) {
            return Err(taken(known));
        }
        let mut dynamic = self.now().dynamic.clone();
        let most = usize::try_from(config.mcp.max_dynamic_servers).unwrap_or(usize::MAX);
        if dynamic.len() >= most {
            let message = format!("{most} servers have already been added, which is the limit");
            return Err(AppError::new(ErrorKind::Quota, message).hint(
                "remove one with `capstan remove NAME --attach`, or raise \
                 `mcp.max_dynamic_servers`",
            ));
        }
        if let Some(rule) = forbidden(config, &entry) {
            return Err(AppError::denied(rule));
        }
        dynamic.insert(name.to_owned(), source);
        self.change(decisions::files(&self.setup()), dynamic).await?;
        drop(turn);
        Ok(entry.name)
    }

    /// Removes a server that was added at run time; returns the name it was added by.
    ///
    /// # Errors
    /// If there is no server of that name, or if it is configured in a file.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "changes of the configuration are serialized on purpose"
    )]
    pub async fn remove(&self, name: &str) -> Result<String, AppError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let setup = self.setup();
        let entry = setup.server(name)?;
        let mut dynamic = self.now().dynamic.clone();
        if !entry.origin.is_dynamic() || dynamic.shift_remove(&entry.display).is_none() {
            let (display, origin) = (&entry.display, &entry.origin);
            let message =
                format!("`{display}` was not added at run time: it is configured in {origin}");
            return Err(AppError::usage(message).hint(format!(
                "`capstan remove {display}` removes it from that file, and the gateway follows"
            )));
        }
        let display = entry.display.clone();
        self.change(decisions::files(&self.setup()), dynamic).await?;
        drop(turn);
        Ok(display)
    }

    /// Parses the entry on its own, without other files.
    fn alone(&self, source: &SourceFile) -> Result<ServerEntry, AppError> {
        let setup = self.gateway.configs.merge(vec![source.clone()], &self.selection);
        let problems: Vec<_> = setup.loaded.fatal().cloned().collect();
        if !problems.is_empty() {
            return Err(AppError::problems(problems, vec![source.clone()]));
        }
        let Some(entry) = setup.loaded.config.servers.values().next() else {
            return Err(AppError::usage("servers are disabled in that gateway"));
        };
        match &entry.status {
            Ok(_) => Ok(entry.clone()),
            Err(problem) => Err(AppError::problems(vec![problem.clone()], vec![source.clone()])),
        }
    }
}

/// The source file for an entry that is in no file.
///
/// It has the lowest precedence, so that every configured server comes before it.
fn source(name: &str, text: String) -> SourceFile {
    let path = format!("{DYNAMIC} {name}");
    SourceFile { dialect: Some(Dialect::Native), ..SourceFile::new(path, Scope::User, text) }
}

fn taken(known: &ServerEntry) -> AppError {
    let (display, origin) = (&known.display, &known.origin);
    let message = if origin.is_dynamic() {
        format!("`{display}` has already been added")
    } else {
        format!("`{display}` is configured in {origin}, and cannot be replaced at run time")
    };
    AppError::usage(message).hint("choose another name")
}
