//! One file: its servers and its tables, with everything that is wrong in it.

use capstan_model::ServerName;

use crate::dialect;
use crate::expand::{Expander, MissingEnv, join};
use crate::fields::Fields;
use crate::problem::{Problem, Report, Severity};
use crate::server::{Server, ServerEntry};
use crate::show::{self, Shown};
use crate::source::{SourceFile, Surroundings};
use crate::tree::{Entry, Node, Table};
use crate::units::show_duration;

use super::server::{self, Limits};
use super::tables::{self, Tables};

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub(crate) servers: Vec<ShownServer>,
    pub(crate) tables: Tables,
    pub(crate) problems: Vec<Problem>,
}

/// A server together with what `config show` says of it.
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
    part: Part,
}

// === impl Part ===

impl Part {
    pub(crate) fn read(file: &SourceFile, around: Surroundings<'_>, limits: Limits) -> Self {
        let tree = match dialect::read(file) {
            Ok(tree) => tree,
            Err(problem) => return Self { problems: vec![*problem], ..Self::default() },
        };
        let missing = missing_env(&tree);
        let expander = Expander { around, missing };
        let mut reading = Reading { file, expander, limits, part: Self::default() };
        reading.tables(&tree);
        reading.servers(&tree);
        let mut part = reading.part;
        part.problems.sort_by_key(|problem| problem.place.as_ref().map(|place| place.start));
        part
    }
}

// === impl Reading ===

impl Reading<'_> {
    /// Reads everything but the servers; `servers` itself must be a table.
    fn tables(&mut self, tree: &Table) {
        let mut rest = tree.clone();
        let mut report = Report::new(self.file);
        let servers = rest.entries.shift_remove("servers");
        self.expander.expand(&mut rest, "", &mut report);
        rest.entries.extend(servers.map(|entry| ("servers".to_owned(), entry)));
        let rest = rest;
        let mut fields = Fields::new(&rest, "", &(0..0), &mut report);
        fields.nested("servers");
        self.part.tables = tables::read(&mut fields);
        fields.finish();
        self.part.problems.append(&mut report.problems);
    }

    fn servers(&mut self, tree: &Table) {
        let Some(servers) = tree.table("servers") else { return };
        let mut taken: Vec<ServerName> = Vec::new();
        for (display, entry) in &servers.entries {
            let key = join("servers", display);
            let mut report = Report::new(self.file);
            let Some(name) = server::slug(display) else {
                let problem = Problem::error("a server has an empty name")
                    .help("give it a name: `[servers.NAME]`");
                report.add(problem, key, &entry.key);
                self.part.problems.append(&mut report.problems);
                continue;
            };
            if taken.contains(&name) {
                let problem = Problem::error(format!("`{display}` is the second server `{name}`"))
                    .help("names that differ only in case or signs are the same; rename one");
                report.add(problem, key, &entry.key);
                self.part.problems.append(&mut report.problems);
                continue;
            }
            taken.push(name.clone());
            self.server(display, name, entry);
        }
    }

    fn server(&mut self, display: &str, name: ServerName, entry: &Entry) {
        let key = join("servers", display);
        let mut report = Report::about_server(self.file, name.clone());
        let mut node = entry.node.clone();
        let enabled = node.as_table().is_none_or(server::is_enabled);
        self.expander.node(&mut node, &key, &mut report);
        if !enabled {
            // What a server that is switched off lacks, nobody misses.
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
        let broken = report.first_error().cloned();
        let status = match (server, broken) {
            (Some(server), None) => Ok(server),
            (_, Some(problem)) => Err(problem),
            // Every way not to become a server reports an error; this keeps it so.
            (None, None) => Err(Problem::error(format!("`{key}` cannot be read"))),
        };
        let origin = self.file.origin(&entry.key);
        let shown = self.shown(&node, &key, status.as_ref().ok());
        let display = display.to_owned();
        let approved = self.file.approved;
        let entry = ServerEntry { name, display, origin, approved, enabled, status };
        self.part.servers.push(ShownServer { entry, shown });
        self.part.problems.append(&mut report.problems);
    }

    /// The values of a server, with the time limits that others set for it.
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

/// What the file says of unset variables; needed before anything else is read.
fn missing_env(tree: &Table) -> MissingEnv {
    let word = tree.table("mcp").and_then(|mcp| mcp.get("missing_env"));
    match word.and_then(|entry| entry.node.as_text()) {
        Some("empty") => MissingEnv::Empty,
        Some(_) | None => MissingEnv::Error,
    }
}
