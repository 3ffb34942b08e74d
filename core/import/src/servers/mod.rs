//! Imports servers of other programs into a native file.
//!
//! [`find`] reads a client's file and decides for each server whether a native file can contain it;
//! [`plan()`] compares them with each other and with the existing ones; [`Plan::apply`] writes.
//!
//! **Invariant:** nothing that restricts is lost. An entry whose restrictions cannot be expressed in
//! a native file is not imported; `file_rules` and `limits` import those that its file states for
//! all servers, and `client_rules` those of the client's other files.

mod client_rules;
mod file_rules;
mod limits;
mod plan;
mod secrets;
mod variables;

use std::fmt;

use capstan_config::edit::{add_table, refusal};
use capstan_config::runs_capstan;
use capstan_config::slug;
use capstan_config::source::Dialect;
use capstan_config::source::problem::{Problem, Severity};
use capstan_config::source::reader::{AutoAllow, Conventions, FileReader as _, Opened};
use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Entry, Node, Table, Value};
use capstan_config::source::{Scope, SourceFile, Surroundings};
use capstan_model::Verdict;
use capstan_model::name::SEPARATOR;
use capstan_safety::mask::{mask_arguments, mask_url};
use file_rules::{FileRules, Of};
use serde_json::{Map, Value as Json};
use toml_edit::{Array, InlineTable, Table as TomlTable};
use variables::{Habits, NoWords};

use crate::clients::{Client, OUR_NAME};
use crate::dialects::AllDialects;

pub use client_rules::ClientRules;
pub use limits::{FormerLimit, Limit};
pub use plan::{Plan, Row, State, Variable, plan};
pub use secrets::{Secrets, literal_secrets};

/// A server in a client's file.
#[derive(Debug)]
pub struct Found {
    /// The client that the file belongs to.
    pub client: Client,
    /// The file.
    pub file: String,
    /// The project that the file defines it for, if any.
    pub project: Option<String>,
    /// Its name there; empty if the whole file cannot be read.
    pub display: String,
    /// Its command line or address, with secrets masked.
    pub target: String,
    /// Notes about parts that were left out.
    pub notes: Vec<String>,
    /// True if Capstan reads the file directly, so that nothing of it is copied.
    pub read_directly: bool,
    pub(crate) content: Content,
}

/// Selects servers in a file that defines some for single projects.
#[derive(Clone, Copy, Debug)]
pub enum Projects<'a> {
    /// The global servers, and those of this project.
    Only(&'a str),
    /// The servers of all other projects too.
    All(&'a str),
}

/// The result of converting a server.
#[derive(Debug)]
pub(crate) enum Content {
    Usable(Carried),
    /// The entry starts Capstan.
    Itself,
    /// The server is part of the other program.
    Inside(String),
    Unusable(String),
    /// A restriction of its file cannot be imported; the file itself can be read.
    Restricted(String),
}

/// A converted entry of a native file.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Carried {
    pub(crate) keys: Map<String, Json>,
    /// Variables for the values that the other program requests from its user.
    pub(crate) asked: Vec<String>,
    /// Limits of its file that apply to all servers.
    pub(crate) limits: Vec<Limit>,
}

/// An entry of a file, with native keys.
pub(crate) struct Read {
    pub(crate) display: String,
    pub(crate) content: Content,
    target: String,
    notes: Vec<String>,
    path: String,
}

/// The order of the first keys of a written entry; other keys follow.
const ORDER: [&str; 7] = ["type", "command", "args", "env", "cwd", "url", "headers"];

/// Returns the servers in a client's file; `rules` are those of its other files.
pub fn find(
    client: Client,
    file: &SourceFile,
    projects: Projects<'_>,
    rules: &ClientRules,
) -> Vec<Found> {
    let file = SourceFile { dialect: Some(client.dialect()), ..file.clone() };
    let (Projects::Only(here) | Projects::All(here)) = projects;
    let found = |project: Option<String>, read: Read| Found {
        client,
        file: file.path.clone(),
        project,
        display: read.display,
        target: read.target,
        notes: read.notes,
        read_directly: false,
        content: read.content,
    };
    let mut all: Vec<Found> = match entries(&file, here, rules) {
        Ok(entries) => {
            let of = |read: &Read| kept_for_project(read).then(|| here.to_owned());
            entries.into_iter().map(|read| found(of(&read), read)).collect()
        }
        Err(problem) => return vec![unreadable(client, file.path, problem.to_string())],
    };
    if let (Projects::All(here), Client::ClaudeCode) = (projects, client) {
        for project in other_projects(&file, here) {
            let entries = entries(&file, &project, rules).unwrap_or_default().into_iter();
            let own = entries.filter(kept_for_project);
            all.extend(own.map(|read| found(Some(project.clone()), read)));
        }
    }
    all
}

/// Returns the result for a file that cannot be read at all.
pub fn unreadable(client: Client, file: impl Into<String>, reason: impl Into<String>) -> Found {
    let content = Content::Unusable(reason.into());
    let (project, file) = (None, file.into());
    let (display, target, notes) = Default::default();
    Found { client, file, project, display, target, notes, read_directly: false, content }
}

/// True if Claude Code defines the server for a single project.
fn kept_for_project(read: &Read) -> bool {
    read.path.starts_with("projects.")
}

fn other_projects(file: &SourceFile, here: &str) -> Vec<String> {
    let document = Syntax::of(&file.path, &file.text).read(&file.path, &file.text);
    let table = document.map(|document| document.table).unwrap_or_default();
    let projects = table.table("projects").map(|projects| projects.entries.keys());
    projects.into_iter().flatten().filter(|project| *project != here).cloned().collect()
}

/// Returns the servers of a file, with native keys.
pub(crate) fn entries(
    file: &SourceFile,
    project: &str,
    client_rules: &ClientRules,
) -> Result<Vec<Read>, Box<Problem>> {
    let around = Surroundings { variable: &|_| None, project_dir: project };
    let Opened { tree, problems, conventions, .. } = AllDialects.open(file, around)?;
    let habits = Habits {
        forms: conventions.forms,
        missing: conventions.missing,
        inputs: &conventions.inputs,
    };
    let inside = |(display, why): &(String, String)| Read {
        display: display.clone(),
        content: Content::Inside(why.clone()),
        target: String::new(),
        notes: Vec::new(),
        path: String::new(),
    };
    let mut all: Vec<Read> = conventions.built_in.iter().map(inside).collect();
    let Some(servers) = tree.table("servers") else { return Ok(all) };
    let rules =
        (file.dialect != Some(Dialect::Native)).then(|| FileRules::read(file, &around, &tree));
    for (display, entry) in &servers.entries {
        let name = slug(display);
        let mine = problems.iter().filter(|problem| is_about(problem, display, servers));
        let (errors, notes): (Vec<&Problem>, Vec<&Problem>) =
            mine.partition(|problem| problem.severity == Severity::Error);
        let notes = notes.iter().map(|note| note.message.clone()).collect();
        let target = entry.node.as_table().map(target).unwrap_or_default();
        let path = entry.path.clone().unwrap_or_default();
        let mut read =
            Read { display: display.clone(), content: Content::Itself, target, notes, path };
        let unclear = unclear_name(display, servers, &conventions);
        let carried = carry(display, entry, &habits, file.scope);
        read.content = match (carried, errors.first()) {
            _ if is_itself(display, entry) => Content::Itself,
            _ if let Some(why) = &unclear => Content::Unusable(why.clone()),
            (_, Some(error)) => Content::Unusable(error.message.clone()),
            (Err(why), None) => Content::Unusable(why),
            (Ok(mut carried), None) => {
                let allows = conventions.auto_allows.iter();
                let allows = allows.filter(|allowed| Some(&allowed.server) == name.as_ref());
                for allowed in allows {
                    read.notes.push(carried.allow(allowed, file.scope));
                }
                let of = name.as_ref().map(|name| Of { name, display });
                let applied =
                    rules.as_ref().zip(of).map(|(rules, of)| rules.apply(&mut carried, of));
                let applied = applied.unwrap_or_else(|| Ok(Vec::new())).and_then(|mut notes| {
                    notes.extend(client_rules.apply(&mut carried, display, file.scope)?);
                    Ok(notes)
                });
                match applied {
                    Ok(notes) => {
                        read.notes.extend(notes);
                        Content::Usable(carried)
                    }
                    Err(why) => Content::Restricted(why),
                }
            }
        };
        all.push(read);
    }
    Ok(all)
}

/// True if a problem is about this entry, and not about another one with the same name.
fn is_about(problem: &Problem, display: &str, servers: &Table) -> bool {
    let name = slug(display);
    if problem.server.is_none() || problem.server != name {
        return false;
    }
    let key = problem.key.as_deref().unwrap_or_default();
    let is_at = |entry: &Entry| entry.path.as_ref().is_some_and(|path| key.starts_with(path));
    let is_others =
        |(other, entry): (&String, &Entry)| other != display && slug(other) == name && is_at(entry);
    servers.get(display).is_some_and(is_at) || !servers.entries.iter().any(is_others)
}

/// The reason why a name does not lead to one entry: another one of the file has it too.
fn unclear_name(display: &str, servers: &Table, conventions: &Conventions) -> Option<String> {
    if conventions.repeated.iter().any(|name| name == display) {
        return Some(format!("there are two servers named `{display}` in its file; rename one"));
    }
    let name = slug(display)?;
    let before = servers.entries.keys().take_while(|other| *other != display);
    let other = before.into_iter().find(|other| slug(other).as_ref() == Some(&name))?;
    Some(format!("`{other}` in its file has the same name, `{name}`; rename one of them"))
}

/// True if an entry leads back to Capstan: it starts Capstan, or is the entry we added.
fn is_itself(display: &str, entry: &Entry) -> bool {
    let Some(table) = entry.node.as_table() else { return false };
    runs_capstan(table) || display == OUR_NAME && table.get("url").is_some()
}

/// Converts an entry to native keys, or returns the reason why that is not possible.
fn carry(
    display: &str,
    entry: &Entry,
    habits: &Habits<'_>,
    scope: Scope,
) -> Result<Carried, String> {
    let table = entry.node.as_table().ok_or("it is not a table")?;
    let mut carried = Carried::default();
    let written = carried.table(table, habits).map_err(|NoWords(why)| why)?;
    let order = ORDER.into_iter().filter(|key| written.contains_key(*key)).map(str::to_owned);
    let rest = written.keys().filter(|key| !ORDER.contains(&key.as_str())).cloned();
    for key in order.chain(rest).collect::<Vec<String>>() {
        carried.keys.extend(written.get(&key).cloned().map(|value| (key, value)));
    }
    match carried.fault(display, scope) {
        Some(why) => Err(why),
        None => Ok(carried),
    }
}

/// The command line or address of a server, with secrets masked.
fn target(table: &Table) -> String {
    let text = |key| table.get(key).and_then(|entry| entry.node.as_text());
    if let Some(url) = text("url") {
        return mask_url(url);
    }
    let args = table.get("args").and_then(|entry| entry.node.as_list()).unwrap_or_default();
    mask_arguments(text("command").into_iter().chain(args.iter().filter_map(Node::as_text)))
        .join(" ")
}

// === impl Found ===

impl Found {
    /// True if the entry leads back to Capstan.
    pub fn is_itself(&self) -> bool {
        matches!(self.content, Content::Itself)
    }
}

// === impl Carried ===

impl Carried {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.keys.get(key).and_then(Json::as_str)
    }

    /// Lets tools run without asking, as the other program does; returns a note about it.
    ///
    /// A project cannot grant itself permissions, so those of its files are left out.
    fn allow(&mut self, allowed: &AutoAllow, scope: Scope) -> String {
        let AutoAllow { server, pattern, path, .. } = allowed;
        if scope == Scope::Project {
            return format!("`{path}` is not imported: a project cannot allow calls by itself");
        }
        let id = format!("{server}{SEPARATOR}");
        let pattern = pattern.strip_prefix(&id).unwrap_or(pattern);
        self.add_rules(Verdict::Allow, [Json::from(pattern)]);
        let tools = if pattern == "*" { "its tools".to_owned() } else { format!("`{pattern}`") };
        format!("`{path}` is imported: {tools} may run without asking (`permissions.allow`)")
    }

    /// Returns the entry as TOML.
    pub(crate) fn toml(&self) -> TomlTable {
        let mut table = TomlTable::new();
        for (key, json) in &self.keys {
            if let Some(value) = toml_value(json) {
                table.insert(key, toml_edit::value(value));
            }
        }
        table
    }

    /// Returns the error that a native file with the entry would have, if any.
    fn fault(&self, display: &str, scope: Scope) -> Option<String> {
        match add_table("", display, self.toml()) {
            Ok(text) => {
                refusal(&text, display, self.text("url"), scope).map(|problem| problem.message)
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn table(&mut self, table: &Table, habits: &Habits<'_>) -> Result<Map<String, Json>, NoWords> {
        let mut map = Map::new();
        for (key, entry) in &table.entries {
            let value = match (&entry.node.value, key.as_str()) {
                (Value::Table(inner), "env" | "headers") => self.variables(inner, habits)?,
                _ => self.json(&entry.node, habits)?,
            };
            map.insert(key.clone(), value);
        }
        Ok(map)
    }

    /// Converts a table whose keys may contain variables too.
    fn variables(&mut self, table: &Table, habits: &Habits<'_>) -> Result<Json, NoWords> {
        let mut map = Map::new();
        for (key, entry) in &table.entries {
            let key = self.rewritten(key, habits)?;
            map.insert(key, self.json(&entry.node, habits)?);
        }
        Ok(Json::Object(map))
    }

    fn json(&mut self, node: &Node, habits: &Habits<'_>) -> Result<Json, NoWords> {
        Ok(match &node.value {
            Value::Text(text) if text.ours => Json::String(text.value.clone()),
            Value::Text(text) => Json::String(self.rewritten(&text.value, habits)?),
            Value::Number(text) => serde_json::from_str(text)
                .map_err(|_| NoWords(format!("`{text}` is not a number")))?,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Moment(text) => Json::String(text.clone()),
            Value::Null => Json::Null,
            Value::List(nodes) => {
                let items = nodes.iter().map(|node| self.json(node, habits));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Table(table) => Json::Object(self.table(table, habits)?),
        })
    }

    fn rewritten(&mut self, text: &str, habits: &Habits<'_>) -> Result<String, NoWords> {
        let native = habits.rewrite(text)?;
        self.asked.extend(native.asked);
        Ok(native.text)
    }
}

/// Prints no content, because it may contain secrets.
impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carried").finish_non_exhaustive()
    }
}

fn toml_value(json: &Json) -> Option<toml_edit::Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return None,
        },
        Json::String(text) => text.into(),
        Json::Array(items) => items.iter().filter_map(toml_value).collect::<Array>().into(),
        Json::Object(map) => map
            .iter()
            .filter_map(|(key, json)| Some((key.clone(), toml_value(json)?)))
            .collect::<InlineTable>()
            .into(),
    })
}
