//! Rules about servers that a client has beside the files with its servers: Claude Code's settings.
//!
//! After a move, the client sees the tools under other names, so that its own rules match none of
//! them. They become rules of the server's entry.
//!
//! **Invariant:** a server to which a rule applies that cannot be imported is not imported.

use capstan_config::source::syntax::Syntax;
use capstan_config::source::tree::{Node, Table};
use capstan_config::{Scope, SourceFile};
use capstan_model::Verdict;
use capstan_policy::Glob;
use serde_json::{Value as Json, json};

use super::Carried;
use super::file_rules::SIGNS;
use crate::translate::prefix;

/// The rules that a client has for its servers.
#[derive(Debug, Default)]
pub struct ClientRules {
    rules: Vec<ToolRule>,
    /// Servers of the project's file that the user has disabled, with the file that says so.
    disabled: Vec<(String, String)>,
    /// Servers of the project's file that the user has approved.
    enabled: Vec<String>,
    /// True if all servers of the project's file are approved.
    all_enabled: bool,
    /// Lists of servers that may be used, and of those that may not.
    lists: Vec<ServerList>,
    /// The reason why no server is imported.
    refused: Option<String>,
}

#[derive(Debug)]
struct ToolRule {
    verdict: Verdict,
    /// Its text, such as `mcp__github__delete_repo`.
    text: String,
    file: String,
}

/// A list of servers; `None` stands for entries that are not names.
#[derive(Debug)]
struct ServerList {
    key: &'static str,
    names: Vec<Option<String>>,
    file: String,
}

/// The beginning of the names of tools of servers.
const PREFIX: &str = "mcp__";

/// Signs that have a meaning in our patterns, and none in the client's.
const UNCLEAR: [char; 4] = ['[', '{', '\\', ':'];

const DENIED: &str = "deniedMcpServers";
const ALLOWED: &str = "allowedMcpServers";

// === impl ClientRules ===

impl ClientRules {
    /// Reads the rules of these files, for a project.
    pub fn read(files: &[SourceFile], project: &str) -> Self {
        let mut rules = Self::default();
        for file in files {
            match Syntax::of(&file.path, &file.text).read(&file.path, &file.text) {
                Ok(document) => {
                    let own = document.table.table("projects").and_then(|all| all.table(project));
                    for table in std::iter::once(&document.table).chain(own) {
                        rules.add(table, &file.path);
                    }
                }
                Err(problem) => rules.refuse(&file.path, &problem.to_string()),
            }
        }
        rules
    }

    /// Imports no server, because a file with rules cannot be read.
    pub fn refuse(&mut self, file: &str, reason: &str) {
        self.refused.get_or_insert(format!("its client's rules in {file} are unknown: {reason}"));
    }

    fn add(&mut self, table: &Table, file: &str) {
        let permissions = table.table("permissions");
        for verdict in [Verdict::Deny, Verdict::Ask] {
            let rules = permissions.map(|rules| texts(rules, verdict.as_str())).unwrap_or_default();
            let rule = |text| ToolRule { verdict, text, file: file.to_owned() };
            self.rules.extend(rules.into_iter().map(rule));
        }
        let disabled = texts(table, "disabledMcpjsonServers").into_iter();
        self.disabled.extend(disabled.map(|name| (name, file.to_owned())));
        self.enabled.extend(texts(table, "enabledMcpjsonServers"));
        let all = table.get("enableAllProjectMcpServers");
        self.all_enabled |= all.is_some_and(|all| all.node.as_bool() == Some(true));
        for key in [DENIED, ALLOWED] {
            if let Some(list) = table.get(key).and_then(|entry| entry.node.as_list()) {
                let names = list.iter().map(server_name).collect();
                self.lists.push(ServerList { key, names, file: file.to_owned() });
            }
        }
    }

    /// Adds the rules for a server to its entry; returns notes about them, or the reason why that is
    /// not possible.
    pub(super) fn apply(
        &self,
        carried: &mut Carried,
        display: &str,
        scope: Scope,
    ) -> Result<Vec<String>, String> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        for list in &self.lists {
            list.check(display)?;
        }
        let mut notes = Vec::new();
        for ToolRule { verdict, text, file } in &self.rules {
            let patterns = reduced(text, display)?;
            if patterns.is_empty() {
                continue;
            }
            let verb = verdict.as_str();
            let note = format!("`permissions.{verb}: {text}` in {file} is imported");
            if !notes.contains(&note) {
                notes.push(note);
            }
            carried.add_rules(*verdict, patterns.into_iter().map(Json::String));
        }
        if scope == Scope::Project
            && let Some(note) = self.switched_off(display)
        {
            notes.push(note);
            carried.keys.shift_remove("disabled");
            carried.keys.insert("enabled".to_owned(), json!(false));
        }
        Ok(notes)
    }

    /// The reason why the client does not start a server of the project's file.
    fn switched_off(&self, display: &str) -> Option<String> {
        if let Some((_, file)) = self.disabled.iter().find(|(name, _)| name == display) {
            return Some(format!("it is written as disabled, because {file} disables it"));
        }
        let is_open = self.all_enabled || self.enabled.is_empty();
        (!is_open && !self.enabled.iter().any(|name| name == display)).then(|| {
            "it is written as disabled, because you have not enabled it in its client".to_owned()
        })
    }
}

// === impl ServerList ===

impl ServerList {
    /// Refuses a server that the list excludes, or may exclude by other means than its name.
    fn check(&self, display: &str) -> Result<(), String> {
        let Self { key, names, file } = self;
        let is_named = names.iter().flatten().any(|name| name == display);
        let is_unclear = names.contains(&None);
        match (*key == DENIED, is_named) {
            (true, true) => Err(format!("`{key}` in {file} names it")),
            (true, false) if is_unclear => {
                Err(format!("`{key}` in {file} has entries that are not names of servers"))
            }
            (false, false) => Err(format!("`{key}` in {file} does not name it")),
            (true, false) | (false, true) => Ok(()),
        }
    }
}

/// Reduces a rule for tools of all servers to the tools of one server.
fn reduced(rule: &str, display: &str) -> Result<Vec<String>, String> {
    // A rule for a tool of a server has no arguments.
    let name = rule.split('(').next().unwrap_or(rule).trim();
    let server: String = display.chars().map(plain).collect();
    if name.strip_prefix(PREFIX) == Some(server.as_str()) {
        return Ok(vec!["*".to_owned()]);
    }
    let id = format!("{PREFIX}{server}__");
    let head = name.split(SIGNS).next().unwrap_or(name);
    let failed = || format!("its client's rule `{rule}` cannot be expressed as one of the server");
    let patterns = match name.strip_prefix(&id) {
        Some(tool) if !tool.is_empty() => vec![tool.to_owned()],
        None if id.starts_with(head) && name.contains(UNCLEAR) => return Err(failed()),
        None if id.starts_with(head) => prefix::after(&id, name),
        Some(_) | None => Vec::new(),
    };
    let is_unclear = |pattern: &String| pattern.contains(UNCLEAR) || Glob::parse(pattern).is_err();
    if patterns.iter().any(is_unclear) {
        return Err(failed());
    }
    Ok(patterns)
}

/// A character as it is in the name of a tool.
fn plain(sign: char) -> char {
    if sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-') { sign } else { '_' }
}

/// The name of a server in a list of servers.
fn server_name(node: &Node) -> Option<String> {
    let name = node.as_table().and_then(|table| table.get("serverName"));
    name.and_then(|name| name.node.as_text()).map(str::to_owned)
}

fn texts(table: &Table, key: &str) -> Vec<String> {
    let list = table.get(key).and_then(|entry| entry.node.as_list()).unwrap_or_default();
    list.iter().filter_map(Node::as_text).map(str::to_owned).collect()
}
