//! Expands variables in string values.
//!
//! Expansion happens after parsing, so that a variable's content can never change the structure of
//! a file, and it happens once: the content of a variable is not expanded again.

pub mod forms;

use std::collections::HashMap;
use std::ops::Range;

use forms::{Form, Forms};

use crate::source::Plugin;
use crate::source::Surroundings;
use crate::source::problem::{Problem, Report};
use crate::source::references;
use crate::source::tree::{Node, Table, Text, Value};

/// Names that expand to the root of the workspace without being set.
const PROJECT_DIR: [&str; 2] = ["CAPSTAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// Names that expand to the folder of a plugin.
const PLUGIN_ROOT: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "CALIBAN_PLUGIN_ROOT"];

/// Tables whose keys are expanded too.
const WITH_KEYS: [&str; 3] = ["env", "headers", "tokens"];

/// The meaning of a variable that is not set and has no default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingEnv {
    /// The server that needs it cannot be used.
    #[default]
    Error,
    /// The empty string, with a warning.
    Empty,
}

/// Values that a file asks for, by name.
pub type Inputs = HashMap<String, Answer>;

/// The answer to a value that a file asks for.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The value.
    Given(String),
    /// There is no value.
    Missing {
        /// A description of the missing value.
        needs: String,
        /// Advice on how to supply it.
        help: String,
    },
}

/// Expands every string of a table in place.
pub struct Expander<'a> {
    /// The environment and the workspace.
    pub around: Surroundings<'a>,
    /// The meaning of unset variables.
    pub missing: MissingEnv,
    /// The notations that are replaced.
    pub forms: Forms,
    /// Values that the file asks for.
    pub inputs: &'a Inputs,
    /// The package of the file.
    pub plugin: Option<&'a Plugin>,
}

/// A text with its variables replaced.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expanded {
    text: String,
    /// True if it contains the value of an environment variable.
    from_environment: bool,
    /// Variables that are not set and have no default.
    missing: Vec<String>,
    /// Inputs without a value.
    unanswered: Vec<String>,
    /// Files whose content is requested.
    files: Vec<String>,
    /// Forms of other programs, which stay unchanged.
    foreign: Vec<String>,
    /// True if a `${` is not closed.
    unclosed: bool,
}

/// The position of a text.
#[derive(Clone, Copy)]
struct At<'a> {
    key: &'a str,
    span: &'a Range<usize>,
}

/// The value of a name.
enum Found {
    /// A value that is no secret to readers of the file.
    Fixed(String),
    /// The content of a variable.
    Variable(String),
}

/// Looks up a name.
type Lookup<'a> = &'a dyn Fn(Name<'_>) -> Option<Found>;

/// A name to look up.
#[derive(Clone, Copy)]
enum Name<'t> {
    Variable(&'t str),
    Place(&'t str),
    Input(&'t str),
}

// === impl Expander ===

impl Expander<'_> {
    /// Replaces the variables of a table.
    pub fn expand(&self, table: &mut Table, path: &str, report: &mut Report<'_>) {
        for (key, entry) in &mut table.entries {
            let path = entry.path.clone().unwrap_or_else(|| join(path, key));
            if let (Value::Table(nested), true) =
                (&mut entry.node.value, WITH_KEYS.contains(&key.as_str()))
            {
                self.keys(nested, &path, report);
            }
            self.node(&mut entry.node, &path, report);
        }
    }

    /// Replaces the variables of a value.
    pub fn node(&self, node: &mut Node, key: &str, report: &mut Report<'_>) {
        match &mut node.value {
            Value::Text(text) => {
                let forms = if text.ours { Forms::Braces } else { self.forms };
                let expanded = expand(&text.value, forms, &|name| self.lookup(name));
                let at = At { key, span: &node.span };
                self.report(&expanded, at, report);
                references::check(&text.value, &expanded.text, key, &node.span, report);
                // A text with a missing variable stays as written: its server is not used, and
                // checks of its other values do not report errors caused by the expansion.
                if expanded.missing.is_empty() || self.missing == MissingEnv::Empty {
                    let changed = expanded.from_environment || !expanded.missing.is_empty();
                    let written = changed.then(|| text.value.clone());
                    *text = Text { value: expanded.text, written, ours: false };
                }
            }
            Value::List(nodes) => {
                for node in nodes {
                    self.node(node, key, report);
                }
            }
            Value::Table(table) => self.expand(table, key, report),
            Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null => {}
        }
    }

    /// Expands the keys of a table.
    fn keys(&self, table: &mut Table, path: &str, report: &mut Report<'_>) {
        for (key, mut entry) in std::mem::take(&mut table.entries) {
            let expanded = expand(&key, self.forms, &|name| self.lookup(name));
            let at = At { key: path, span: &entry.key };
            self.report(&expanded, at, report);
            if expanded.text == key || !expanded.missing.is_empty() {
                table.put(key, entry);
                continue;
            }
            entry.path.get_or_insert_with(|| join(path, &key));
            entry.written = Some(key);
            table.put(expanded.text, entry);
        }
    }

    fn lookup(&self, name: Name<'_>) -> Option<Found> {
        let project = self.around.project_dir;
        match name {
            Name::Variable(name) if PROJECT_DIR.contains(&name) => {
                Some(Found::Fixed(project.to_owned()))
            }
            Name::Variable(name) => match self.plugin {
                Some(plugin) if PLUGIN_ROOT.contains(&name) => {
                    Some(Found::Fixed(plugin.root.clone()))
                }
                Some(_) | None => (self.around.variable)(name).map(Found::Variable),
            },
            Name::Place("userHome" | "HOME") => self.home().map(Found::Fixed),
            Name::Place(name @ ("DESKTOP" | "DOCUMENTS" | "DOWNLOADS")) => {
                self.users_folder(name).map(Found::Fixed)
            }
            Name::Place("__dirname") => self.plugin.map(|plugin| Found::Fixed(plugin.root.clone())),
            Name::Place("workspaceFolder") => Some(Found::Fixed(project.to_owned())),
            Name::Place("workspaceFolderBasename") => {
                let name = project.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                Some(Found::Fixed(name.to_owned()))
            }
            Name::Place(_) => Some(Found::Fixed(std::path::MAIN_SEPARATOR.to_string())),
            Name::Input(id) => match self.inputs.get(id)? {
                Answer::Given(value) => Some(Found::Variable(value.clone())),
                Answer::Missing { .. } => None,
            },
        }
    }

    fn home(&self) -> Option<String> {
        ["HOME", "USERPROFILE"].iter().find_map(|name| (self.around.variable)(name))
    }

    /// A standard folder of the user: from its XDG variable, or at the usual path.
    fn users_folder(&self, name: &str) -> Option<String> {
        let variable = match name {
            "DOWNLOADS" => "XDG_DOWNLOAD_DIR".to_owned(),
            name => format!("XDG_{name}_DIR"),
        };
        let usual =
            name.chars().take(1).chain(name.chars().skip(1).map(|c| c.to_ascii_lowercase()));
        let usual = || Some(format!("{}/{}", self.home()?, usual.collect::<String>()));
        (self.around.variable)(&variable).filter(|folder| !folder.is_empty()).or_else(usual)
    }

    /// Returns a text with its variables replaced, if all of them are known.
    pub fn text(&self, text: &str) -> Option<String> {
        let expanded = expand(text, self.forms, &|name| self.lookup(name));
        let whole = expanded.missing.is_empty() && expanded.unanswered.is_empty();
        whole.then_some(expanded.text)
    }

    fn report(&self, expanded: &Expanded, At { key, span }: At<'_>, report: &mut Report<'_>) {
        if expanded.unclosed {
            let problem = Problem::error(format!("`{key}` has a `${{` that is never closed"))
                .help("close it with `}`, as in `${HOME}`");
            report.add(problem, key, span);
        }
        for name in &expanded.missing {
            let problem = match self.missing {
                MissingEnv::Error => Problem::error(format!(
                    "`{key}` needs the environment variable `{name}`, which is not set"
                )),
                MissingEnv::Empty => Problem::warning(format!(
                    "`{key}` uses the environment variable `{name}`, which is not set; it is empty"
                )),
            };
            report.add(problem.help(self.forms.remedy(name)).unset(), key, span);
        }
        for id in &expanded.unanswered {
            let (needs, help) = match self.inputs.get(id) {
                Some(Answer::Missing { needs, help }) => (needs.clone(), help.clone()),
                Some(Answer::Given(_)) | None => self.forms.undeclared(id),
            };
            let problem = Problem::error(format!("`{key}` needs {needs}")).help(help);
            report.add(problem.unset(), key, span);
        }
        for path in &expanded.files {
            let problem = Problem::error(format!("`{key}` needs the content of the file `{path}`"))
                .help("Capstan does not read files into values; write `{env:NAME}` instead");
            report.add(problem, key, span);
        }
        for form in &expanded.foreign {
            let problem = Problem::warning(format!("`{form}` in `{key}` is not replaced"))
                .help(self.forms.known());
            report.add(problem, key, span);
        }
    }
}

/// Joins a dotted path and a key.
pub fn join(path: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let key = if !key.is_empty() && key.chars().all(bare) {
        key.to_owned()
    } else {
        format!("\"{}\"", key.escape_debug())
    };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Replaces the variables of a text. Text that is not exactly one of the forms stays unchanged.
fn expand(text: &str, forms: Forms, lookup: Lookup<'_>) -> Expanded {
    let mut out = Expanded::default();
    let mut rest = text;
    while let Some((before, form)) =
        rest.find(forms.marks()).and_then(|at| rest.split_at_checked(at))
    {
        out.text.push_str(before);
        // `$$` is how other programs escape a literal `$`.
        if let Some(after) = form.strip_prefix("$$") {
            out.text.push_str("$$");
            rest = after;
            continue;
        }
        let Some((found, behind)) = forms.take(form) else {
            let mut chars = form.chars();
            out.text.extend(chars.next());
            rest = chars.as_str();
            continue;
        };
        let written = form.strip_suffix(behind).unwrap_or(form);
        out.replace(found, written, forms, lookup);
        rest = behind;
    }
    out.text.push_str(rest);
    out
}

// === impl Expanded ===

impl Expanded {
    fn replace(&mut self, form: Form<'_>, written: &str, forms: Forms, lookup: Lookup<'_>) {
        match form {
            Form::Variable(name) => match lookup(Name::Variable(name)) {
                Some(found) => self.found(found),
                None => self.missing.push(name.to_owned()),
            },
            Form::Default(name, default) => match lookup(Name::Variable(name)) {
                Some(Found::Variable(value)) if value.is_empty() && forms.empty_is_unset() => {
                    self.text.push_str(default);
                }
                Some(found) => self.found(found),
                None => self.text.push_str(default),
            },
            Form::IfSet(name) => match lookup(Name::Variable(name)) {
                Some(found) => self.found(found),
                None => self.text.push_str(written),
            },
            Form::Place(name) => match lookup(Name::Place(name)) {
                Some(found) => self.found(found),
                None => self.missing.push("HOME".to_owned()),
            },
            Form::Input(id) => {
                if let Some(found) = lookup(Name::Input(id)) {
                    self.found(found);
                } else {
                    self.unanswered.push(id.to_owned());
                    self.text.push_str(written);
                }
            }
            Form::File(path) => {
                self.files.push(path.to_owned());
                self.text.push_str(written);
            }
            Form::Foreign(_) => {
                self.foreign.push(written.to_owned());
                self.text.push_str(written);
            }
            Form::Unclosed => {
                self.unclosed = true;
                self.text.push_str(written);
            }
        }
    }

    fn found(&mut self, found: Found) {
        match found {
            Found::Fixed(value) => self.text.push_str(&value),
            Found::Variable(value) => {
                self.from_environment = true;
                self.text.push_str(&value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
