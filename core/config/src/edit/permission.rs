//! Adds a permission rule, as "always allow" does.

use capstan_model::{Effect, Verdict};
use capstan_policy::Pattern;
use toml_edit::{Array, InlineTable, Item, Table, Value};

use super::EditError;
use super::document::{Editing, insert, positions};

/// The indentation of list items where the list has none to copy.
const INDENT: &str = "    ";

/// Adds a pattern to a permission list, unless it is already there.
///
/// The list is that of one server, or the global one.
pub fn add_permission_rule(
    text: &str,
    verdict: Verdict,
    pattern: &str,
    server: Option<&str>,
) -> Result<String, EditError> {
    let refused = |cause| EditError::Pattern { pattern: pattern.to_owned(), cause };
    Pattern::parse(pattern).map_err(|cause| refused(Some(cause)))?;
    if server.is_some() && pattern.trim_start().starts_with("Elicit(") {
        return Err(refused(None));
    }
    let mut editing = Editing::open(text)?;
    let permissions = match server {
        Some(server) => of_server(&mut editing, server)?,
        None => editing.table("permissions")?,
    };
    let list = list(permissions, verdict)?;
    if !list.iter().any(|rule| is_pattern(rule, pattern)) {
        push(list, pattern.into());
    }
    Ok(editing.finish())
}

/// Adds a global rule that allows items that match a pattern and have this effect.
///
/// A rule that is already there is not added again.
pub fn allow_effect(text: &str, pattern: &str, effect: Effect) -> Result<String, EditError> {
    let refused = |cause| EditError::Pattern { pattern: pattern.to_owned(), cause: Some(cause) };
    Pattern::parse(pattern).map_err(refused)?;
    let mut editing = Editing::open(text)?;
    let list = list(editing.table("permissions")?, Verdict::Allow)?;
    let mut rule = InlineTable::new();
    rule.insert("pattern", pattern.into());
    rule.insert("effect", effect.as_str().into());
    let same = |known: &Value| {
        let known = known.as_inline_table();
        known.is_some_and(|known| {
            let is = |key: &str| {
                let [known, new] = [known, &rule].map(|table| table.get(key)?.as_str());
                known == new
            };
            known.len() == rule.len() && is("pattern") && is("effect")
        })
    };
    if !list.iter().any(same) {
        push(list, Value::InlineTable(rule));
    }
    Ok(editing.finish())
}

/// Adds the digest of a text to `screen.accept`, unless it is already there.
pub fn accept_text(text: &str, digest: &str) -> Result<String, EditError> {
    let mut editing = Editing::open(text)?;
    let screen = editing.table("screen")?;
    if screen.get("accept").is_none() {
        insert(screen, "accept", toml_edit::value(Array::new()));
    }
    let expected = || EditError::Unexpected { key: "screen.accept".to_owned(), expected: "a list" };
    let item = screen.get_mut("accept");
    let list = item.and_then(Item::as_array_mut).ok_or_else(expected)?;
    if !list.iter().any(|known| known.as_str() == Some(digest)) {
        push(list, digest.into());
    }
    Ok(editing.finish())
}

/// The `permissions` table of a server, created in the style of the server's entry if missing.
fn of_server<'e>(editing: &'e mut Editing<'_>, name: &str) -> Result<&'e mut Item, EditError> {
    let key = editing.name_of(name)?;
    let servers = editing.document.get("servers").and_then(Item::as_table);
    let own = servers.and_then(|servers| servers.get(&key)).and_then(Item::as_table);
    let last_of_server = own.and_then(|table| positions(table).into_iter().max());
    if editing.server(name)?.get("permissions").is_none() {
        let item = match last_of_server {
            // The server has a table header, so its permissions get one too.
            Some(position) => {
                let mut table = Table::new();
                table.decor_mut().set_prefix(editing.before_new_table(Some(position)));
                table.set_position(Some(position));
                Item::Table(table)
            }
            None => Item::Value(Value::InlineTable(InlineTable::new())),
        };
        insert(editing.server(name)?, "permissions", item);
    }
    let item = editing.server(name)?.get_mut("permissions");
    item.filter(|item| item.is_table_like())
        .ok_or_else(|| not_a_table(format!("servers.{key}.permissions")))
}

fn list(permissions: &mut Item, verdict: Verdict) -> Result<&mut Array, EditError> {
    let key = verdict.as_str();
    if permissions.get(key).is_none() {
        insert(permissions, key, toml_edit::value(Array::new()));
    }
    let item = permissions.get_mut(key);
    item.and_then(Item::as_array_mut).ok_or_else(|| EditError::Unexpected {
        key: format!("permissions.{key}"),
        expected: "a list",
    })
}

fn is_pattern(rule: &Value, pattern: &str) -> bool {
    // A rule with conditions differs from the same pattern without them.
    rule.as_str() == Some(pattern)
}

/// Adds an item in the style of the list.
///
/// It gets its own line if the others have one, and every comment stays next to its item.
fn push(list: &mut Array, mut item: Value) {
    let neighbour = list.len().checked_sub(1).and_then(|index| list.get_mut(index));
    let mut carried = String::new();
    let mut indent = INDENT.to_owned();
    if let Some(neighbour) = neighbour {
        let decor = neighbour.decor_mut();
        let prefix = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        if let Some((_, own)) = prefix.rsplit_once('\n') {
            own.clone_into(&mut indent);
        }
        carried.push_str(decor.suffix().and_then(|suffix| suffix.as_str()).unwrap_or_default());
        decor.set_suffix("");
    }
    carried.push_str(list.trailing().as_str().unwrap_or_default());
    let first = list.is_empty();
    let (before, trailing) = match carried.rsplit_once('\n') {
        Some((lines, closing)) => (format!("{lines}\n{indent}"), format!("\n{closing}")),
        None if first => (String::new(), carried),
        None => (" ".to_owned(), carried),
    };
    item.decor_mut().set_prefix(before);
    list.push_formatted(item);
    list.set_trailing(trailing);
}

fn not_a_table(key: String) -> EditError {
    EditError::Unexpected { key, expected: "a table" }
}
