//! Translates a file, table by table and server by server.

use std::ops::Range;

use indexmap::IndexMap;

use capstan_config::slug;
use capstan_config::source::PluginPart;
use capstan_config::source::expand::join;
use capstan_config::source::problem::{Problem, Report};
use capstan_config::source::tree::{Entry, Node, Table, Value};
use capstan_config::source::{SourceFile, Surroundings};

use super::server::{Keys, One};
use capstan_config::source::reader::Conventions;

/// Keys under which programs keep their servers.
const HOMES: [&str; 5] = ["mcpServers", "mcp_servers", "context_servers", "servers", "mcp"];

/// A file being translated.
pub(crate) struct Work<'a> {
    pub(crate) file: &'a SourceFile,
    pub(crate) around: Surroundings<'a>,
    /// The file with its own keys.
    pub(crate) raw: &'a Table,
    /// The tree with native keys, without the tables that are collected separately.
    pub(crate) tree: Table,
    tables: IndexMap<String, Table>,
    servers: Table,
    /// Problems of the file as a whole.
    pub(crate) report: Report<'a>,
    problems: Vec<Problem>,
    pub(crate) conventions: Conventions,
}

// === impl Work ===

impl<'a> Work<'a> {
    pub(crate) fn new(file: &'a SourceFile, around: Surroundings<'a>, raw: &'a Table) -> Self {
        Self {
            file,
            around,
            raw,
            tree: Table::default(),
            tables: IndexMap::new(),
            servers: Table::default(),
            report: Report::new(file),
            problems: Vec::new(),
            conventions: Conventions::default(),
        }
    }

    pub(crate) fn finish(mut self) -> (Table, Vec<Problem>, Conventions) {
        if !self.servers.entries.is_empty() {
            self.tables.insert("servers".to_owned(), self.servers);
        }
        for (name, table) in self.tables {
            let node = Node { value: Value::Table(table), span: 0..0 };
            self.tree.put(name, Entry::new(0..0, node));
        }
        self.problems.append(&mut self.report.problems);
        (self.tree, self.problems, self.conventions)
    }

    /// Returns the table under `key`, and reports any other value as an error.
    pub(crate) fn table(&mut self, key: &str) -> Option<&'a Table> {
        let entry = self.raw.get(key)?;
        let table = entry.node.as_table();
        if table.is_none() {
            let what = entry.node.value.what();
            let problem = Problem::error(format!("`{key}` must be a table, not {what}"))
                .help(format!("list the servers under `{key}`, by name"));
            self.report.add(problem, key, &entry.node.span);
        }
        table
    }

    /// Translates the servers of a table.
    pub(crate) fn servers(
        &mut self,
        path: &str,
        table: &'a Table,
        keys: Keys,
        mut rest: impl FnMut(&mut One<'a>),
    ) {
        for (name, entry) in &table.entries {
            if let Some(mut one) = self.one(name, join(path, name), entry) {
                one.apply(keys);
                rest(&mut one);
                self.add(one);
            }
        }
    }

    /// Begins the translation of a server. `capstan-config` reports one that is not a table.
    pub(crate) fn one(&mut self, name: &str, path: String, entry: &'a Entry) -> Option<One<'a>> {
        if let Some(raw) = entry.node.as_table() {
            return Some(self.begin(name, path, &entry.key, raw));
        }
        self.servers.put(name, Entry { path: Some(path), ..entry.clone() });
        None
    }

    /// Begins the translation of a server.
    pub(crate) fn begin(
        &self,
        name: &str,
        path: String,
        at: &Range<usize>,
        raw: &'a Table,
    ) -> One<'a> {
        let display = match self.file.plugin.as_ref().map(|plugin| (plugin.part, plugin)) {
            Some((PluginPart::Manifest | PluginPart::Servers, plugin)) => {
                format!("{}:{name}", plugin.name)
            }
            // A bundle is one server and has the name of the bundle.
            Some((PluginPart::Bundle, _)) | None => name.to_owned(),
        };
        let slug = slug(&display);
        let report = match &slug {
            Some(slug) => Report::about_server(self.file, slug.clone()),
            None => Report::new(self.file),
        };
        One { display, slug, path, at: at.clone(), raw, out: Table::default(), report }
    }

    /// Adds a translated server. A second one of the same name is an error.
    pub(crate) fn add(&mut self, mut one: One<'a>) {
        if self.servers.get(&one.display).is_some() {
            let name = &one.display;
            let problem = Problem::error(format!("there are two servers named `{name}`"))
                .help("rename one of them");
            self.report.add(problem, one.path, &one.at);
            self.conventions.repeated.push(one.display);
            return;
        }
        self.problems.append(&mut one.report.problems);
        let node = Node { value: Value::Table(one.out), span: one.at.clone() };
        let entry = Entry { path: Some(one.path), ..Entry::new(one.at, node) };
        self.servers.put(one.display, entry);
    }

    /// True if a server of this name was translated.
    pub(crate) fn has(&self, display: &str) -> bool {
        self.servers.get(display).is_some()
    }

    /// Puts a value under a native key in one of the file's tables.
    pub(crate) fn put(&mut self, table: &str, key: &str, path: String, entry: &Entry) {
        let entry = Entry { path: Some(path), ..entry.clone() };
        self.table_mut(table).put(key, entry);
    }

    /// One of the file's tables, with native keys.
    pub(crate) fn table_mut(&mut self, name: &str) -> &mut Table {
        self.tables.entry(name.to_owned()).or_default()
    }

    /// Warns about a file that has its servers where another program looks for them.
    fn other_program(&mut self, known: &[&'static str]) {
        let Some(home) = known.first() else { return };
        if known.iter().any(|key| self.raw.get(key).is_some()) {
            return;
        }
        let is_home = |(key, _): &(&String, &Entry)| HOMES.contains(&key.as_str());
        if let Some((key, entry)) = self.raw.entries.iter().find(is_home) {
            let message = format!("`{key}` is not used: servers of this program are in `{home}`");
            let problem = Problem::warning(message).help(
                "this looks like a file of another program: name the file without `DIALECT:`, so \
                 that Capstan detects it",
            );
            self.report.add(problem, key, &entry.key);
        }
    }

    /// Warns about keys of the file that look like misspellings of the known ones.
    ///
    /// All others belong to the rest of the program and are not checked.
    pub(crate) fn slips(&mut self, known: &[&'static str]) {
        self.other_program(known);
        for (key, entry) in &self.raw.entries {
            if known.contains(&key.as_str()) {
                continue;
            }
            let like = |known: &&&str| strsim::jaro_winkler(known, key) > 0.94;
            if let Some(meant) = known.iter().find(like) {
                let problem = Problem::warning(format!("`{key}` is not used"))
                    .help(format!("did you mean `{meant}`?"));
                self.report.add(problem, key, &entry.key);
            }
        }
    }
}
