//! `capstan login --import`: copies the logins of avelino's `mcp`.

use std::path::{Path, PathBuf};

use capstan_app::{AppError, LoginState, Setup};
use capstan_config::{Kind, ServerEntry};
use capstan_import::logins::{ForeignLogin, logins};
use capstan_safety::clean::visible;
use capstan_safety::mask::mask_url;

use super::login::{may_have_login, reach};
use crate::context::Context;
use crate::exit::Exit;

/// The variable with the logins themselves.
const INLINE: &str = "MCP_AUTH_CONFIG";

/// The variable with the file of the logins.
const FILE: &str = "MCP_AUTH_PATH";

pub(super) async fn run(
    context: &Context,
    setup: &Setup,
    file: Option<&Path>,
    name: Option<&str>,
) -> Result<Exit, AppError> {
    let foreign = read(context, file)?;
    let only = name.map(|name| setup.server(name)).transpose()?.map(|entry| &entry.name);
    let servers = setup.loaded.config.servers.values();
    let servers: Vec<&ServerEntry> = servers
        .filter(|entry| only.is_none_or(|only| *only == entry.name) && may_have_login(entry))
        .collect();
    let (mut taken, mut failed) = (Vec::new(), None);
    for entry in &servers {
        let Some(login) = foreign.iter().find(|login| is_for(login, entry)) else { continue };
        match take_over(context, setup, entry, login).await {
            Ok(state) => taken.extend(state),
            Err(error) => {
                let name = &entry.name;
                context.print.warning(&format!("no login to `{name}`: {}", error.message));
                failed.get_or_insert(error);
            }
        }
    }
    for login in foreign.iter().filter(|_| only.is_none()) {
        if !servers.iter().any(|entry| is_for(login, entry)) {
            let url = visible(&mask_url(&login.url));
            context.print.note(&format!("no server has the address {url}"));
        }
    }
    if context.print.wants_json() {
        context.print.json(&taken);
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Exit::Ok),
    }
}

/// The logins of the file, or of the variables that avelino's `mcp` reads.
fn read(context: &Context, file: Option<&Path>) -> Result<Vec<ForeignLogin>, AppError> {
    let environment = &context.app.configs.environment;
    let set = |name| environment.variable(name).filter(|text| !text.trim().is_empty());
    let (text, place) = match (file, set(INLINE)) {
        (None, Some(text)) => (text.clone(), INLINE.to_owned()),
        (file, _) => {
            let path = match (file, set(FILE)) {
                (Some(file), _) => environment.current_folder.join(file),
                (None, Some(file)) => environment.current_folder.join(file.trim()),
                (None, None) => usual(&environment.shared_config),
            };
            let place = path.display().to_string();
            let text = context.app.clients.text(&path)?;
            if text.is_empty() {
                return Err(AppError::not_found(format!("there are no logins in {place}"))
                    .hint("`capstan login --import=FILE` reads another file"));
            }
            (text, place)
        }
    };
    logins(&text).map_err(|error| AppError::config(format!("{place} cannot be imported: {error}")))
}

/// The usual place of the file.
fn usual(shared: &Path) -> PathBuf {
    shared.join("mcp/auth.json")
}

fn is_for(login: &ForeignLogin, entry: &ServerEntry) -> bool {
    match entry.usable().map(|server| &server.kind) {
        Some(Kind::Http(remote) | Kind::Sse(remote)) => login.is_for(&remote.url),
        Some(Kind::Stdio(_) | Kind::Cli(_) | Kind::OpenApi(_)) | None => false,
    }
}

async fn take_over(
    context: &Context,
    setup: &Setup,
    entry: &ServerEntry,
    login: &ForeignLogin,
) -> Result<Option<LoginState>, AppError> {
    let (name, logins) = (&entry.name, &context.app.logins);
    if logins.status(setup, name).await?.is_some() {
        context.print.note(&format!("there is a login to `{name}` already"));
        return Ok(None);
    }
    reach(context, name).await?;
    let Some(state) = logins.take_over(setup, name, login).await? else { return Ok(None) };
    if !context.print.wants_json() {
        let issuer = state.issuer.as_deref().map(|issuer| format!(" of {}", visible(issuer)));
        let (issuer, place) = (issuer.unwrap_or_default(), &state.stored_in);
        context.print.note(&format!("imported the login to `{name}`{issuer}; stored in {place}"));
    }
    Ok(Some(state))
}
