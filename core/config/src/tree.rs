//! A parsed file: values that know where they were written.
//!
//! Every dialect is read into this shape first, so that what a value means and how a mistake is
//! reported do not depend on how the file was written.

use std::ops::Range;

use indexmap::IndexMap;

/// A table, in the order of its file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: IndexMap<String, Entry>,
    /// Entries without a meaning: the value is null, or a later entry has the same key.
    pub(crate) unread: Vec<(String, Entry)>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where the key stands.
    pub(crate) key: Range<usize>,
    pub(crate) node: Node,
    /// The dotted path in the words of the file, where those are not ours.
    pub(crate) path: Option<String>,
    /// The key as it was written, when a variable in it was replaced.
    pub(crate) written: Option<String>,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Text),
    /// A number as it was written, so that any size can be reported.
    Number(String),
    Bool(bool),
    /// A date or a time as it was written.
    Moment(String),
    /// Nothing, where something might be; as the value of a key it is left out.
    Null,
    List(Vec<Node>),
    Table(Table),
}

/// A string value.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// What it means, variables replaced.
    pub(crate) value: String,
    /// What was written, when a variable of the environment is in it. What is shown to people is
    /// this, because the variable may hold a secret.
    pub(crate) written: Option<String>,
    /// Whether a dialect wrote it down for a key that names a variable: then it is expanded by
    /// our own rules, whatever those of the file are.
    pub(crate) ours: bool,
}

// === impl Table ===

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The table under `key`, if there is one.
    pub(crate) fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.node.as_table()
    }

    pub(crate) fn put(&mut self, key: impl Into<String>, entry: Entry) {
        self.entries.insert(key.into(), entry);
    }
}

// === impl Entry ===

impl Entry {
    pub(crate) fn new(key: Range<usize>, node: Node) -> Self {
        Self { key, node, path: None, written: None }
    }
}

// === impl Node ===

impl Node {
    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            Value::Text(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_) => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(&text.value),
            Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match &self.value {
            Value::Bool(value) => Some(*value),
            Value::Text(_)
            | Value::Number(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    pub(crate) fn text(text: impl Into<String>, span: Range<usize>) -> Self {
        Self { value: Value::Text(Text::plain(text)), span }
    }

    pub(crate) fn yes(span: Range<usize>) -> Self {
        Self { value: Value::Bool(true), span }
    }

    pub(crate) fn no(span: Range<usize>) -> Self {
        Self { value: Value::Bool(false), span }
    }

    pub(crate) fn list(nodes: Vec<Self>, span: Range<usize>) -> Self {
        Self { value: Value::List(nodes), span }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match &self.value {
            Value::List(nodes) => Some(nodes),
            Value::Text(_)
            | Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::Table(_) => None,
        }
    }

    pub(crate) fn as_number(&self) -> Option<&str> {
        match &self.value {
            Value::Number(number) => Some(number),
            Value::Text(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }
}

// === impl Value ===

impl Value {
    /// What this is, for a message.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Number(_) => "a number",
            Self::Bool(_) => "true or false",
            Self::Moment(_) => "a date",
            Self::Null => "null",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

// === impl Text ===

impl Text {
    pub(crate) fn plain(value: impl Into<String>) -> Self {
        Self { value: value.into(), written: None, ours: false }
    }

    /// What may be shown of it, as far as variables go.
    pub(crate) fn shown(&self) -> &str {
        self.written.as_ref().unwrap_or(&self.value)
    }

    /// What is wrong with it. The error may repeat the text, so it is left out where that came
    /// out of the environment.
    pub(crate) fn complaint(&self, key: &str, error: &dyn std::error::Error) -> String {
        match &self.written {
            Some(written) => format!("in `{key}`, `{written}` does not give a pattern"),
            None => format!("in `{key}`, {error}"),
        }
    }
}
