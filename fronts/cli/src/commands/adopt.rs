//! `capstan adopt`: moves a client's servers to Capstan, and moves them back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use capstan_app::{
    AdoptableFile, Adopted, AppError, ClientMove, ConfigFile, Installed, Mode, UndoneAdoption,
    Uninstalled,
};
use capstan_config::{Dialect, RESTRICTING_KEYS, Scope, SourceFile};
use capstan_import::Client;
use capstan_import::clients::{ClientConnection, ServerKey};
use capstan_import::servers::{
    ClientRules, Found, Plan, Projects, Row, Secrets, State, Variable, find, plan,
};
use capstan_text::form::{Prompter, Terminal};
use serde_json::{Value as Json, json};

use super::add::scope_of;
use super::check::check;
use super::import::{
    RowCells, ask_about_secrets, chosen, in_current_files, is_watched, names, refuse_open_secrets,
    row_cells, tell_secrets, tell_variables,
};
use super::install::{file_of, started, tell_backup, tell_shared};
use crate::args::{AdoptArgs, ConfirmArg, ScopeArg};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{counted, set};

/// A variable that Capstan sets itself.
const OWN_VARIABLE: &str = "CAPSTAN_PROJECT_DIR";

/// The files of an adoption.
struct Adoption<'a> {
    context: &'a Context,
    args: &'a AdoptArgs,
    /// The client's file that gets the entry.
    entry: PathBuf,
    /// The files that the client's servers are in.
    files: Vec<AdoptableFile>,
    /// Capstan's file.
    config: ConfigFile,
    native: SourceFile,
}

/// The outcome for a server of the client.
enum Fate<'a> {
    /// It moves, and has this name in Capstan.
    Moves(&'a str),
    /// It stays in the client's file, for this reason.
    Stays(String),
}

pub(crate) async fn run(context: &Context, args: &AdoptArgs) -> Result<Exit, AppError> {
    if args.undo {
        return undo(context, args);
    }
    let adoption = Adoption::open(context, args)?;
    let mut only = args.servers.clone();
    let mut secrets = chosen(args.secrets, &adoption.config);
    let mut plan = adoption.plan(&only, secrets)?;
    adoption.refuse_nothing(&plan)?;
    let asks = !args.yes && !args.at.dry_run && is_watched(context);
    adoption.show(&plan);
    if asks && only.is_empty() {
        only = choose(&plan)?;
        plan = adoption.plan(&only, secrets)?;
    }
    if asks && args.secrets.is_none() && !plan.secrets.is_empty() {
        secrets = ask_about_secrets(&plan)?;
        plan = adoption.plan(&only, secrets)?;
        tell_variables(context, &adoption.variables(&plan, Mode::Do), "will be in");
    }
    let mut confirm = args.confirm;
    if asks && confirm.is_none() {
        confirm = Some(ask_who_confirms(args.at.client)?);
    }
    if asks || args.yes {
        refuse_open_secrets(context, &plan, &adoption.config)?;
    }
    if asks && !adoption.confirmed(&plan) {
        return Err(AppError::denied("nothing was written"));
    }
    let mode = if asks || args.yes { Mode::Do } else { Mode::Try };
    let way = started(context, args.at.scope, confirm)?;
    let moved = adoption.moved(&plan, &way);
    let used = moved.used.clone();
    let adopted = context.app.clients.adopt(&context.app.configs, &moved, mode)?;
    adoption.finish(&plan, &adopted, mode);
    let checked = match mode {
        Mode::Do => check(context, &args.check, &used).await,
        Mode::Try => Vec::new(),
    };
    if context.print.wants_json() {
        let mut told = adoption.told(&plan, &adopted, mode);
        if args.check.check {
            set(&mut told, "checked", checked);
        }
        context.print.json(&told);
    }
    Ok(Exit::Ok)
}

fn undo(context: &Context, args: &AdoptArgs) -> Result<Exit, AppError> {
    let client = args.at.client;
    let entry = file_of(context, &args.at)?;
    let mode = if args.at.dry_run { Mode::Try } else { Mode::Do };
    let undone = context.app.clients.undo_adoption(&context.app.configs, client, &entry, mode)?;
    if context.print.wants_json() {
        let UndoneAdoption { files, config, config_change, kept } = &undone;
        let files = files.iter().map(|(file, change)| with_file(file, change));
        context.print.json(&json!({
            "client": client,
            "config": with_file(config, config_change),
            "files": files.collect::<Vec<_>>(),
            "kept": kept,
            "written": mode == Mode::Do,
        }));
    }
    let would = if mode == Mode::Try { "would be " } else { "" };
    for (file, change) in &undone.files {
        let file = file.display();
        context.print.note(&match change {
            Uninstalled::Restored => format!("{file}: {would}restored exactly"),
            Uninstalled::Removed => format!("{file}: {would}removed; Capstan had created it"),
            Uninstalled::TakenOut { .. } => format!(
                "{file}: the servers {would}put back, and the entry {would}removed; the file has \
                 changed since"
            ),
            Uninstalled::Nothing => format!("{file}: has its servers already"),
        });
        if let (Uninstalled::TakenOut { backup: Some(backup) }, Mode::Do) = (change, mode) {
            tell_backup(context, backup);
        }
    }
    let config = undone.config.display();
    context.print.note(&match undone.config_change {
        Uninstalled::Restored => format!("{config}: {would}restored exactly"),
        Uninstalled::Removed => format!("{config}: {would}removed; Capstan had created it"),
        Uninstalled::TakenOut { .. } => format!("{config}: the servers {would}removed"),
        Uninstalled::Nothing => format!("{config}: nothing to remove"),
    });
    if !undone.kept.is_empty() {
        let names = names(undone.kept.iter().map(String::as_str));
        context.print.note(&format!("{names} stay in Capstan: another adopted client uses them"));
    }
    if mode == Mode::Do {
        context.print.note(&format!("restart {}", client.title()));
    }
    Ok(Exit::Ok)
}

// === impl Adoption ===

impl<'a> Adoption<'a> {
    fn open(context: &'a Context, args: &'a AdoptArgs) -> Result<Self, AppError> {
        let scope = scope_of(args.at.scope);
        let entry = file_of(context, &args.at)?;
        let files = context.app.clients.adoptable(args.at.client, scope, &entry)?;
        let config = context.app.configs.target(Some(scope));
        let text = context.app.clients.text(&config.path)?;
        let native = SourceFile {
            dialect: Some(Dialect::Native),
            ..SourceFile::new(config.path.display().to_string(), scope, text)
        };
        Ok(Self { context, args, entry, files, config, native })
    }

    /// Plans the move of the servers of these names; of all, if there are none.
    fn plan(&self, only: &[String], secrets: Secrets) -> Result<Plan, AppError> {
        let mut found = self.found();
        let is_there = |name: &&String| found.iter().all(|found| found.display != **name);
        if let Some(unknown) = only.iter().find(is_there) {
            let title = self.args.at.client.title();
            let message = format!("{title} has no server `{unknown}`");
            let known = names(found.iter().map(|found| found.display.as_str()));
            return Err(AppError::not_found(message).hint(format!("its servers are {known}")));
        }
        found.retain(|found| only.is_empty() || only.contains(&found.display));
        let plan = plan(found, &self.native, secrets);
        plan.map_err(|problem| AppError::problems(vec![*problem], vec![self.native.clone()]))
    }

    /// The servers in the client's files.
    fn found(&self) -> Vec<Found> {
        let client = self.args.at.client;
        let workspace = self.context.app.configs.environment.workspace();
        let workspace = workspace.to_string_lossy();
        let projects =
            if self.args.all { Projects::All(&workspace) } else { Projects::Only(&workspace) };
        let scope = scope_of(self.args.at.scope);
        let rules = self.context.app.clients.rules(client);
        in_current_files(self.files.iter().map(|file| (file.is_written, file)), |file| {
            let name = file.path.display().to_string();
            find(client, &SourceFile::new(name, scope, file.text.clone()), projects, &rules)
        })
    }

    /// Fails if the client has no server that can move.
    fn refuse_nothing(&self, plan: &Plan) -> Result<(), AppError> {
        let (title, word) = (self.args.at.client.title(), self.args.at.client.as_str());
        let hint = format!("`capstan install {word}` adds Capstan to it");
        if plan.rows.iter().all(|row| row.state == State::Itself) {
            let message = format!("{title} has no servers of its own");
            return Err(AppError::not_found(message).hint(hint));
        }
        if plan.rows.iter().all(|row| matches!(fate(row), Fate::Stays(_))) {
            self.show(plan);
            let message = format!("no server of {title} can be moved");
            return Err(AppError::config(message).hint(format!("{hint}, beside its servers")));
        }
        Ok(())
    }

    fn show(&self, plan: &Plan) {
        let Self { context, config, .. } = self;
        if context.print.wants_json() {
            return;
        }
        let cells: Vec<Vec<String>> = plan
            .rows
            .iter()
            .map(|row| {
                let RowCells { place, server } = row_cells(context, row);
                let state = match fate(row) {
                    Fate::Moves(name) if name == row.server => "moves".to_owned(),
                    Fate::Moves(name) => format!("moves, as `{name}`"),
                    Fate::Stays(_) => "stays".to_owned(),
                };
                vec![server, place, row.target.clone(), state]
            })
            .collect();
        context.print.table(&["SERVER", "FILE", "TARGET", "STATE"], &cells);
        for row in &plan.rows {
            if let Fate::Stays(reason) = fate(row) {
                context.print.warning(&format!("`{}` stays: {reason}", row.server));
                continue;
            }
            for note in &row.notes {
                context.print.warning(&format!("`{}`: {note}", row.server));
            }
        }
        tell_secrets(context, plan, config);
        tell_variables(context, &self.variables(plan, Mode::Do), "will be in");
        for Variable { name, server, .. } in self.unset(plan) {
            context
                .print
                .warning(&format!("`{server}` needs the variable {name}, which is not set"));
        }
        self.tell_project();
    }

    /// The variables that must be set, each with the file that has its value after the move. A
    /// changed file loses its servers, and its backup keeps them.
    fn variables(&self, plan: &Plan, mode: Mode) -> Vec<Variable> {
        let edits = &self.context.app.clients.edits;
        let is_changed = |path: &Path| {
            mode == Mode::Do && self.files.iter().any(|file| file.path == path && file.is_written)
        };
        let mut variables = plan.variables.clone();
        for place in variables.iter_mut().filter_map(|variable| variable.value_in.as_mut()) {
            if is_changed(Path::new(place)) {
                *place = edits.backup_path(Path::new(place)).display().to_string();
            }
        }
        variables
    }

    /// Variables of the moved servers that are not set here.
    fn unset(&self, plan: &Plan) -> Vec<Variable> {
        let environment = &self.context.app.configs.environment;
        let is_set = |name: &str| name == OWN_VARIABLE || environment.variable(name).is_some();
        let mut unset = plan.references();
        unset.retain(|variable| !is_set(&variable.name));
        unset
    }

    /// Reports that the client has more servers for this project.
    fn tell_project(&self) {
        let client = self.args.at.client;
        if self.args.at.scope == ScopeArg::Project {
            return;
        }
        let clients = &self.context.app.clients;
        for path in clients.files(client, Scope::Project) {
            // In the home folder, both scopes have the same files.
            if self.files.iter().any(|file| clients.is_same_file(&file.path, &path)) {
                continue;
            }
            let Ok(text) = clients.text(&path) else { continue };
            let file = SourceFile::new(path.display().to_string(), Scope::Project, text);
            let found = find(client, &file, Projects::Only(""), &ClientRules::default());
            if found.iter().any(|found| !found.is_itself()) {
                let word = client.as_str();
                self.context.print.note(&format!(
                    "{} has servers, too; `capstan adopt {word} --scope project` moves them",
                    path.display()
                ));
            }
        }
    }

    fn moved<'m>(&'m self, plan: &'m Plan, way: &'m ClientConnection) -> ClientMove<'m> {
        let (mut taken, mut used) = (BTreeMap::<PathBuf, Vec<ServerKey>>::new(), Vec::new());
        for row in &plan.rows {
            let Fate::Moves(name) = fate(row) else { continue };
            used.push(name.to_owned());
            let path = PathBuf::from(&row.file);
            if self.files.iter().any(|file| file.path == path && file.is_written) {
                let key = ServerKey { project: row.project.clone(), server: row.server.clone() };
                taken.entry(path).or_default().push(key);
            }
        }
        ClientMove {
            client: self.args.at.client,
            entry: &self.entry,
            way,
            taken,
            config: &self.config,
            config_text: &self.native.text,
            plan,
            used,
        }
    }

    fn confirmed(&self, plan: &Plan) -> bool {
        let count = plan.rows.iter().filter(|row| matches!(fate(row), Fate::Moves(_))).count();
        let count = counted(count, "server", "servers");
        let question = format!("Move {count} of {} to Capstan?", self.args.at.client.title());
        Terminal.confirm(&question, Some(true)).unwrap_or(false)
    }

    fn finish(&self, plan: &Plan, adopted: &Adopted, mode: Mode) {
        let Self { context, args, entry, config, .. } = self;
        let (title, word) = (args.at.client.title(), args.at.client.as_str());
        let count = plan.rows.iter().filter(|row| matches!(fate(row), Fate::Moves(_))).count();
        let count = counted(count, "server", "servers");
        let (path, entry) = (config.path.display(), entry.display());
        let print = &context.print;
        if mode == Mode::Try {
            print.note(&format!("{count} would move to {path}, and {entry} would get Capstan"));
            print.hint("add `--yes` to write");
            return;
        }
        if adopted.files.iter().all(|(_, change)| *change == Installed::Already) {
            print.note(&format!("{title} uses Capstan already; its servers are in {path}"));
            return;
        }
        print.note(&format!("moved {count} to {path}"));
        print.note(&format!("{title} has one entry in their place, `capstan` ({entry})"));
        if !adopted.returned.is_empty() {
            let names = names(adopted.returned.iter().map(String::as_str));
            print.note(&format!("{names} went back to {title}"));
        }
        for (_, change) in &adopted.files {
            if let Installed::Changed { backup: Some(backup) } = change {
                print.note(&format!("a backup of the file is {}", backup.display()));
            }
        }
        tell_shared(context, args.at.scope);
        let scope = if args.at.scope == ScopeArg::Project { " --scope project" } else { "" };
        print.note(&format!("restart {title}; `capstan adopt {word}{scope} --undo` reverts this"));
    }

    /// The result for programs.
    fn told(&self, plan: &Plan, adopted: &Adopted, mode: Mode) -> Json {
        let servers = plan.rows.iter().map(|row| {
            let mut told = json!({
                "server": row.server, "file": row.file, "target": row.target, "notes": row.notes
            });
            if let Some(project) = &row.project {
                set(&mut told, "project", project);
            }
            match fate(row) {
                Fate::Moves(name) => {
                    set(&mut told, "moves", true);
                    set(&mut told, "name", name);
                }
                Fate::Stays(reason) => {
                    set(&mut told, "moves", false);
                    set(&mut told, "reason", reason);
                }
            }
            told
        });
        let files = adopted.files.iter().map(|(file, change)| with_file(file, change));
        json!({
            "client": self.args.at.client,
            "config": self.config.path,
            "files": files.collect::<Vec<_>>(),
            "limits": plan.limits,
            "returned": adopted.returned,
            "servers": servers.collect::<Vec<_>>(),
            "unset": self.unset(plan),
            "variables": self.variables(plan, mode),
            "written": mode == Mode::Do,
        })
    }
}

/// The outcome for a server, as planned.
fn fate(row: &Row) -> Fate<'_> {
    match &row.state {
        State::New { name } | State::Differs { name, .. } => Fate::Moves(name),
        State::Same { name, apart_from } => {
            // The entry here may be looser than the client's.
            let restricting =
                apart_from.iter().find(|key| RESTRICTING_KEYS.contains(&key.as_str()));
            match restricting {
                None => Fate::Moves(name),
                Some(key) => Fate::Stays(format!(
                    "Capstan has `{name}` with another `{key}`; make the two equal, or remove one"
                )),
            }
        }
        State::Itself => Fate::Stays("it is Capstan itself".to_owned()),
        State::ReadDirectly => Fate::Stays("Capstan reads it directly".to_owned()),
        State::Inside { reason } | State::Unusable { reason } => Fate::Stays(reason.clone()),
    }
}

/// Asks which servers move.
fn choose(plan: &Plan) -> Result<Vec<String>, AppError> {
    let movable: Vec<&str> = plan
        .rows
        .iter()
        .filter(|row| matches!(fate(row), Fate::Moves(_)))
        .map(|row| row.server.as_str())
        .collect();
    if movable.len() < 2 {
        return Ok(Vec::new());
    }
    let all: Vec<usize> = (0..movable.len()).collect();
    let nothing = || AppError::denied("nothing was written");
    let chosen = Terminal.multi_select("Which servers move to Capstan?", &movable, &all);
    let chosen = chosen.map_err(|_| nothing())?;
    if chosen.is_empty() {
        return Err(nothing());
    }
    Ok(chosen.iter().filter_map(|at| movable.get(*at)).map(|name| (*name).to_owned()).collect())
}

fn ask_who_confirms(client: Client) -> Result<ConfirmArg, AppError> {
    let own = format!("{}, in its own dialog", client.title());
    let options = ["Capstan, once for each tool, and remembered", own.as_str()];
    match Terminal.select("Who asks you before a call that changes something?", &options, 0) {
        Ok(0) => Ok(ConfirmArg::Capstan),
        Ok(_) => Ok(ConfirmArg::Client),
        Err(_) => Err(AppError::denied("nothing was written")),
    }
}

/// The change of a file, for programs.
fn with_file(file: &Path, change: &impl serde::Serialize) -> Json {
    let mut told = json!(change);
    set(&mut told, "file", file);
    told
}
