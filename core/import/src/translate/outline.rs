//! Checks the shape of tables that this version knows but does not support yet.
//!
//! The tables are not used, so this only reports mistakes before the operator relies on them.

use capstan_config::nearest;
use capstan_config::source::expand::join;
use capstan_config::source::problem::{Problem, Report};
use capstan_config::source::tree::{Node, Table, Value};

/// The expected shape of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outline {
    /// Any value.
    Any,
    Text,
    Number,
    Flag,
    /// One of a fixed set of words.
    Word(&'static [&'static str]),
    List(&'static Self),
    /// A table whose keys are chosen by the file and secret, so that messages do not repeat them.
    Secrets(&'static Self),
    /// A table of known keys.
    Table(&'static [(&'static str, Self)]),
    /// The first of these shapes that fits.
    OneOf(&'static [Self]),
}

// === impl Outline ===

impl Outline {
    /// Reports everything that does not fit.
    pub(crate) fn check(&self, node: &Node, path: &str, report: &mut Report<'_>) {
        match (self, &node.value) {
            (Self::List(item), Value::List(nodes)) => {
                for node in nodes {
                    item.check(node, path, report);
                }
            }
            (Self::Secrets(value), Value::Table(table)) => {
                for entry in table.entries.values() {
                    value.check(&entry.node, path, report);
                }
            }
            (Self::Table(keys), Value::Table(table)) => known(keys, table, path, report),
            (Self::OneOf(outlines), _) => {
                let fitting = outlines.iter().find(|outline| outline.fits(node));
                match fitting {
                    Some(outline) => outline.check(node, path, report),
                    None => self.complain(node, path, report),
                }
            }
            (Self::Word(words), Value::Text(text)) if !words.contains(&text.value.as_str()) => {
                self.complain(node, path, report);
            }
            _ if self.fits(node) => {}
            _ => self.complain(node, path, report),
        }
    }

    /// True if the value is of this type, whatever its content.
    fn fits(&self, node: &Node) -> bool {
        match self {
            Self::Any => true,
            Self::Text | Self::Word(_) => node.as_text().is_some(),
            Self::Number => node.as_number().is_some(),
            Self::Flag => node.as_bool().is_some(),
            Self::List(_) => node.as_list().is_some(),
            Self::Secrets(_) | Self::Table(_) => node.as_table().is_some(),
            Self::OneOf(outlines) => outlines.iter().any(|outline| outline.fits(node)),
        }
    }

    fn complain(&self, node: &Node, path: &str, report: &mut Report<'_>) {
        let expected = self.expected();
        let problem = Problem::error(format!("`{path}` must be {expected}"))
            .help(format!("it is {}", node.value.what()));
        report.add(problem, path, &node.span);
    }

    fn expected(&self) -> String {
        match self {
            Self::Any => "there".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Number => "a number".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::List(item) => format!("a list, each entry {}", item.expected()),
            Self::Secrets(_) | Self::Table(_) => "a table".to_owned(),
            Self::OneOf(outlines) => {
                let all: Vec<String> = outlines.iter().map(Self::expected).collect();
                all.join(" or ")
            }
        }
    }
}

fn known(keys: &[(&'static str, Outline)], table: &Table, path: &str, report: &mut Report<'_>) {
    for (key, entry) in &table.entries {
        let path = join(path, key);
        // `avelino_auth` reports this older key, together with its replacement.
        if path == "serverAuth.provider" {
            continue;
        }
        if let Some((_, outline)) = keys.iter().find(|(known, _)| known == key) {
            outline.check(&entry.node, &path, report);
            continue;
        }
        let help = match nearest(key, keys.iter().map(|(known, _)| *known)) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "remove it".to_owned(),
        };
        let problem = Problem::error(format!("`{path}` is not a known key")).help(help);
        report.add(problem, path, &entry.key);
    }
}
