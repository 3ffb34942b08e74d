//! Translates a server, key by key.
//!
//! **Invariant:** a key that restricts is translated or refused; only a key that restricts nothing
//! is left out, with a warning.

use std::ops::Range;
use std::time::Duration;

use capstan_model::ServerName;

use capstan_config::nearest;
use capstan_config::show_duration;
use capstan_config::source::Scope;
use capstan_config::source::expand::join;
use capstan_config::source::problem::{Problem, Report};
use capstan_config::source::tree::{Entry, Node, Table, Text, Value};

use capstan_config::source::Dialect;
use capstan_config::source::reader::AutoAllow;

/// The translation of a key of another program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// The unchanged value under a native key.
    Key(&'static str),
    /// A time in this unit, under these native keys.
    Time(Unit, &'static [&'static str]),
    /// A list of tools by their exact names, under a native key.
    Tools(&'static str),
    /// Translated by code of the dialect.
    ByHand,
    /// Not supported: what the key asks for, and what to write instead.
    Refuse(&'static str, &'static str),
    /// Left out with a warning: the reason why that does no harm.
    Note(&'static str),
    /// Irrelevant here; left out without a warning.
    Nothing,
}

/// The keys of a server in some dialect.
pub(crate) type Keys = &'static [(&'static str, To)];

/// Words that mark a key as one that restricts.
///
/// Such a key is an error if it is unknown, because its author relies on it.
const RESTRICTING: [&str; 20] = [
    "acl",
    "allowed",
    "allowlist",
    "blacklist",
    "block",
    "confirm",
    "denied",
    "deny",
    "disable",
    "enabledtools",
    "exclude",
    "forbid",
    "includetools",
    "limit",
    "only",
    "permission",
    "quota",
    "restrict",
    "sandbox",
    "whitelist",
];

/// The unit of a number that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

/// A server being translated.
pub(crate) struct One<'a> {
    pub(crate) display: String,
    pub(crate) slug: Option<ServerName>,
    /// Its dotted path in the file.
    pub(crate) path: String,
    /// The position of its key.
    pub(crate) at: Range<usize>,
    /// Its entry in the file.
    pub(crate) raw: &'a Table,
    /// Its entry with native keys.
    pub(crate) out: Table,
    pub(crate) report: Report<'a>,
}

// === impl One ===

impl<'a> One<'a> {
    /// Translates every key in the table of keys, and reports the others.
    pub(crate) fn apply(&mut self, keys: Keys) {
        for (key, entry) in &self.raw.entries {
            let Some((_, to)) = keys.iter().find(|(word, _)| word == key) else {
                self.unknown(key, keys);
                continue;
            };
            match *to {
                To::Key(ours) => self.put(ours, key, entry.node.clone()),
                To::Time(unit, ours) => self.time(key, entry, unit, ours),
                To::Tools(ours) => self.tools(ours, key, entry),
                To::Refuse(what, instead) => self.refuse(key, what, instead),
                To::Note(why) => self.note(key, why),
                To::ByHand | To::Nothing => {}
            }
        }
    }

    /// Puts a value under a native key.
    pub(crate) fn put(&mut self, ours: &str, key: &str, node: Node) {
        let at = self.raw.get(key).map_or_else(|| self.at.clone(), |entry| entry.key.clone());
        let path = join(&self.path, key);
        self.out.put(ours, Entry { path: Some(path), ..Entry::new(at, node) });
    }

    pub(crate) fn put_text(&mut self, ours: &str, key: &str, text: impl Into<String>) {
        let span = self.span(key);
        self.put(ours, key, Node::text(text, span));
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.raw.get(key)?.node.as_text()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.raw.get(key)?.node.as_bool()
    }

    /// Removes values under native keys, because another key of the file excludes them.
    pub(crate) fn drop_keys(&mut self, ours: &[&str], winner: &str) {
        let mut dropped = Vec::new();
        for ours in ours {
            if let Some(entry) = self.out.entries.shift_remove(*ours) {
                let path = entry.path.unwrap_or_default();
                dropped.push((path.rsplit('.').next().unwrap_or_default().to_owned(), entry.key));
            }
        }
        let Some((first, at)) = dropped.first().cloned() else { return };
        let names: Vec<String> = dropped.iter().map(|(name, _)| format!("`{name}`")).collect();
        let (path, names) = (self.path.clone(), names.join(", "));
        let message = format!("`{path}` has `{winner}`, which replaces {names}");
        let problem = Problem::warning(message).help("remove the keys that you do not need");
        self.report.add(problem, join(&path, &first), &at);
    }

    /// Lets tools that match this pattern run without asking.
    ///
    /// A project file must be approved for this: an unapproved file cannot grant itself
    /// permissions.
    pub(crate) fn auto_allow(
        &mut self,
        path: String,
        span: &Range<usize>,
        pattern: &str,
    ) -> Option<AutoAllow> {
        let file = self.report.file;
        if file.scope == Scope::Project && !file.approved {
            let problem =
                Problem::warning(format!("`{path}` is not started until you trust the file"))
                    .help("read the file, then run `capstan trust`");
            self.report.add(problem, path, span);
            return None;
        }
        let server = self.slug.clone()?;
        let pattern = format!("{server}__{pattern}");
        Some(AutoAllow { server, pattern, path, span: span.clone() })
    }

    /// Adds a pattern to one of the server's own lists of rules.
    pub(crate) fn rule(&mut self, list: &str, path: String, pattern: Node) {
        let span = pattern.span.clone();
        let known = self.out.table("permissions").and_then(|table| table.get(list));
        let mut rules = known.and_then(|entry| entry.node.as_list()).unwrap_or_default().to_vec();
        rules.push(pattern);
        let node = Node::list(rules, span.clone());
        self.put_in("permissions", list, Entry { path: Some(path), ..Entry::new(span, node) });
    }

    /// Puts an entry into one of the server's tables, created if missing.
    pub(crate) fn put_in(&mut self, table: &str, key: &str, entry: Entry) {
        let at = entry.key.clone();
        let empty = Node { value: Value::Table(Table::default()), span: at.clone() };
        let outer = Entry::new(at, empty);
        let outer = self.out.entries.entry(table.to_owned()).or_insert(outer);
        // `capstan-config` reports a value that is not a table.
        if let Value::Table(table) = &mut outer.node.value {
            table.put(key, entry);
        }
    }

    /// Disables the server, because of a list elsewhere in the file.
    pub(crate) fn switch_off(&mut self, path: &str, span: Range<usize>) {
        self.out.entries.shift_remove("disabled");
        let node = Node::no(span.clone());
        let entry = Entry { path: Some(path.to_owned()), ..Entry::new(span, node) };
        self.out.put("enabled", entry);
    }

    /// Translates the transport: `words` maps words of the dialect to native ones.
    pub(crate) fn kind(&mut self, key: &str, words: &[(&str, &str)]) {
        let Some(text) = self.text(key).map(str::to_lowercase) else {
            if let Some(entry) = self.raw.get(key) {
                self.put("type", key, entry.node.clone());
            }
            return;
        };
        let ours = words.iter().find(|(word, _)| *word == text).map(|(_, ours)| *ours);
        self.put_text("type", key, ours.unwrap_or(&text));
    }

    pub(crate) fn refuse(&mut self, key: &str, what: &str, instead: &str) {
        let path = join(&self.path, key);
        let message = format!("`{path}` asks for {what}, which this version does not support");
        self.warn(key, Problem::error(message).help(instead.to_owned()));
    }

    pub(crate) fn note(&mut self, key: &str, why: &str) {
        let path = join(&self.path, key);
        let problem = Problem::warning(format!("`{path}` is not used: {why}"));
        self.warn(key, problem.help("you can keep it"));
    }

    /// Reports a problem with a key.
    pub(crate) fn warn(&mut self, key: &str, problem: Problem) {
        let span = self.span(key);
        let path = join(&self.path, key);
        self.report.add(problem, path, &span);
    }

    /// The position of the value of a key, or of the server if there is no such key.
    pub(crate) fn span(&self, key: &str) -> Range<usize> {
        self.raw.get(key).map_or_else(|| self.at.clone(), |entry| entry.node.span.clone())
    }

    fn unknown(&mut self, key: &str, keys: Keys) {
        let path = join(&self.path, key);
        let program = self.report.file.dialect.unwrap_or(Dialect::Native).program();
        let lower = key.to_lowercase();
        let problem = if RESTRICTING.iter().any(|word| lower.contains(word)) {
            Problem::error(format!(
                "`{path}` is not a key of {program}, but seems to restrict something"
            ))
        } else {
            Problem::warning(format!("`{path}` is not a key of {program}; it is not used"))
        };
        let help = match nearest(key, keys.iter().map(|(word, _)| *word)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "remove it, unless another program needs it".to_owned(),
        };
        let at = self.raw.get(key).map_or_else(|| self.at.clone(), |entry| entry.key.clone());
        self.report.add(problem.help(help), path, &at);
    }

    /// Translates a list of tools, in which a star means all.
    pub(crate) fn tools_or_all(&mut self, key: &str) {
        let all = |node: &Node| node.as_text() == Some("*");
        if let Some(entry) = self.raw.get(key)
            && !entry.node.as_list().is_some_and(|list| list.iter().any(all))
        {
            self.tools("expose", key, entry);
        }
    }

    pub(crate) fn time(&mut self, key: &str, entry: &Entry, unit: Unit, ours: &[&str]) {
        let node = match number(&entry.node) {
            Some(number) => {
                if unit == Unit::Seconds {
                    self.check_seconds(key, entry);
                }
                Node::text(unit.duration(number), entry.node.span.clone())
            }
            None => entry.node.clone(),
        };
        for ours in ours {
            self.put(ours, key, node.clone());
        }
    }

    /// Warns about whole thousands of seconds, which are more likely meant as milliseconds.
    fn check_seconds(&mut self, key: &str, entry: &Entry) {
        let number: Option<u32> = entry.node.as_number().and_then(|number| number.parse().ok());
        if let Some(seconds @ 1000..=21_600) = number
            && seconds % 1000 == 0
        {
            let path = join(&self.path, key);
            let message = format!("`{path}` is {seconds} seconds; is the unit right?");
            self.warn(key, Problem::warning(message).help("usual limits are 30 or 120 seconds"));
        }
    }

    pub(crate) fn tools(&mut self, ours: &str, key: &str, entry: &Entry) {
        let mut node = entry.node.clone();
        if let Value::List(nodes) = &mut node.value {
            for node in nodes {
                if let Value::Text(text) = &mut node.value {
                    *text = Text::plain(exactly(&text.value));
                }
            }
        }
        self.put(ours, key, node);
    }
}

// === impl Unit ===

impl Unit {
    /// Formats the number as a duration with a unit.
    pub(crate) fn duration(self, number: f64) -> String {
        let seconds = match self {
            Self::Seconds => number,
            Self::Milliseconds => number / 1000.0,
        };
        // An invalid time becomes zero, which `capstan-config` refuses.
        let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        show_duration(Duration::from_millis(
            u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        ))
    }
}

/// Returns a number, also one in quotes.
pub(crate) fn number(node: &Node) -> Option<f64> {
    let text = match &node.value {
        Value::Number(text) => text.as_str(),
        Value::Text(text) => text.value.trim(),
        Value::Bool(_) | Value::Moment(_) | Value::Null | Value::List(_) | Value::Table(_) => {
            return None;
        }
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a pattern that matches only this name.
pub(crate) fn exactly(name: &str) -> String {
    let mut pattern = String::new();
    for c in name.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' | '\\' => {
                pattern.push('[');
                pattern.push(c);
                pattern.push(']');
            }
            c => pattern.push(c),
        }
    }
    pattern
}
