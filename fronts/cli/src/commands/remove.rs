//! `capstan remove`: removes a server from the configuration.

use capstan_app::api::RemoveServer;
use capstan_app::{AppError, ConfigFile};
use capstan_config::Dialect;
use capstan_config::edit::remove_server;

use super::add::scope_of;
use crate::args::{NameArgs, ScopeArg};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context, args: &NameArgs) -> Result<Exit, AppError> {
    if context.is_attached() {
        let person = Person::watching(&context.print, "waiting for the gateway");
        let name = context.run(RemoveServer { name: args.name.clone() }, person).await?;
        context.print.note(&format!("removed `{name}` from the gateway"));
        if context.print.wants_json() {
            context.print.json(&serde_json::json!({ "removed": name, "dynamic": true }));
        }
        return Ok(Exit::Ok);
    }
    let (file, display) = locate(context, &args.name, args.scope)?;
    context.app.configs.edit(&file, &|text| remove_server(text, &display))?;
    let (path, scope) = (file.path.display(), file.scope.as_str());
    context.print.note(&format!("removed `{display}` from {path} ({scope})"));
    if context.print.wants_json() {
        context.print.json(&serde_json::json!({ "removed": display, "file": file.path }));
    }
    Ok(Exit::Ok)
}

/// The file in which a server is configured, and its name there.
pub(super) fn locate(
    context: &Context,
    name: &str,
    scope: Option<ScopeArg>,
) -> Result<(ConfigFile, String), AppError> {
    if let Some(scope) = scope {
        let file = context.app.configs.target(Some(scope_of(scope)));
        return Ok((file, name.to_owned()));
    }
    let setup = context.app.configs.load(&context.selection)?;
    let entry = setup.server(name)?;
    let source = setup.files.iter().find(|source| source.path == entry.origin.file);
    let dialect = source.and_then(|source| {
        source.dialect.or_else(|| capstan_import::detect(&source.path, &source.text).ok())
    });
    if dialect != Some(Dialect::Native) {
        let (display, file) = (&entry.display, &entry.origin.file);
        return Err(AppError::usage(format!(
            "`{display}` is in {file}, a file of another program"
        ))
        .hint("change it there, or add a server with that name, which overrides it"));
    }
    let file = ConfigFile {
        path: entry.origin.file.clone().into(),
        scope: entry.origin.scope,
        exists: true,
        dialect,
    };
    Ok((file, entry.display.clone()))
}
