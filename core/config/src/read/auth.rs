//! Expands the variables of `[gateway.auth]`, where a value that is unset or empty is never meant.
//!
//! An empty token would let everyone in. Only the gateway needs these values, so that other
//! commands work without them.

use crate::source::expand::{Expander, MissingEnv, join};
use crate::source::problem::{Problem, Report, Severity};
use crate::source::tree::{Entry, Node, Table, Value};

/// The table, before its variables are replaced.
pub(super) struct Unexpanded {
    entry: Entry,
    path: String,
}

/// Takes the table out of a file.
pub(super) fn take(file: &mut Table) -> Option<Unexpanded> {
    let gateway = file.entries.get_mut("gateway")?;
    let path = gateway.path.clone().unwrap_or_else(|| "gateway".to_owned());
    let Value::Table(table) = &mut gateway.node.value else { return None };
    let entry = table.entries.shift_remove("auth")?;
    let path = entry.path.clone().unwrap_or_else(|| join(&path, "auth"));
    Some(Unexpanded { entry, path })
}

// === impl Unexpanded ===

impl Unexpanded {
    /// Replaces the variables and puts the table back.
    ///
    /// Returns the reasons why the gateway must not start; the report has them as warnings.
    pub(super) fn expand(
        mut self,
        expander: &Expander<'_>,
        file: &mut Table,
        report: &mut Report<'_>,
    ) -> Vec<Problem> {
        let mut own = Report::new(report.file);
        let expander = Expander { missing: MissingEnv::Error, ..*expander };
        let before = tokens(&self.entry.node);
        expander.node(&mut self.entry.node, &self.path, &mut own);
        if tokens(&self.entry.node) < before {
            let problem = Problem::error(format!("two tokens of `{}` are the same", self.path))
                .help("give each token one subject");
            own.add(problem, self.path.clone(), &self.entry.key);
        }
        empty(&self.entry.node, &self.path, &mut own);
        let mut unset = Vec::new();
        for problem in own.problems {
            if problem.is_unset {
                let help = problem.help.clone().unwrap_or_default();
                let warning = Problem { severity: Severity::Warning, ..problem.clone() };
                report.problems.push(
                    warning
                        .help(format!("{help}; `capstan serve --http` does not start without it")),
                );
                unset.push(problem);
            } else {
                report.problems.push(problem);
            }
        }
        if let Some(gateway) = file.entries.get_mut("gateway")
            && let Value::Table(table) = &mut gateway.node.value
        {
            table.put("auth", self.entry);
        }
        unset
    }
}

/// The number of static tokens.
fn tokens(auth: &Node) -> usize {
    let bearer = auth.as_table().and_then(|auth| auth.table("bearer"));
    bearer.and_then(|bearer| bearer.table("tokens")).map_or(0, |tokens| tokens.entries.len())
}

/// Reports texts, and keys of maps, that are empty.
fn empty(node: &Node, path: &str, report: &mut Report<'_>) {
    match &node.value {
        Value::Text(text) if text.value.trim().is_empty() => {
            report_empty(path, text.written.as_ref(), node, report);
        }
        Value::List(nodes) => nodes.iter().for_each(|node| empty(node, path, report)),
        Value::Table(table) => {
            let is_map = path.ends_with(".tokens");
            for (key, entry) in &table.entries {
                if key.trim().is_empty() {
                    report_empty(path, entry.written.as_ref(), &entry.node, report);
                }
                // The keys of the map are tokens, which no message repeats.
                let below = match (&entry.path, is_map) {
                    (_, true) => path.to_owned(),
                    (Some(path), false) => path.clone(),
                    (None, false) => join(path, key),
                };
                empty(&entry.node, &below, report);
            }
        }
        Value::Text(_) | Value::Number(_) | Value::Bool(_) | Value::Moment(_) | Value::Null => {}
    }
}

fn report_empty(path: &str, written: Option<&String>, node: &Node, report: &mut Report<'_>) {
    let problem = if written.is_some() {
        Problem::error(format!("`{path}` uses an environment variable that is empty"))
            .help("set the variable")
            .unset()
    } else {
        Problem::error(format!("`{path}` has an empty value")).help("fill it in, or remove the key")
    };
    report.add(problem, path, &node.span);
}
