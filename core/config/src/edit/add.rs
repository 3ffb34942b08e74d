//! Adds a server.

use std::time::Duration;

use capstan_safety::address::Network;
use indexmap::IndexMap;
use toml_edit::{Array, InlineTable, Item, Table, Value, value};

use crate::merge::load;
use crate::read::server::slug;
use crate::source::Dialect;
use crate::source::problem::{Problem, Severity};
use crate::source::reader::NativeFiles;
use crate::source::{Scope, SourceFile, Surroundings};
use crate::units::show_duration;

use super::EditError;
use super::document::{self, Editing, positions};

/// A server to be added.
#[derive(Clone, Debug)]
pub struct NewServer {
    /// The way to reach it.
    pub target: NewTarget,
    /// Its description.
    pub description: Option<String>,
    /// The time limit of a call.
    pub timeout: Option<Duration>,
    /// True if its tools run without asking.
    pub trust: bool,
    /// Private networks in which the server may be reached.
    pub networks: Vec<Network>,
    /// The only tools it offers; empty means all.
    pub expose: Vec<String>,
    /// Tools it never offers.
    pub hide: Vec<String>,
}

/// The way to reach a new server.
#[derive(Clone, Debug)]
pub enum NewTarget {
    /// A process that speaks MCP.
    Stdio(NewProgram),
    /// A command-line program.
    Cli(NewProgram),
    /// Streamable HTTP.
    Http(NewRemote),
    /// The older HTTP transport with server-sent events.
    Sse(NewRemote),
    /// An OpenAPI document.
    OpenApi(NewDocument),
}

/// An OpenAPI document.
#[derive(Clone, Debug, Default)]
pub struct NewDocument {
    /// Its address, or its path from the folder of the configuration file.
    pub document: String,
    /// Headers sent with every request.
    pub headers: IndexMap<String, String>,
}

/// A program to start.
#[derive(Clone, Debug, Default)]
pub struct NewProgram {
    /// The executable.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables set for it.
    pub env: IndexMap<String, String>,
}

/// A remote server.
#[derive(Clone, Debug, Default)]
pub struct NewRemote {
    /// Its address.
    pub url: String,
    /// Headers sent with every request.
    pub headers: IndexMap<String, String>,
}

/// Adds a server after the existing ones.
pub fn add_server(text: &str, name: &str, entry: &NewServer) -> Result<String, EditError> {
    let edited = add_table(text, name, entry.table())?;
    let url = match &entry.target {
        NewTarget::Http(remote) | NewTarget::Sse(remote) => Some(remote.url.as_str()),
        NewTarget::Stdio(_) | NewTarget::Cli(_) | NewTarget::OpenApi(_) => None,
    };
    // Any file: the rule for paths of the user's own file is checked when that file is read.
    match refusal(&edited, name, url, Scope::Flag) {
        Some(problem) => Err(EditError::Refused { reason: problem.message, help: problem.help }),
        None => Ok(edited),
    }
}

/// Adds a server, or replaces its entry where it stands.
pub fn put_server(text: &str, name: &str, entry: &NewServer) -> Result<String, EditError> {
    let Ok(existing) = Editing::open(text)?.name_of(name) else {
        return add_server(text, name, entry);
    };
    // Alone, because the rest of the file does not matter to the entry.
    add_server("", &existing, entry)?;
    let mut editing = Editing::open(text)?;
    let new = entry.table();
    match editing.server(&existing)? {
        Item::Table(table) => {
            table.clear();
            table.set_implicit(false);
            table.extend(new);
        }
        other @ (Item::None | Item::Value(_) | Item::ArrayOfTables(_)) => {
            let decor = other.as_value().map(|value| value.decor().clone());
            *other = value(new.into_inline_table());
            if let (Some(value), Some(decor)) = (other.as_value_mut(), decor) {
                *value.decor_mut() = decor;
            }
        }
    }
    Ok(editing.finish())
}

/// Adds the entry of a server after the existing ones.
pub fn add_table(text: &str, name: &str, entry: Table) -> Result<String, EditError> {
    if slug(name).is_none() {
        return Err(EditError::NoName);
    }
    let mut editing = Editing::open(text)?;
    if let Ok(existing) = editing.name_of(name) {
        return Err(EditError::Exists { existing });
    }
    insert(&mut editing, name, entry)?;
    Ok(editing.finish())
}

// === impl NewServer ===

impl NewServer {
    /// Creates a server with only its target set.
    pub fn new(target: NewTarget) -> Self {
        let (networks, expose, hide) = (Vec::new(), Vec::new(), Vec::new());
        Self { target, description: None, timeout: None, trust: false, networks, expose, hide }
    }

    /// Builds the entry, with its keys in the order in which people read them.
    ///
    /// `type` is written only where the other keys do not imply it.
    fn table(&self) -> Table {
        let mut table = Table::new();
        match &self.target {
            NewTarget::Stdio(program) => program.write(&mut table),
            NewTarget::Cli(program) => {
                table.insert("type", value("cli"));
                program.write(&mut table);
            }
            NewTarget::Http(remote) => remote.write(&mut table),
            NewTarget::Sse(remote) => {
                table.insert("type", value("sse"));
                remote.write(&mut table);
            }
            NewTarget::OpenApi(document) => document.write(&mut table),
        }
        if let Some(description) = &self.description {
            table.insert("description", value(description));
        }
        if let Some(timeout) = self.timeout {
            table.insert("timeout", value(show_duration(timeout)));
        }
        let networks: Vec<String> = self.networks.iter().map(Network::to_string).collect();
        write_list(&mut table, "networks", &networks);
        write_list(&mut table, "expose", &self.expose);
        write_list(&mut table, "hide", &self.hide);
        if self.trust {
            let mut permissions = InlineTable::new();
            permissions.insert("allow", Value::Array(Array::from_iter(["*"])));
            table.insert("permissions", value(permissions));
        }
        table
    }
}

// === impl NewProgram ===

impl NewProgram {
    fn write(&self, table: &mut Table) {
        table.insert("command", value(&self.command));
        write_list(table, "args", &self.args);
        write_map(table, "env", &self.env);
    }
}

// === impl NewRemote ===

impl NewRemote {
    fn write(&self, table: &mut Table) {
        table.insert("url", value(&self.url));
        write_map(table, "headers", &self.headers);
    }
}

// === impl NewDocument ===

impl NewDocument {
    fn write(&self, table: &mut Table) {
        table.insert("openapi", value(&self.document));
        write_map(table, "headers", &self.headers);
    }
}

fn write_list(table: &mut Table, key: &str, items: &[String]) {
    if !items.is_empty() {
        table.insert(key, value(items.iter().collect::<Array>()));
    }
}

fn write_map(table: &mut Table, key: &str, map: &IndexMap<String, String>) {
    if !map.is_empty() {
        table.insert(key, value(map.iter().collect::<InlineTable>()));
    }
}

/// Inserts the entry under `servers`, in whichever form that table is written.
fn insert(editing: &mut Editing<'_>, name: &str, mut entry: Table) -> Result<(), EditError> {
    let after = match editing.document.get("servers") {
        Some(Item::Table(servers)) => positions(servers).last().copied(),
        Some(_) | None => None,
    };
    if !matches!(editing.document.get("servers"), Some(Item::Value(_))) {
        let before = editing.before_new_table(after);
        entry.decor_mut().set_prefix(before);
        let last = positions(editing.document.as_table()).into_iter().max();
        entry.set_position(after.or(last));
    }
    let servers = editing.document.as_table_mut().entry("servers").or_insert_with(|| {
        let mut servers = Table::new();
        servers.set_implicit(true);
        Item::Table(servers)
    });
    match servers {
        Item::Table(servers) => {
            servers.insert(name, Item::Table(entry));
            Ok(())
        }
        Item::Value(Value::InlineTable(_)) => {
            document::insert(servers, name, value(entry.into_inline_table()));
            Ok(())
        }
        Item::Value(_) | Item::ArrayOfTables(_) | Item::None => {
            Err(EditError::Unexpected { key: "servers".to_owned(), expected: "a table" })
        }
    }
}

/// Returns the error that reading the new entry would report, if any.
///
/// Variables are not known here, so an address or a program that contains variables is not checked.
/// `scope` is that of the file; a project's rules are not judged here.
pub fn refusal(edited: &str, name: &str, url: Option<&str>, scope: Scope) -> Option<Problem> {
    let dialect = Some(Dialect::Native);
    let scope = if scope == Scope::Project { Scope::Flag } else { scope };
    let file = SourceFile { dialect, ..SourceFile::new("", scope, edited) };
    let variable = |variable: &str| Some(variable.to_owned());
    let loaded =
        load(&[file], &Surroundings { variable: &variable, project_dir: "" }, &NativeFiles);
    let unsure = url.is_some_and(|url| url.contains("${"));
    let varies = |problem: &Problem| {
        let value = problem.place.as_ref();
        let value = value.and_then(|at| edited.get(at.start..at.start + at.len));
        value.is_some_and(|value| value.contains("${"))
    };
    loaded.problems.into_iter().find(|problem| {
        let key = problem.key.as_ref().and_then(|key| key.rsplit('.').next());
        let is_unknown = unsure && key == Some("url") || key == Some("command") && varies(problem);
        problem.severity == Severity::Error
            && problem.server.is_some()
            && problem.server == slug(name)
            && !is_unknown
    })
}
