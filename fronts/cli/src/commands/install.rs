//! `capstan install` and `uninstall`: adds and removes Capstan in another client's configuration.

use std::path::PathBuf;

use capstan_app::{AppError, ClientFile, Installed, Mode, Setup, Uninstalled};
use capstan_config::Scope;
use capstan_import::Client;
use capstan_import::clients::{OUR_NAME, Way, put};
use serde_json::json;

use super::add::scope_of;
use super::serve::{USUAL, endpoint, parse};
use crate::args::{ClientArgs, InstallArgs, ScopeArg};
use crate::context::Context;
use crate::exit::Exit;

pub(crate) fn run(context: &Context, args: &InstallArgs) -> Result<Exit, AppError> {
    let ClientArgs { client, scope, dry_run } = args.at;
    let path = file_of(context, &args.at)?;
    let way = way(context, args)?;
    if let (Client::ClaudeCode, ScopeArg::Project, Way::Http { .. }) = (client, scope, &way) {
        let message = "Capstan reads the project's `.mcp.json` too, and would connect to itself";
        return Err(AppError::usage(message).hint("leave `--http` or `--scope project` out"));
    }
    let mode = if dry_run { Mode::Try } else { Mode::Do };
    let installed = context.app.clients.install(ClientFile { client, path: &path }, &way, mode)?;
    let (title, shown) = (client.title(), path.display());
    if context.print.wants_json() {
        context.print.json(&json!({
            "client": client, "file": path, "written": mode == Mode::Do, "result": installed
        }));
    }
    match (&installed, mode) {
        (Installed::Already, _) => {
            context.print.note(&format!("{title} has Capstan already ({shown})"));
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
                context.print.note(&format!("the file as it was is kept in {}", backup.display()));
            }
            let undo = match scope {
                ScopeArg::User => format!("capstan uninstall {}", client.as_str()),
                ScopeArg::Project => {
                    format!("capstan uninstall {} --scope project", client.as_str())
                }
            };
            context.print.note(&format!("restart {title}; `{undo}` takes it back"));
        }
    }
    Ok(Exit::Ok)
}

pub(crate) fn undo(context: &Context, args: &ClientArgs) -> Result<Exit, AppError> {
    let path = file_of(context, args)?;
    let mode = if args.dry_run { Mode::Try } else { Mode::Do };
    let done =
        context.app.clients.uninstall(ClientFile { client: args.client, path: &path }, mode)?;
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
        (Uninstalled::Restored, Mode::Do) => format!("{shown} is byte for byte what it was"),
        (Uninstalled::Restored, Mode::Try) => format!("{shown} would be put back as it was"),
        (Uninstalled::Removed, Mode::Do) => format!("removed {shown}, which was made for Capstan"),
        (Uninstalled::Removed, Mode::Try) => format!("{shown} would be removed"),
        (Uninstalled::TakenOut { .. }, Mode::Do) => {
            format!("took the entry `{OUR_NAME}` out of {shown}; it has been changed since")
        }
        (Uninstalled::TakenOut { .. }, Mode::Try) => {
            format!("the entry `{OUR_NAME}` would be taken out of {shown}")
        }
    };
    context.print.note(&text);
    if let (Uninstalled::TakenOut { backup: Some(backup) }, Mode::Do) = (&done, mode) {
        context.print.hint(&format!("the file from before is still in {}", backup.display()));
    }
    Ok(Exit::Ok)
}

fn file_of(context: &Context, args: &ClientArgs) -> Result<PathBuf, AppError> {
    let scope = scope_of(args.scope);
    context.app.clients.target(args.client, scope)?.ok_or_else(|| {
        let title = args.client.title();
        let (message, hint) = match scope {
            Scope::Project => {
                (format!("{title} has no file for single projects"), "leave `--scope project` out")
            }
            Scope::User | Scope::Managed | Scope::Flag => {
                (format!("{title} has no file of this scope"), "choose another scope")
            }
        };
        AppError::usage(message).hint(hint)
    })
}

/// The transport by which the client reaches Capstan.
fn way(context: &Context, args: &InstallArgs) -> Result<Way, AppError> {
    match &args.http {
        None => {
            let command = context.app.configs.environment.own_path()?;
            Ok(Way::Stdio { command, args: vec!["serve".to_owned()] })
        }
        Some(Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(Way::Http { url: url.clone() })
        }
        Some(Some(url)) => Err(AppError::usage(format!("`{url}` is not the address of a gateway"))
            .hint("write `http://127.0.0.1:8080/mcp`, as `capstan serve --http` prints it")),
        Some(None) => {
            Ok(Way::Http { url: usual_url(&context.app.configs.load(&context.selection)?)? })
        }
    }
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
