//! A TOML document being edited.

use toml_edit::{DocumentMut, Item, Table};

use crate::fields::nearest;
use crate::read::server::slug;

use super::EditError;

/// The byte order mark that some editors write at the start of a file.
const BOM: char = '\u{feff}';

/// A file with its changes so far.
pub(super) struct Editing<'a> {
    original: &'a str,
    pub(super) document: DocumentMut,
}

/// A line of a file and its line ending.
struct Line<'a> {
    text: &'a str,
    ending: &'a str,
}

// === impl Editing ===

impl<'a> Editing<'a> {
    pub(super) fn open(text: &'a str) -> Result<Self, EditError> {
        let original = text;
        match text.parse() {
            Ok(document) => Ok(Self { original, document }),
            Err(cause) => Err(syntax(text, cause)),
        }
    }

    /// The changed text.
    pub(super) fn finish(self) -> String {
        restore(self.original, &self.document.to_string())
    }

    /// Returns the name of a server as the file spells it.
    pub(super) fn name_of(&self, name: &str) -> Result<String, EditError> {
        let servers = self.document.get("servers").and_then(Item::as_table_like);
        let names = || servers.iter().flat_map(|servers| servers.iter()).map(|(key, _)| key);
        let same = |key: &&str| slug(key).is_some() && slug(key) == slug(name);
        let found = names().find(|key| *key == name).or_else(|| names().find(same));
        found.map(str::to_owned).ok_or_else(|| {
            let nearest = nearest(name, names()).map(str::to_owned);
            EditError::UnknownServer { name: name.to_owned(), nearest }
        })
    }

    /// Returns the entry of a server, as a table or an inline table.
    pub(super) fn server(&mut self, name: &str) -> Result<&mut Item, EditError> {
        let key = self.name_of(name)?;
        let servers = self.document.get_mut("servers").and_then(Item::as_table_like_mut);
        let server = servers.and_then(|servers| servers.get_mut(&key));
        server.filter(|server| server.is_table_like()).ok_or_else(|| EditError::Unexpected {
            key: format!("servers.{key}"),
            expected: "a table",
        })
    }

    /// Returns a table for all servers, created at the end of the file if missing.
    pub(super) fn table(&mut self, name: &str) -> Result<&mut Item, EditError> {
        if self.document.get(name).is_none() {
            let mut table = Table::new();
            let last = positions(self.document.as_table()).into_iter().max();
            table.decor_mut().set_prefix(self.before_new_table(None));
            table.set_position(last);
            self.document.insert(name, Item::Table(table));
        }
        let item = self.document.get_mut(name).filter(|item| item.is_table_like());
        item.ok_or_else(|| EditError::Unexpected { key: name.to_owned(), expected: "a table" })
    }

    /// True if the file is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.original.trim().is_empty()
    }

    /// The text before a new table: a blank line, and the file's trailing text if the table is
    /// last.
    pub(super) fn before_new_table(&mut self, after: Option<isize>) -> String {
        let last = positions(self.document.as_table()).into_iter().max();
        let space = if self.is_empty() { "" } else { "\n" };
        if after.is_some() && after < last {
            return space.to_owned();
        }
        let mut before = self.document.trailing().as_str().unwrap_or_default().to_owned();
        if !before.is_empty() && !before.ends_with('\n') {
            before.push('\n');
        }
        self.document.set_trailing("");
        before + space
    }
}

/// Adds a key to a table or an inline table.
pub(super) fn insert(table: &mut Item, key: &str, item: Item) {
    // Otherwise the space before the closing brace would end up before a comma.
    if let Some((_, last)) = table.as_inline_table_mut().and_then(|table| table.iter_mut().last()) {
        last.decor_mut().set_suffix("");
    }
    if let Some(table) = table.as_table_like_mut() {
        table.insert(key, item);
    }
}

/// The positions of all tables that have one, in the order in which they are found.
pub(super) fn positions(table: &Table) -> Vec<isize> {
    let mut found: Vec<isize> = table.position().into_iter().collect();
    for (_, item) in table {
        match item {
            Item::Table(table) => found.extend(positions(table)),
            Item::ArrayOfTables(tables) => found.extend(tables.iter().flat_map(positions)),
            Item::Value(_) | Item::None => {}
        }
    }
    found
}

pub(super) fn syntax(text: &str, cause: toml_edit::TomlError) -> EditError {
    let at = text.floor_char_boundary(cause.span().map_or(0, |span| span.start));
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    EditError::Syntax { line, column, cause: Box::new(cause) }
}

/// Restores the line endings of unchanged lines; the parser converts all of them to `\n`.
fn restore(original: &str, edited: &str) -> String {
    let bom = if original.starts_with(BOM) { "\u{feff}" } else { "" };
    let old = lines(original.trim_start_matches(BOM));
    let new = lines(edited.trim_start_matches(BOM));
    let style = if old.iter().any(|line| line.ending == "\r\n") { "\r\n" } else { "\n" };
    let same = |(old, new): &(&Line<'_>, &Line<'_>)| old.text == new.text;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let tail = tail.min(old.len().min(new.len()) - head);
    let mut text = bom.to_owned();
    for (index, line) in new.iter().enumerate() {
        let from_end = new.len() - index;
        let kept = if index < head {
            old.get(index)
        } else if from_end <= tail {
            old.len().checked_sub(from_end).and_then(|index| old.get(index))
        } else {
            None
        };
        let ending = match kept {
            // Only the last line of a file may lack a line ending.
            Some(kept) if !kept.ending.is_empty() || from_end == 1 => kept.ending,
            Some(_) | None => style,
        };
        text.push_str(line.text);
        text.push_str(ending);
    }
    text
}

fn lines(text: &str) -> Vec<Line<'_>> {
    text.split_inclusive('\n')
        .map(|line| {
            let bare = line.strip_suffix('\n').unwrap_or(line);
            let bare = bare.strip_suffix('\r').filter(|_| line.ends_with('\n')).unwrap_or(bare);
            Line { text: bare, ending: line.strip_prefix(bare).unwrap_or_default() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_stay_keep_their_endings() {
        let check = |original: &str, edited: &str, expected: &str| {
            assert_eq!(restore(original, edited), expected);
        };
        check("a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n");
        check("a\nb", "x\na\nb\n", "x\na\nb");
        check("a", "a\nx\n", "a\nx\n");
        check("a\r\nb\nc\n", "a\nc\n", "a\r\nc\n");
        check("\u{feff}a\n", "a\nx\n", "\u{feff}a\nx\n");
        check("", "x\n", "x\n");
    }
}
