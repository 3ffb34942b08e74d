//! Reads one file: its servers, its tables and its problems.

use capstan_model::{Secret, ServerName};

use crate::fields::Fields;
use crate::redact::scrub;
use crate::settings::server::{Server, ServerEntry};
use crate::show::{self, Shown};
use crate::source::Dialect;
use crate::source::expand::{Expander, MissingEnv, join};
use crate::source::problem::{Problem, Report, Severity};
use crate::source::reader::{AutoAllow, Conventions, FileReader, Opened};
use crate::source::tree::{Entry, Node, Table};
use crate::source::{Origin, SourceFile, Surroundings};
use crate::units::show_duration;

use super::auth;
use super::server::{self, Limits};
use super::tables::{self, Tables};

/// The help for two names with the same slug.
pub(crate) const SAME_NAME: &str = "rename one of them; names that differ only in case, \
    punctuation or after 32 characters are the same";

/// The content of one file.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) servers: Vec<ShownServer>,
    pub(crate) tables: Tables,
    pub(crate) problems: Vec<Problem>,
    /// The conventions of its dialect, which the merge needs.
    pub(crate) conventions: Conventions,
    pub(crate) dialect: Option<Dialect>,
}

/// A server with its values for `config show`.
#[derive(Debug)]
pub(crate) struct ShownServer {
    pub(crate) entry: ServerEntry,
    pub(crate) shown: Vec<Shown>,
}

/// A file being read.
struct Reading<'a> {
    file: &'a SourceFile,
    expander: Expander<'a>,
    limits: Limits,
    /// Values of the file's settings that must not be shown.
    secrets: &'a [Secret<String>],
    /// Problems that the translation of the file found.
    found: Vec<Problem>,
    part: Part,
}

// === impl Part ===

impl Part {
    pub(crate) fn read(
        file: &SourceFile,
        around: Surroundings<'_>,
        reader: &dyn FileReader,
        limits: Limits,
    ) -> Self {
        let Opened { file, tree, problems: found, conventions } = match reader.open(file, around) {
            Ok(opened) => opened,
            Err(problem) => return Self { problems: vec![*problem], ..Self::default() },
        };
        let missing = missing_env(&tree).unwrap_or(conventions.missing);
        let (forms, inputs, plugin) =
            (conventions.forms, &conventions.inputs, file.plugin.as_ref());
        let expander = Expander { around, missing, forms, inputs, plugin };
        let (secrets, part) = (conventions.secrets.as_slice(), Self::default());
        let mut reading = Reading { file: &file, expander, limits, secrets, found, part };
        reading.tables(&tree);
        reading.servers(&tree);
        reading.auto_allows(&conventions.auto_allows);
        let mut part = reading.part;
        part.problems.append(&mut reading.found);
        part.tables.reach = file.reach();
        (part.dialect, part.conventions) = (file.dialect, conventions);
        part.problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.start));
        // One key of another program may set two native ones, and then is reported twice.
        part.problems.dedup();
        let broken = part.servers.iter_mut().filter_map(|it| it.entry.status.as_mut().err());
        scrub(&file.path, &file.text, part.problems.iter_mut().chain(broken));
        part
    }
}

// === impl Reading ===

impl Reading<'_> {
    /// Reads everything but the servers, and checks that `servers` is a table.
    fn tables(&mut self, tree: &Table) {
        let mut rest = tree.clone();
        let mut report = Report::new(self.file);
        let servers = rest.entries.shift_remove("servers");
        let auth = auth::take(&mut rest);
        // A key of a model that is not set stops only conversations with the model.
        let mut model = rest.entries.shift_remove_entry("model");
        self.expander.expand(&mut rest, "", &mut report);
        let unset = auth.map(|auth| auth.expand(&self.expander, &mut rest, &mut report));
        if let Some((key, entry)) = &mut model {
            let expander = Expander { missing: MissingEnv::Empty, ..self.expander };
            expander.node(&mut entry.node, key, &mut report);
        }
        rest.entries.extend(model);
        rest.entries.extend(servers.map(|entry| ("servers".to_owned(), entry)));
        let rest = rest;
        let mut fields = Fields::new(&rest, "", &(0..0), &mut report);
        fields.nested("servers");
        self.part.tables = tables::read(&mut fields);
        fields.finish();
        self.part.tables.gateway.auth.refused.extend(unset.into_iter().flatten());
        self.part.problems.append(&mut report.problems);
    }

    fn servers(&mut self, tree: &Table) {
        let Some(servers) = tree.table("servers") else { return };
        let mut taken: Vec<(ServerName, &str, Origin)> = Vec::new();
        for (display, entry) in &servers.entries {
            let key = path_of(display, entry);
            let mut report = Report::new(self.file);
            let Some(name) = server::slug(display) else {
                let problem = Problem::error("a server has an empty name")
                    .help("give it a name: `[servers.NAME]`");
                report.add(problem, key, &entry.key);
                self.part.problems.append(&mut report.problems);
                continue;
            };
            if let Some((_, other, origin)) = taken.iter().find(|(taken, ..)| *taken == name) {
                let message = format!(
                    "`{display}` is not used: `{other}` ({origin}) has the same name, `{name}`"
                );
                report.add(Problem::error(message).help(SAME_NAME), key, &entry.key);
                self.part.problems.append(&mut report.problems);
                continue;
            }
            taken.push((name.clone(), display, self.file.origin(&entry.key)));
            self.server(display, name, entry);
        }
    }

    fn server(&mut self, display: &str, name: ServerName, entry: &Entry) {
        let key = path_of(display, entry);
        let mut report = Report::about_server(self.file, name.clone());
        report.problems.extend(self.found_about(&name));
        let mut node = entry.node.clone();
        let enabled = node.as_table().is_none_or(server::is_enabled);
        self.expander.node(&mut node, &key, &mut report);
        if !enabled {
            // Errors of the translation and expansion do not matter in a disabled server: they
            // become warnings, and its warnings are dropped.
            report.problems.retain(|problem| problem.severity == Severity::Error);
            for problem in &mut report.problems {
                problem.severity = Severity::Warning;
            }
        }
        let node = node;
        let server = if let Some(table) = node.as_table() {
            let mut fields = Fields::new(table, key.clone(), &entry.key, &mut report);
            server::check_name(&mut fields, display, &name, &entry.key);
            server::read(fields, self.limits)
        } else {
            let problem = Problem::error(format!("`{key}` must be a table"))
                .help(format!("write `[{key}]` and its keys below"));
            report.add(problem, key.clone(), &node.span);
            None
        };
        if node.as_table().is_some_and(runs_capstan) {
            let message = format!("`{key}` starts Capstan itself; it is not used");
            let problem = Problem::warning(message).help("you can keep it for the other program");
            report.problems.clear();
            report.add(problem, key, &entry.key);
            self.part.problems.append(&mut report.problems);
            return;
        }
        let broken = report.first_error(&key).cloned();
        let status = match (server, broken) {
            (Some(server), None) => Ok(server),
            (_, Some(problem)) => Err(problem),
            // Unreachable as long as every failure reports an error; fails closed if one does not.
            (None, None) => Err(Problem::error(format!("`{key}` cannot be read"))),
        };
        let origin = self.file.origin(&entry.key);
        let shown = self.shown(&node, &join("servers", display), status.as_ref().ok());
        let display = display.to_owned();
        let approved = self.file.approved;
        let secrets = self.secrets.to_vec();
        let entry = ServerEntry { name, display, origin, approved, enabled, secrets, status };
        self.part.servers.push(ShownServer { entry, shown });
        self.part.problems.append(&mut report.problems);
    }

    /// Adds the rules for tools that the file lets run without asking.
    fn auto_allows(&mut self, auto_allows: &[AutoAllow]) {
        for allowed in auto_allows {
            let mut report = Report::about_server(self.file, allowed.server.clone());
            self.part.tables.rules.auto_allow(allowed, &mut report);
            self.part.problems.append(&mut report.problems);
        }
    }

    /// Takes the problems that the translation found with a server.
    fn found_about(&mut self, name: &ServerName) -> Vec<Problem> {
        let about = |problem: &mut Problem| problem.server.as_ref() == Some(name);
        self.found.extract_if(.., about).collect()
    }

    /// The values of a server, with time limits that come from the environment or the defaults.
    fn shown(&self, node: &Node, key: &str, server: Option<&Server>) -> Vec<Shown> {
        let mut shown = show::server(node, key, self.file, server);
        let Limits { timeout, startup_timeout } = self.limits;
        for (name, limit) in [("timeout", timeout), ("startup_timeout", startup_timeout)] {
            if server.is_some() && node.as_table().is_some_and(|table| table.get(name).is_none()) {
                let value = show::text(&show_duration(limit.time));
                shown.push(Shown { key: join(key, name), value, origin: limit.origin.to_owned() });
            }
        }
        shown
    }
}

/// The file's policy for unset variables, which is needed before anything else is read.
fn missing_env(tree: &Table) -> Option<MissingEnv> {
    let word = tree.table("mcp").and_then(|mcp| mcp.get("missing_env"));
    match word?.node.as_text() {
        Some("empty") => Some(MissingEnv::Empty),
        Some(_) | None => Some(MissingEnv::Error),
    }
}

/// The dotted path of a server as its file spells it.
fn path_of(display: &str, entry: &Entry) -> String {
    entry.path.clone().unwrap_or_else(|| join("servers", display))
}

/// True if an entry starts Capstan's own gateway. Used as a server, it would call itself.
pub fn runs_capstan(server: &Table) -> bool {
    let command = server.get("command").and_then(|entry| entry.node.as_text());
    let program = command.and_then(|command| command.rsplit(['/', '\\']).next());
    let args = server.get("args").and_then(|entry| entry.node.as_list()).unwrap_or_default();
    matches!(program, Some("capstan" | "capstan.exe"))
        && args.iter().any(|arg| arg.as_text() == Some("serve"))
}
