//! `capstan install` and `uninstall`: adds and removes Capstan in another client's configuration.

use std::path::{Path, PathBuf};

use capstan_app::{AppError, EntryFile, Installed, Mode, Setup, Uninstalled};
use capstan_config::{Confirm, Scope};
use capstan_import::Client;
use capstan_import::clients::{ClientConnection, OUR_NAME, put};
use serde_json::json;

use super::add::scope_of;
use super::check::check;
use super::serve::{USUAL, endpoint, parse};
use crate::args::{CheckArgs, ClientArgs, ConfirmArg, InstallArgs, ScopeArg};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) async fn run(context: &Context, args: &InstallArgs) -> Result<Exit, AppError> {
    let ClientArgs { client, scope, dry_run } = args.at;
    let path = file_of(context, &args.at)?;
    let way = way(context, args)?;
    if let (Client::ClaudeCode, ScopeArg::Project, ClientConnection::Http { .. }) =
        (client, scope, &way)
    {
        let message = "Capstan reads the project's `.mcp.json` too, and would connect to itself";
        return Err(AppError::usage(message).hint("remove `--http` or `--scope project`"));
    }
    let mode = if dry_run { Mode::Try } else { Mode::Do };
    let installed = context.app.clients.install(EntryFile { client, path: &path }, &way, mode)?;
    let (title, shown) = (client.title(), path.display());
    if context.print.wants_json() {
        context.print.json(&json!({
            "client": client, "file": path, "written": mode == Mode::Do, "result": installed
        }));
    }
    match (&installed, mode) {
        (Installed::Already, _) => {
            context.print.note(&format!("{title} already has Capstan ({shown})"));
        }
        (Installed::ByHand, _) => {
            let name = format!("an entry `{OUR_NAME}` that starts Capstan is already in {shown}");
            context.print.note(&name);
        }
        (Installed::Created | Installed::Changed { .. }, Mode::Try) => {
            if !context.print.wants_json() {
                // The file may contain secrets, so only the added entry is shown.
                context.print.data(&put(client, &shown.to_string(), "", &way).unwrap_or_default());
            }
            context.print.note(&format!("this would be added to {shown}"));
        }
        (Installed::Created | Installed::Changed { .. }, Mode::Do) => {
            context.print.note(&format!("added Capstan to {title} ({shown})"));
            if let Installed::Changed { backup: Some(backup) } = &installed {
                context.print.note(&format!("a backup of the file is {}", backup.display()));
            }
            let undo = match scope {
                ScopeArg::User => format!("capstan uninstall {}", client.as_str()),
                ScopeArg::Project => {
                    format!("capstan uninstall {} --scope project", client.as_str())
                }
            };
            tell_shared(context, scope);
            context.print.note(&format!("restart {title}; `{undo}` reverts this"));
            if args.confirm.is_none() && args.http.is_none() {
                context.print.hint(&format!(
                    "Capstan asks before writes; `--confirm client` leaves this to {title}'s own dialog"
                ));
            }
            check_all(context, &args.check).await;
        }
    }
    Ok(Exit::Ok)
}

/// Connects all servers of the configuration once.
async fn check_all(context: &Context, args: &CheckArgs) {
    let Ok(setup) = context.setup_untold() else { return };
    let names: Vec<String> =
        setup.loaded.config.servers.keys().map(|name| name.as_str().to_owned()).collect();
    drop(check(context, args, &names).await);
}

/// Reports that a shared file relies on `PATH`.
pub(super) fn tell_shared(context: &Context, scope: ScopeArg) {
    if scope == ScopeArg::Project {
        context.print.note(&format!(
            "the entry starts `{OUR_NAME}` by its name, so that others can use the file: it must \
             be in a folder of PATH"
        ));
    }
}

pub(crate) fn undo(context: &Context, args: &ClientArgs) -> Result<Exit, AppError> {
    let path = file_of(context, args)?;
    let mode = if args.dry_run { Mode::Try } else { Mode::Do };
    let done =
        context.app.clients.uninstall(EntryFile { client: args.client, path: &path }, mode)?;
    if context.print.wants_json() {
        context.print.json(&json!({
            "client": args.client, "file": path, "written": mode == Mode::Do, "result": done
        }));
    }
    let (title, shown) = (args.client.title(), path.display());
    let text = match (&done, mode) {
        (Uninstalled::Nothing, _) => {
            let message = format!("{title} has no entry for Capstan ({shown})");
            return Err(AppError::not_found(message));
        }
        (Uninstalled::Restored, Mode::Do) => format!("{shown} is restored exactly"),
        (Uninstalled::Restored, Mode::Try) => format!("{shown} would be restored exactly"),
        (Uninstalled::Removed, Mode::Do) => format!("removed {shown}, which Capstan had created"),
        (Uninstalled::Removed, Mode::Try) => format!("{shown} would be removed"),
        (Uninstalled::TakenOut { .. }, Mode::Do) => {
            format!(
                "removed the entry `{OUR_NAME}` from {shown}, which has changed since the installation"
            )
        }
        (Uninstalled::TakenOut { .. }, Mode::Try) => {
            format!("the entry `{OUR_NAME}` would be removed from {shown}")
        }
    };
    context.print.note(&text);
    if let (Uninstalled::TakenOut { backup: Some(backup) }, Mode::Do) = (&done, mode) {
        tell_backup(context, backup);
    }
    Ok(Exit::Ok)
}

/// Reports that a backup is left beside a file that was not restored from it.
pub(super) fn tell_backup(context: &Context, backup: &Path) {
    context.print.hint(&format!("the backup is still in {}", backup.display()));
}

pub(super) fn file_of(context: &Context, args: &ClientArgs) -> Result<PathBuf, AppError> {
    let scope = scope_of(args.scope);
    context.app.clients.target(args.client, scope)?.ok_or_else(|| {
        let title = args.client.title();
        let (message, hint) = match scope {
            Scope::Project => (format!("{title} has no project files"), "remove `--scope project`"),
            Scope::User | Scope::Managed | Scope::Flag => {
                (format!("{title} has no file of this scope"), "choose another scope")
            }
        };
        AppError::usage(message).hint(hint)
    })
}

/// The transport by which the client reaches Capstan.
fn way(context: &Context, args: &InstallArgs) -> Result<ClientConnection, AppError> {
    match &args.http {
        None => started(context, args.at.scope, args.confirm),
        Some(Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(ClientConnection::Http { url: url.clone() })
        }
        Some(Some(url)) => Err(AppError::usage(format!("`{url}` is not the address of a gateway"))
            .hint("write `http://127.0.0.1:8080/mcp`, as `capstan serve --http` prints it")),
        Some(None) => Ok(ClientConnection::Http {
            url: usual_url(&context.app.configs.load(&context.selection)?)?,
        }),
    }
}

/// The entry of a client that starts Capstan.
///
/// A project's file is shared, and this program may have another path on other machines.
pub(super) fn started(
    context: &Context,
    scope: ScopeArg,
    confirm: Option<ConfirmArg>,
) -> Result<ClientConnection, AppError> {
    let command = match scope {
        ScopeArg::User => context.app.configs.environment.own_path()?,
        ScopeArg::Project => OUR_NAME.to_owned(),
    };
    let mut args = vec!["serve".to_owned()];
    if let Some(confirm) = confirm.map(Confirm::from) {
        args.extend(["--confirm".to_owned(), confirm.as_str().to_owned()]);
    }
    Ok(ClientConnection::Stdio { command, args })
}

/// The URL of the gateway from the configuration.
fn usual_url(setup: &Setup) -> Result<String, AppError> {
    let gateway = &setup.loaded.config.gateway;
    if let Some(url) = &gateway.public_url {
        return Ok(endpoint(url));
    }
    let mut listen = parse(&gateway.listen)?;
    if listen.port() == 0 {
        let hint = "give the address that `capstan serve --http` prints";
        return Err(AppError::usage("the gateway's port is chosen when it starts").hint(hint));
    }
    if listen.ip().is_unspecified() {
        listen.set_ip(USUAL.ip());
    }
    let scheme = if gateway.tls_cert.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{listen}/mcp"))
}
