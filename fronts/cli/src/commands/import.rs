//! `capstan import`: imports servers from other MCP clients.

use std::path::Path;

use capstan_app::{AppError, ConfigFile};
use capstan_config::{Dialect, Kind, Scope, Server, SourceFile};
use capstan_import::Client;
use capstan_import::servers::{
    Found, Plan, Projects, Row, Secrets, State, Variable, find, plan, unreadable,
};
use capstan_text::form::{Prompter, Terminal};
use capstan_text::screen::{stderr_is_terminal, stdin_is_terminal, width};
use serde_json::json;

use super::add::scope_of;
use super::check::check;
use crate::args::{ImportArgs, SecretsArg};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::counted;

pub(crate) async fn run(context: &Context, args: &ImportArgs) -> Result<Exit, AppError> {
    let scope = scope_of(args.scope);
    let file = context.app.configs.target(Some(scope));
    let native = SourceFile {
        dialect: Some(Dialect::Native),
        ..SourceFile::new(
            file.path.display().to_string(),
            scope,
            context.app.clients.text(&file.path)?,
        )
    };
    // A project's list applies to the servers of its own file only.
    let commands = if scope == Scope::User { own_commands(context)? } else { Vec::new() };
    let planned = |choice| -> Result<Plan, AppError> {
        let plan = plan(search(context, args, scope), &native, choice);
        let mut plan =
            plan.map_err(|problem| AppError::problems(vec![*problem], vec![native.clone()]))?;
        plan.keep_running(commands.iter().cloned());
        Ok(plan)
    };
    let choice = chosen(args.secrets, &file);
    let mut made = planned(choice)?;
    if made.rows.is_empty() {
        return nothing(context, args, &file);
    }
    let asks = !args.yes && !args.dry_run && is_watched(context);
    show(context, &made, &file);
    if made.names().next().is_none() {
        refuse_unreadable(context, &made)?;
        finish(context, &made, &file, Outcome::Nothing);
        return Ok(Exit::Ok);
    }
    if asks && args.secrets.is_none() && !made.secrets.is_empty() {
        made = planned(ask_about_secrets(&made)?)?;
        tell_variables(context, &made.variables, "is in");
    }
    if asks || args.yes {
        refuse_open_secrets(context, &made, &file)?;
    }
    if asks && !confirmed(&made, &file) {
        return Err(AppError::denied("nothing was written"));
    }
    if !args.yes && !asks {
        finish(context, &made, &file, Outcome::Planned);
        return Ok(Exit::Ok);
    }
    context.app.configs.edit(&file, &|text| made.apply(text))?;
    let names: Vec<String> = made.names().map(str::to_owned).collect();
    drop(check(context, &args.check, &names).await);
    finish(context, &made, &file, Outcome::Written);
    Ok(Exit::Ok)
}

/// The outcome of an import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// There is nothing to write.
    Nothing,
    /// The plan was only shown.
    Planned,
    Written,
}

/// The commands of the user's servers, in whichever file they are.
fn own_commands(context: &Context) -> Result<Vec<String>, AppError> {
    let setup = context.app.configs.load(&context.selection)?;
    let entries = setup.loaded.config.servers.values();
    let own = entries.filter(|entry| entry.origin.scope == Scope::User);
    let command = |server: &Server| match &server.kind {
        Kind::Stdio(program) => Some(program.command.clone()),
        Kind::Cli(cli) => Some(cli.program.command.clone()),
        Kind::Http(_) | Kind::Sse(_) | Kind::OpenApi(_) => None,
    };
    Ok(own.filter_map(|entry| command(entry.status.as_ref().ok()?)).collect())
}

/// Finds the servers of the clients.
fn search(context: &Context, args: &ImportArgs, scope: Scope) -> Vec<Found> {
    let own = context.app.configs.files(&context.selection);
    let is_read = |path: &Path| own.iter().any(|one| one.scope == Scope::User && one.path == path);
    let clients = if args.clients.is_empty() { &Client::ALL[..] } else { &args.clients };
    let workspace = context.app.configs.environment.workspace().to_string_lossy().into_owned();
    let projects = if args.all { Projects::All(&workspace) } else { Projects::Only(&workspace) };
    let mut found = Vec::new();
    for client in clients {
        let rules = context.app.clients.rules(*client);
        let writable = context.app.clients.writable(*client, scope);
        let files = context.app.clients.files(*client, scope).into_iter();
        let files = files.map(|path| (writable.contains(&path), path));
        found.extend(in_current_files(files, |path| {
            let name = path.display().to_string();
            let mut of_file = match context.app.clients.text(&path) {
                Ok(text) => find(*client, &SourceFile::new(name, scope, text), projects, &rules),
                Err(failure) => vec![unreadable(*client, name, failure.message)],
            };
            for found in &mut of_file {
                found.read_directly = is_read(&path);
            }
            of_file
        }));
    }
    found
}

/// The servers of a client's files; each comes with whether it is written to.
///
/// A client reads an older file, which nothing is written to, only while the newer ones have no
/// server.
pub(super) fn in_current_files<F>(
    files: impl Iterator<Item = (bool, F)>,
    mut read: impl FnMut(F) -> Vec<Found>,
) -> Vec<Found> {
    let mut all = Vec::new();
    for (is_written, file) in files {
        if is_written || all.is_empty() {
            all.extend(read(file));
        }
    }
    all
}

/// The handling of secrets if no person is asked: as `--secrets` says, else kept as they are unless
/// the file is a project's.
pub(super) fn chosen(secrets: Option<SecretsArg>, file: &ConfigFile) -> Secrets {
    match (secrets, file.scope) {
        (Some(SecretsArg::Env), _) | (None, Scope::Project) => Secrets::Reference,
        (Some(SecretsArg::Keep), _) | (None, Scope::Managed | Scope::Flag | Scope::User) => {
            Secrets::Keep
        }
    }
}

pub(super) fn is_watched(context: &Context) -> bool {
    stdin_is_terminal() && stderr_is_terminal() && !context.print.wants_json()
}

pub(super) fn ask_about_secrets(made: &Plan) -> Result<Secrets, AppError> {
    let names = names(made.secrets.iter().map(String::as_str));
    let question = format!("The files of {names} contain secrets. Copy them?");
    let options = ["yes, copy them", "no, use variables, which you set"];
    match Terminal.select(&question, &options, 0) {
        Ok(0) => Ok(Secrets::Keep),
        Ok(_) => Ok(Secrets::Reference),
        Err(_) => Err(AppError::denied("nothing was written")),
    }
}

fn confirmed(made: &Plan, file: &ConfigFile) -> bool {
    let count = counted(made.names().count(), "server", "servers");
    let question = format!("Write {count} to {}?", file.path.display());
    Terminal.confirm(&question, Some(true)).unwrap_or(false)
}

/// Refuses to copy secrets to a file that others can read.
pub(super) fn refuse_open_secrets(
    context: &Context,
    made: &Plan,
    file: &ConfigFile,
) -> Result<(), AppError> {
    if made.secrets.is_empty() {
        return Ok(());
    }
    let (names, path) = (names(made.secrets.iter().map(String::as_str)), file.path.display());
    let hint = "`--secrets env` replaces them by variables";
    if file.scope == Scope::Project {
        let message = format!("secrets of {names} must not be in a project's file");
        return Err(AppError::usage(message).hint(hint));
    }
    if !context.app.clients.is_private(file) {
        let message = format!("the secrets of {names} are not copied: others can read {path}");
        return Err(AppError::usage(message).hint(format!("`chmod 600 {path}`, or {hint}")));
    }
    Ok(())
}

/// Fails if a client's file cannot be read at all, so that its servers are not known.
fn refuse_unreadable(context: &Context, made: &Plan) -> Result<(), AppError> {
    let unread = made.rows.iter().find_map(|row| match &row.state {
        State::Unusable { reason } if row.server.is_empty() => Some((&row.file, reason)),
        State::Unusable { .. }
        | State::New { .. }
        | State::Same { .. }
        | State::Differs { .. }
        | State::Itself
        | State::ReadDirectly
        | State::Inside { .. } => None,
    });
    let Some((file, reason)) = unread else { return Ok(()) };
    let file = context.app.clients.shown_path(file);
    Err(AppError::config(format!("{file} cannot be read: {reason}"))
        .hint("repair the file, then import again"))
}

/// Reports that no servers were found.
fn nothing(context: &Context, args: &ImportArgs, file: &ConfigFile) -> Result<Exit, AppError> {
    if !args.clients.is_empty() {
        let titles: Vec<&str> = args.clients.iter().map(|client| client.title()).collect();
        let message = format!("no servers of {} were found", titles.join(", "));
        return Err(
            AppError::not_found(message).hint("`capstan --config FILE list` reads any other file")
        );
    }
    if context.print.wants_json() {
        let none: [(); 0] = [];
        context.print.json(&json!({
            "file": file.path, "limits": none, "servers": none, "variables": none, "written": false
        }));
    }
    context.print.note("no other client has servers configured");
    Ok(Exit::Ok)
}

fn show(context: &Context, made: &Plan, file: &ConfigFile) {
    if context.print.wants_json() {
        return;
    }
    let cells: Vec<Vec<String>> = made
        .rows
        .iter()
        .map(|row| {
            let RowCells { place, server } = row_cells(context, row);
            let client = row.client.as_str().to_owned();
            vec![client, place, server, row.target.clone(), state(&row.state)]
        })
        .collect();
    let headers = ["CLIENT", "FILE", "SERVER", "TARGET", "STATE"];
    context.print.table(&headers, &cells);
    // The table may be too narrow for the reasons, which are what the user has to act on.
    for row in made.rows.iter().filter(|_| width().is_some()) {
        if let State::Unusable { .. } = &row.state {
            let (client, server) = (row.client.as_str(), &row.server);
            context.print.warning(&format!("{client} `{server}` {}", state(&row.state)));
        }
    }
    let written = |state: &State| matches!(state, State::New { .. } | State::Differs { .. });
    for row in made.rows.iter().filter(|row| written(&row.state)) {
        for note in &row.notes {
            context.print.warning(&format!("{} `{}`: {note}", row.client.as_str(), row.server));
        }
    }
    tell_secrets(context, made, file);
    tell_variables(context, &made.variables, "is in");
}

/// The cells of a table that each plan has for a server.
pub(super) struct RowCells {
    pub(super) place: String,
    pub(super) server: String,
}

pub(super) fn row_cells(context: &Context, row: &Row) -> RowCells {
    let file = context.app.clients.shown_path(&row.file);
    let place = match &row.project {
        Some(project) => format!("{file} (for {project})"),
        None => file,
    };
    let server = if row.server.is_empty() { "(all)" } else { &row.server };
    RowCells { place, server: server.to_owned() }
}

/// Reports what becomes of secrets, and limits that apply to all servers.
pub(super) fn tell_secrets(context: &Context, made: &Plan, file: &ConfigFile) {
    if !made.secrets.is_empty() {
        let (names, path) = (names(made.secrets.iter().map(String::as_str)), file.path.display());
        if context.app.clients.is_private(file) {
            context.print.note(&format!("secrets of {names} are copied to {path}"));
            context.print.hint("`--secrets env` replaces them by variables");
        } else {
            let why = format!(
                "secrets of {names} are not copied to {path}, because other users can read it"
            );
            context.print.warning(&format!("{why}; nothing is written"));
            context.print.hint(&format!("`chmod 600 {path}`, or `--secrets env`"));
        }
    }
    for limit in &made.limits {
        let path = file.path.display();
        context
            .print
            .note(&format!("`{limit}` is imported too, and applies to all servers of {path}"));
    }
}

fn state(state: &State) -> String {
    match state {
        State::New { .. } => "new".to_owned(),
        State::Same { name, apart_from } if apart_from.is_empty() => format!("same as `{name}`"),
        State::Same { name, apart_from } => {
            format!("same as `{name}`, whose {} is kept", apart_from.join(", "))
        }
        State::Differs { from, name } => format!("differs from `{from}`, becomes `{name}`"),
        State::Itself => "runs capstan itself, left out".to_owned(),
        State::ReadDirectly => "read directly, not copied".to_owned(),
        State::Inside { reason } => format!("left out: {reason}"),
        State::Unusable { reason } => format!("cannot be used: {reason}"),
    }
}

/// Lists variables that must be set; `is_in` is the verb for the file with the value.
pub(super) fn tell_variables(context: &Context, variables: &[Variable], is_in: &str) {
    for variable in variables {
        let (name, server) = (&variable.name, &variable.server);
        let value = match &variable.value_in {
            Some(file) => format!("its value {is_in} {file}"),
            None => "the client prompts for its value".to_owned(),
        };
        context.print.note(&format!("`{server}` needs the variable {name}: {value}"));
    }
}

fn finish(context: &Context, made: &Plan, file: &ConfigFile, outcome: Outcome) {
    if context.print.wants_json() {
        context.print.json(&json!({
            "file": file.path,
            "limits": made.limits,
            "servers": made.rows,
            "variables": made.variables,
            "written": outcome == Outcome::Written,
        }));
    }
    let count = counted(made.names().count(), "server", "servers");
    let path = file.path.display();
    match outcome {
        Outcome::Nothing => context.print.note("there is nothing new"),
        Outcome::Planned => {
            context.print.note(&format!("{count} would be written to {path}"));
            context.print.hint("add `--yes` to write");
        }
        Outcome::Written => {
            context.print.note(&format!("wrote {count} to {path}"));
            context.print.note("next: `capstan list` shows their states");
        }
    }
}

pub(super) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
