//! A parsed file: a tree of values with their positions.
//!
//! Files of every syntax and dialect become such a tree first. The meaning of a value and the
//! report of a mistake do not depend on how the file was written.

use std::ops::Range;

use indexmap::IndexMap;

/// A table, in the order of its file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The entries by key.
    pub entries: IndexMap<String, Entry>,
    /// Entries that do not count: the value is null, or a later entry has the same key.
    pub unread: Vec<(String, Entry)>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The position of the key.
    pub key: Range<usize>,
    /// The value.
    pub node: Node,
    /// The dotted path in the file, if the file is another program's.
    pub path: Option<String>,
    /// The key as it was written, if a variable in it was replaced.
    pub written: Option<String>,
}

/// A value with its position.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Its position.
    pub span: Range<usize>,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(Text),
    /// A number as it was written, so that any size can be reported.
    Number(String),
    /// True or false.
    Bool(bool),
    /// A date or a time as it was written.
    Moment(String),
    /// Null. An entry with this value counts as absent.
    Null,
    /// A list.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// A string value.
#[derive(Clone, Debug)]
pub struct Text {
    /// The string with its variables replaced.
    pub value: String,
    /// The string as written, if it contains an environment variable. Messages and listings use
    /// this one, because the variable may hold a secret.
    pub written: Option<String>,
    /// True if a dialect made it from a key that names a variable. Such a string is expanded by
    /// native rules, not by those of the file.
    pub ours: bool,
}

// === impl Table ===

impl Table {
    /// Returns the entry of a key.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Returns the table under `key`, if there is one.
    pub fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.node.as_table()
    }

    /// Adds or replaces an entry.
    pub fn put(&mut self, key: impl Into<String>, entry: Entry) {
        self.entries.insert(key.into(), entry);
    }
}

// === impl Entry ===

impl Entry {
    /// Creates an entry of a native file.
    pub fn new(key: Range<usize>, node: Node) -> Self {
        Self { key, node, path: None, written: None }
    }
}

// === impl Node ===

impl Node {
    /// Returns the table, if it is one.
    pub fn as_table(&self) -> Option<&Table> {
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

    /// Returns the string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
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

    /// Returns the boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
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

    /// A string.
    pub fn text(text: impl Into<String>, span: Range<usize>) -> Self {
        Self { value: Value::Text(Text::plain(text)), span }
    }

    /// `true`.
    pub fn yes(span: Range<usize>) -> Self {
        Self { value: Value::Bool(true), span }
    }

    /// `false`.
    pub fn no(span: Range<usize>) -> Self {
        Self { value: Value::Bool(false), span }
    }

    /// A list.
    pub fn list(nodes: Vec<Self>, span: Range<usize>) -> Self {
        Self { value: Value::List(nodes), span }
    }

    /// Returns the list, if it is one.
    pub fn as_list(&self) -> Option<&[Self]> {
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

    /// Returns the number as written, if it is one.
    pub fn as_number(&self) -> Option<&str> {
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
    /// The type of the value, for a message.
    pub fn what(&self) -> &'static str {
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
    /// Creates a string without variables.
    pub fn plain(value: impl Into<String>) -> Self {
        Self { value: value.into(), written: None, ours: false }
    }

    /// Returns the string without the values of environment variables.
    pub fn shown(&self) -> &str {
        self.written.as_ref().unwrap_or(&self.value)
    }

    /// Returns a message about an error in the string.
    ///
    /// The error may repeat the string, so it is left out if the string came from the environment.
    pub fn complaint(&self, key: &str, error: &dyn std::error::Error) -> String {
        match &self.written {
            Some(written) => format!("in `{key}`, `{written}` is not a pattern"),
            None => format!("in `{key}`, {error}"),
        }
    }
}
