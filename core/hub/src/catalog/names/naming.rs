//! Gives items public names that models and clients accept: clean, short, unique and stable.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use capstan_model::name::{FOREIGN_PREFIX, SEPARATOR};
use capstan_model::{ItemId, Naming, ServerName};
use sha2::{Digest, Sha256};

/// Longest name that all model APIs accept.
pub const MAX_NAME: usize = 63;

/// Number of characters kept from the beginning of a name that is too long.
pub(super) const HEAD: usize = 28;

/// Number of characters kept from the end of a name that is too long.
const TAIL: usize = 32;

/// Stands between the two parts of a shortened name.
const GAP: &str = "___";

/// Number of hash digits that are appended to a name that another item already has.
const HASH: usize = 12;

/// Number of items per server that keep their names after the server stops listing them, so that no
/// other item gets these names.
const MAX_RETIRED: usize = 1024;

/// The characters that are allowed in a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`.
    #[default]
    Usual,
    /// The characters of [`Self::Usual`]; the first is a letter or `_`.
    LetterFirst,
    /// The characters of [`Self::Usual`] without the dot.
    NoDots,
}

/// The public names of all items of one kind.
///
/// Lists are added one server at a time, and names that were given are kept: a name means the same
/// item until the item is gone, and for up to `MAX_RETIRED` further removals after that. The same
/// lists in the same order give the same names, regardless of the order within a list.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    alphabet: Alphabet,
    by_name: HashMap<Arc<str>, Bound>,
    by_server: HashMap<Arc<ServerName>, Theirs>,
}

/// The item that a name stands for.
#[derive(Clone, Debug)]
struct Bound {
    server: Arc<ServerName>,
    item: Arc<str>,
}

/// The names of one server's items.
#[derive(Clone, Debug, Default)]
struct Theirs {
    names: HashMap<Arc<str>, Arc<str>>,
    /// The items that are no longer listed, longest gone first.
    retired: VecDeque<Arc<str>>,
}

// === impl Alphabet ===

impl Alphabet {
    /// All alphabets, the usual one first.
    pub const ALL: [Self; 3] = [Self::Usual, Self::LetterFirst, Self::NoDots];

    fn has(self, c: char) -> bool {
        let dot = match self {
            Self::Usual | Self::LetterFirst => c == '.',
            Self::NoDots => false,
        };
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || dot
    }

    /// Replaces each character of `text` that is not in this alphabet. The length is not limited.
    fn spell(self, text: &str) -> String {
        let mut name = String::with_capacity(text.len() + 1);
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if self == Self::LetterFirst && !begins_well {
            name.push('_');
        }
        name.extend(text.chars().map(|c| if self.has(c) { c } else { '_' }));
        name
    }
}

// === impl NameTable ===

impl NameTable {
    /// Creates an empty table.
    pub fn new(alphabet: Alphabet) -> Self {
        Self { alphabet, ..Self::default() }
    }

    /// Adds a server's current list. If servers compete for a name, the one added first gets it.
    pub fn update<'a>(
        &mut self,
        server: &ServerName,
        naming: Naming,
        items: impl IntoIterator<Item = &'a str>,
    ) {
        let shown = items.into_iter().map(|item| (item, item));
        self.update_shown(server, naming, shown, |_| false);
    }

    /// Like [`Self::update`], but each item comes as a pair: its own name and its shown name.
    ///
    /// `is_server` returns true for the name of a server: `NAME.item` is an id then, and no public
    /// name.
    pub fn update_shown<'a>(
        &mut self,
        server: &ServerName,
        naming: Naming,
        shown: impl IntoIterator<Item = (&'a str, &'a str)>,
        is_server: impl Fn(&str) -> bool,
    ) {
        let shown: BTreeMap<&str, &str> = shown.into_iter().collect();
        let server = match self.by_server.get_key_value(server) {
            Some((known, _)) => Arc::clone(known),
            None => Arc::new(server.clone()),
        };
        let theirs = self.by_server.entry(Arc::clone(&server)).or_default();
        for name in theirs.retire(&shown) {
            self.by_name.remove(&name);
        }
        let mut give = |theirs: &mut Theirs, wishes: &Wishes| {
            let item: Arc<str> = wishes.item.into();
            let name = wishes.first_free(&server, &self.by_name);
            theirs.names.insert(Arc::clone(&item), Arc::clone(&name));
            self.by_name.insert(name, Bound { server: Arc::clone(&server), item });
        };
        // Unchanged names are given first, so that an id means the item that it spells.
        let mut changed = Vec::new();
        for (item, shown) in shown {
            if theirs.names.contains_key(item) {
                continue;
            }
            let is_bare =
                naming == Naming::Bare && is_distinct(&self.alphabet.spell(shown), &is_server);
            let naming = if is_bare || naming == Naming::Mcp { naming } else { Naming::Prefixed };
            let wishes = Wishes::new(&server, naming, (item, shown), self.alphabet);
            if wishes.changed {
                changed.push(wishes);
            } else {
                give(theirs, &wishes);
            }
        }
        for wishes in &changed {
            give(theirs, wishes);
        }
    }

    /// Takes back the names that became ids of servers. Returns the servers that lost one.
    pub fn release(&mut self, is_server: impl Fn(&str) -> bool) -> BTreeSet<ServerName> {
        let ids = self.by_name.extract_if(|name, _| spells_id(name, ".", &is_server));
        let mut losers = BTreeSet::new();
        for (_, Bound { server, item }) in ids {
            if let Some(theirs) = self.by_server.get_mut(&server) {
                theirs.names.remove(&item);
                theirs.retired.retain(|retired| *retired != item);
            }
            losers.insert(ServerName::clone(&server));
        }
        losers
    }

    /// Removes a server and all its names.
    pub fn forget(&mut self, server: &ServerName) {
        self.by_server.remove(server);
        self.by_name.retain(|_, bound| *bound.server != *server);
    }

    /// Returns the public name of an item.
    pub fn public(&self, id: &ItemId) -> Option<&Arc<str>> {
        self.by_server.get(&id.server)?.names.get(id.item.as_str())
    }

    /// Returns the item that has this public name.
    pub fn resolve(&self, name: &str) -> Option<ItemId> {
        let Bound { server, item } = self.by_name.get(name)?;
        Some(ItemId { server: ServerName::clone(server), item: item.to_string() })
    }
}

// === impl Theirs ===

impl Theirs {
    /// Retires items that are no longer listed. Returns the names that become free.
    fn retire(&mut self, listed: &BTreeMap<&str, &str>) -> Vec<Arc<str>> {
        self.retired.retain(|item| !listed.contains_key(item.as_ref()));
        let aside: BTreeSet<&str> = self.retired.iter().map(AsRef::as_ref).collect();
        let known = self.names.keys();
        let mut gone: Vec<Arc<str>> = known
            .filter(|item| !listed.contains_key(item.as_ref()) && !aside.contains(item.as_ref()))
            .cloned()
            .collect();
        gone.sort_unstable();
        self.retired.extend(gone);
        let over = self.retired.len().saturating_sub(MAX_RETIRED);
        let names = self.retired.drain(..over).filter_map(|item| self.names.remove(&item));
        names.collect()
    }
}

/// The candidate names of an item, best first.
struct Wishes<'a> {
    item: &'a str,
    names: Vec<String>,
    /// True if the best candidate differs from the name that the item really has.
    changed: bool,
}

// === impl Wishes ===

impl<'a> Wishes<'a> {
    fn new(
        server: &ServerName,
        naming: Naming,
        (item, shown): (&'a str, &str),
        alphabet: Alphabet,
    ) -> Self {
        let prefixed = format!("{server}{SEPARATOR}{shown}");
        let wanted = match naming {
            Naming::Mcp => vec![format!("{FOREIGN_PREFIX}{prefixed}")],
            Naming::Bare => vec![shown.to_owned(), prefixed],
            Naming::Prefixed => vec![prefixed],
        };
        let names: Vec<String> = wanted.iter().map(|text| shorten(alphabet.spell(text))).collect();
        let changed = names.first() != wanted.first() || shown != item;
        Self { item, names, changed }
    }

    /// Returns the first candidate that is free; if none is, the last one with a hash appended.
    fn first_free(&self, server: &ServerName, taken: &HashMap<Arc<str>, Bound>) -> Arc<str> {
        let is_free = |name: &&String| !taken.contains_key(name.as_str());
        if let Some(name) = self.names.iter().find(is_free) {
            return name.as_str().into();
        }
        let last = self.names.last().map(String::as_str).unwrap_or_default();
        let end = last.len().min(MAX_NAME - HASH);
        let head = last.get(..end).unwrap_or_default();
        let hashed = (0_u64..).map(|attempt| {
            let hash = hash(server, self.item, attempt);
            format!("{head}{hash}")
        });
        // Each attempt has another hash, and there are fewer names than hashes.
        hashed
            .map(String::into_boxed_str)
            .find(|name| !taken.contains_key(name.as_ref()))
            .map_or_else(|| last.into(), Arc::from)
    }
}

/// True if a bare name cannot be read as the id of an item of some server.
///
/// A server chooses the names of its tools. It must not get a name that a tool of another server
/// has. `server__item` is the canonical form, so it is not given even if there is no such server;
/// dots are usual in names, so `server.item` is an id only if there is.
fn is_distinct(name: &str, is_server: impl Fn(&str) -> bool) -> bool {
    let could_be_server = |text: &str| text.parse::<ServerName>().is_ok();
    !name.is_empty()
        && !spells_id(name, SEPARATOR, could_be_server)
        && !spells_id(name, ".", is_server)
}

/// True if a name is a server, this separator, and an item.
fn spells_id(name: &str, separator: &str, is_server: impl Fn(&str) -> bool) -> bool {
    let split = name.split_once(separator);
    split.is_some_and(|(server, item)| !item.is_empty() && is_server(server))
}

/// Shortens a name to at most [`MAX_NAME`] characters by keeping its two ends.
fn shorten(name: String) -> String {
    // Only ASCII is left, so bytes are characters.
    let ends = (name.get(..HEAD), name.len().checked_sub(TAIL).and_then(|at| name.get(at..)));
    match ends {
        (Some(head), Some(tail)) if name.len() > MAX_NAME => format!("{head}{GAP}{tail}"),
        (_, _) => name,
    }
}

/// Returns twelve hexadecimal digits that distinguish an item from all others.
fn hash(server: &ServerName, item: &str, attempt: u64) -> String {
    let text = format!("{server}\0{item}\0{attempt}");
    let digest = Sha256::digest(text.as_bytes());
    let mut digits = String::with_capacity(HASH);
    for byte in digest.iter().take(HASH / 2) {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
#[path = "naming_tests.rs"]
mod tests;
