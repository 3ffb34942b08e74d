//! Reads a table key by key, and reports the keys that are left over.
//!
//! **Invariant:** a key that is not read is an error; nothing in a file is ignored.

use std::ops::Range;
use std::time::Duration;

use indexmap::IndexMap;

use crate::source::expand::join;
use crate::source::native;
use crate::source::problem::{Problem, Report};
use crate::source::tree::{Entry, Node, Table, Text, Value};
use crate::units::{self, BadUnit};

/// Minimum similarity (Jaro-Winkler) at which a name is suggested for a misspelt one.
const LIKENESS: f64 = 0.75;

#[cfg(test)]
thread_local! {
    /// Every key that was read, so that a test can compare the keys with the schema.
    pub(crate) static KNOWN: std::cell::RefCell<std::collections::BTreeSet<String>> =
        const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
}

/// A table being read.
pub(crate) struct Fields<'t, 'r> {
    table: &'t Table,
    /// The dotted path of the table.
    path: String,
    /// The position of the table, for problems about missing keys.
    at: Range<usize>,
    report: &'r mut Report<'t>,
    asked: Vec<&'static str>,
}

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub(crate) struct Given<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// The values of a key that takes one of a fixed set of words.
pub(crate) type Words<T> = &'static [(&'static str, T)];

// === impl Fields ===

impl<'t, 'r> Fields<'t, 'r> {
    pub(crate) fn new(
        table: &'t Table,
        path: impl Into<String>,
        at: &Range<usize>,
        report: &'r mut Report<'t>,
    ) -> Self {
        Self { table, path: path.into(), at: at.clone(), report, asked: Vec::new() }
    }

    /// Returns the entry under `key`, and marks the key as known.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'t Entry> {
        self.asked.push(key);
        self.table.get(key)
    }

    /// Returns the entry under `key`, without marking the key as known.
    pub(crate) fn peek(&self, key: &str) -> Option<&'t Entry> {
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The dotted path of a key of this table.
    pub(crate) fn key(&self, key: &str) -> String {
        let written = self.table.get(key).and_then(|entry| entry.path.clone());
        written.unwrap_or_else(|| join(&self.path, key))
    }

    /// The dotted path of a key of the table under `table`.
    pub(crate) fn key_in(&self, table: &str, key: &str) -> String {
        let nested = self.table.table(table).and_then(|nested| nested.get(key));
        let written = nested.and_then(|entry| entry.path.clone());
        written.unwrap_or_else(|| join(&self.key(table), key))
    }

    /// The last part of a key's path, spelled as the file spells it.
    pub(crate) fn word_for(&self, key: &str) -> String {
        let path = self.key(key);
        let last = path.rsplit('.').next().map(str::to_owned);
        if path.ends_with('"') { key.to_owned() } else { last.unwrap_or(path) }
    }

    /// A key with a value, in the file's syntax.
    fn line(&self, key: &str, value: &str) -> String {
        self.report.line(&self.word_for(key), value)
    }

    /// Reports a problem with the value of `key`, or with the table if the key is missing.
    pub(crate) fn problem(&mut self, key: &str, problem: Problem) {
        match self.table.get(key) {
            Some(entry) => self.report.add(problem, self.key(key), &entry.node.span),
            None => self.report.add(problem, self.path.clone(), &self.at),
        }
    }

    /// Reports a problem with the table itself.
    pub(crate) fn table_problem(&mut self, problem: Problem) {
        self.report.add(problem, self.path.clone(), &self.at);
    }

    /// The position of the table.
    pub(crate) fn span(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The dotted path of this table.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn report(&mut self) -> &mut Report<'t> {
        self.report
    }

    /// The table under `key`, ready to be read.
    pub(crate) fn nested(&mut self, key: &'static str) -> Option<Fields<'t, '_>> {
        let entry = self.entry(key)?;
        match &entry.node.value {
            Value::Table(table) => {
                let path = self.key(key);
                Some(Fields::new(table, path, &entry.key, self.report))
            }
            Value::Text(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_) => {
                self.mismatch(key, &entry.node, "a table", None);
                None
            }
        }
    }

    /// Reads each of the named tables under `key`.
    pub(crate) fn each_table(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&str, Fields<'t, '_>),
    ) {
        let Some(tables) = self.nested(key) else { return };
        for (name, entry) in &tables.table.entries {
            let path = tables.key(name);
            match &entry.node.value {
                Value::Table(table) => {
                    read(name, Fields::new(table, path, &entry.key, tables.report));
                }
                other @ (Value::Text(_)
                | Value::Number(_)
                | Value::Bool(_)
                | Value::Moment(_)
                | Value::Null
                | Value::List(_)) => {
                    let message = format!("`{path}` must be a table, not {}", other.what());
                    let help = format!("write `[{path}]` and its keys under that");
                    tables.report.add(Problem::error(message).help(help), path, &entry.node.span);
                }
            }
        }
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<&'t Text> {
        let entry = self.entry(key)?;
        match &entry.node.value {
            Value::Text(text) => Some(text),
            Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => {
                self.mismatch(key, &entry.node, "a string", None);
                None
            }
        }
    }

    pub(crate) fn string(&mut self, key: &'static str) -> Option<String> {
        self.text(key).map(|text| text.value.clone())
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let entry = self.entry(key)?;
        let flag = entry.node.as_bool();
        if flag.is_none() {
            self.mismatch(key, &entry.node, "true or false", None);
        }
        flag
    }

    pub(crate) fn count(&mut self, key: &'static str) -> Option<u32> {
        let entry = self.entry(key)?;
        let count = match &entry.node.value {
            Value::Number(text) => text.parse().ok(),
            Value::Text(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => None,
        };
        if count.is_none() {
            self.mismatch(key, &entry.node, "a whole number from 0 to 4294967295", None);
        }
        count
    }

    /// A number from 0 to 1.
    pub(crate) fn share(&mut self, key: &'static str) -> Option<f64> {
        let entry = self.entry(key)?;
        let share = match &entry.node.value {
            Value::Number(text) => text.parse().ok().filter(|share| (0.0..=1.0).contains(share)),
            Value::Text(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => None,
        };
        if share.is_none() {
            self.mismatch(key, &entry.node, "a number from 0 to 1", None);
        }
        share
    }

    /// A list of strings, each with its position.
    pub(crate) fn texts(&mut self, key: &'static str) -> Option<Vec<Given<&'t Text>>> {
        let entry = self.entry(key)?;
        let example = format!("write `{}`", self.line(key, "[\"…\"]"));
        let Value::List(nodes) = &entry.node.value else {
            self.mismatch(key, &entry.node, "a list of strings", Some(example));
            return None;
        };
        let mut texts = Vec::new();
        for node in nodes {
            if let Value::Text(text) = &node.value {
                texts.push(Given { value: text, span: node.span.clone() });
            } else {
                self.mismatch(key, node, "a list of strings", Some(example.clone()));
            }
        }
        Some(texts)
    }

    pub(crate) fn strings(&mut self, key: &'static str) -> Option<Vec<String>> {
        let texts = self.texts(key)?;
        Some(texts.into_iter().map(|text| text.value.value.clone()).collect())
    }

    /// A table of strings, with keys that the file chooses.
    pub(crate) fn string_map(&mut self, key: &'static str) -> IndexMap<String, Given<&'t Text>> {
        let mut map = IndexMap::new();
        let Some(entry) = self.entry(key) else { return map };
        let Some(table) = entry.node.as_table() else {
            let value = self.report.line("NAME", "\"…\"");
            let example = format!("write `{}`", self.line(key, &format!("{{ {value} }}")));
            self.mismatch(key, &entry.node, "a table of strings", Some(example));
            return map;
        };
        for (name, entry) in &table.entries {
            let span = entry.node.span.clone();
            match &entry.node.value {
                Value::Text(text) => {
                    map.insert(name.clone(), Given { value: text, span });
                }
                Value::Number(_)
                | Value::Bool(_)
                | Value::Moment(_)
                | Value::Null
                | Value::List(_)
                | Value::Table(_) => {
                    let path = self.key_in(key, name);
                    let what = entry.node.value.what();
                    let problem = Problem::error(format!("`{path}` must be a string, not {what}"))
                        .help("put the value in quotes");
                    self.report.add(problem, path, &span);
                }
            }
        }
        map
    }

    /// Reads one of a fixed set of words.
    pub(crate) fn word<T: Copy>(&mut self, key: &'static str, words: Words<T>) -> Option<T> {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let one_of = format!("one of {}", list.join(", "));
        let entry = self.entry(key)?;
        let Value::Text(text) = &entry.node.value else {
            let help = native::help_for_value(key, &entry.node);
            self.mismatch(key, &entry.node, &one_of, help);
            return None;
        };
        let known = words.iter().find(|(word, _)| *word == text.value);
        if known.is_none() {
            let text = text.shown();
            let nearest = nearest(text, words.iter().map(|(word, _)| *word));
            let help = native::help_for_value(key, &entry.node)
                .or_else(|| nearest.map(|word| format!("did you mean \"{word}\"?")))
                .unwrap_or_else(|| format!("use {one_of}"));
            let message = format!("`{}` cannot be \"{text}\"", self.key(key));
            self.problem(key, Problem::error(message).help(help));
        }
        known.map(|(_, value)| *value)
    }

    /// Reads a time limit of a server, and warns if it is unusually short or long.
    pub(crate) fn limit(&mut self, key: &'static str) -> Option<Duration> {
        let limit = self.duration(key)?;
        if units::looks_mistaken(limit) {
            let shown = units::show_duration(limit);
            let message = format!("`{}` is {shown}; is the unit right?", self.key(key));
            self.problem(key, Problem::warning(message).help("usual limits are \"30s\" or \"2m\""));
        }
        Some(limit)
    }

    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.measure(key, "a duration", "30s", units::duration)
    }

    /// Reads a duration that may be zero.
    pub(crate) fn wait(&mut self, key: &'static str) -> Option<Duration> {
        self.measure(key, "a duration", "30s", units::wait)
    }

    pub(crate) fn size(&mut self, key: &'static str) -> Option<u64> {
        self.measure(key, "a size", "10MiB", units::size)
    }

    /// Reports every key that was not read.
    pub(crate) fn finish(self) {
        #[cfg(test)]
        KNOWN.with_borrow_mut(|known| {
            known.extend(self.asked.iter().map(|key| join(&self.path, key)));
        });
        for (key, entry) in &self.table.entries {
            if self.asked.contains(&key.as_str()) {
                continue;
            }
            let path = join(&self.path, key);
            let help = native::help_for_key(&self.path, key)
                .or_else(|| {
                    let nearest = nearest(key, self.asked.iter().copied())?;
                    Some(format!("did you mean `{nearest}`?"))
                })
                .unwrap_or_else(|| "remove it; `capstan config schema` lists every key".to_owned());
            let problem = Problem::error(format!("`{path}` is not a known key")).help(help);
            self.report.add(problem, path, &entry.key);
        }
    }

    fn measure<T>(
        &mut self,
        key: &'static str,
        what: &str,
        example: &str,
        read: fn(&str) -> Result<T, BadUnit>,
    ) -> Option<T> {
        let entry = self.entry(key)?;
        let path = self.key(key);
        let (bare, result) = match &entry.node.value {
            Value::Text(text) => (text.shown(), read(&text.value)),
            Value::Number(number) => (number.as_str(), Err(BadUnit::NoUnit)),
            Value::Bool(_) | Value::Moment(_) | Value::Null | Value::List(_) | Value::Table(_) => {
                let help = format!("write `{}`", self.line(key, &format!("\"{example}\"")));
                self.mismatch(key, &entry.node, what, Some(help));
                return None;
            }
        };
        let unit = example.trim_start_matches(|c: char| c.is_ascii_digit());
        let problem = match result {
            Ok(value) => return Some(value),
            Err(BadUnit::NoUnit) => Problem::error(format!("`{path}` has no unit"))
                .help(format!("write `{}`", self.line(key, &format!("\"{bare}{unit}\"")))),
            Err(BadUnit::NotRead) => Problem::error(format!("`{path}` is not {what}"))
                .help(format!("write `{}`", self.line(key, &format!("\"{example}\"")))),
            Err(BadUnit::Zero) => Problem::error(format!("`{path}` must not be zero"))
                .help(format!("write `{}`", self.line(key, &format!("\"{example}\"")))),
        };
        self.problem(key, problem);
        None
    }

    fn mismatch(&mut self, key: &str, node: &Node, expected: &str, help: Option<String>) {
        let path = self.key(key);
        let what = node.value.what();
        let help = help.unwrap_or_else(|| format!("give `{}` {expected}", self.word_for(key)));
        let problem = Problem::error(format!("`{path}` must be {expected}, not {what}")).help(help);
        self.report.add(problem, path, &node.span);
    }
}

/// Returns the name most similar to `text`, if one is similar enough.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(&text.to_lowercase(), &name.to_lowercase());
    names
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
