//! Names that models and clients accept: clean, short, unique, and bound for as long as they are known.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

use capstan_model::name::{FOREIGN_PREFIX, SEPARATOR};
use capstan_model::{ItemId, Naming, ServerName};
use sha2::{Digest, Sha256};

/// Longest name that all model APIs take.
pub const MAX_NAME: usize = 63;

/// What is kept of the beginning of a longer name.
pub(super) const HEAD: usize = 28;

/// What is kept of the end of a longer name.
const TAIL: usize = 32;

/// What stands between the two.
const GAP: &str = "___";

/// How many characters of a name become a hash when another item has that name.
const HASH: usize = 12;

/// How many items that a server no longer lists keep their names, so that nothing else is called
/// by them.
const MAX_RETIRED: usize = 1024;

/// The characters that names may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`.
    #[default]
    Usual,
    /// The same, and the first is a letter or `_`.
    LetterFirst,
    /// The same as [`Self::Usual`], without the dot.
    NoDots,
}

/// The names of the items of one kind.
///
/// It is told of lists, one server at a time, and keeps what it once gave: a name means the same
/// item until the item is gone, and for a good while after that. The same lists in the same order
/// give the same names, whatever the order within a list.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    alphabet: Alphabet,
    by_name: HashMap<Arc<str>, Bound>,
    by_server: HashMap<Arc<ServerName>, Theirs>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
struct Bound {
    server: Arc<ServerName>,
    item: Arc<str>,
}

/// The names of one server's items.
#[derive(Clone, Debug, Default)]
struct Theirs {
    names: HashMap<Arc<str>, Arc<str>>,
    /// Those that are no longer listed, longest gone first.
    retired: VecDeque<Arc<str>>,
}

// === impl Alphabet ===

impl Alphabet {
    /// All of them, the usual one first.
    pub const ALL: [Self; 3] = [Self::Usual, Self::LetterFirst, Self::NoDots];

    fn has(self, c: char) -> bool {
        let dot = match self {
            Self::Usual | Self::LetterFirst => c == '.',
            Self::NoDots => false,
        };
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || dot
    }

    /// `text` in these characters, of any length.
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
    /// An empty table.
    pub fn new(alphabet: Alphabet) -> Self {
        Self { alphabet, ..Self::default() }
    }

    /// Takes in what a server lists now. Of several servers the first one chooses first.
    pub fn update<'a>(
        &mut self,
        server: &ServerName,
        naming: Naming,
        items: impl IntoIterator<Item = &'a str>,
    ) {
        self.update_shown(server, naming, items.into_iter().map(|item| (item, item)));
    }

    /// The same, with what each item is to be called beside its own name.
    pub fn update_shown<'a>(
        &mut self,
        server: &ServerName,
        naming: Naming,
        shown: impl IntoIterator<Item = (&'a str, &'a str)>,
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
        // Names that need no change come first, so that an id means the item that it spells.
        let mut changed = Vec::new();
        for (item, shown) in shown {
            if theirs.names.contains_key(item) {
                continue;
            }
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

    /// Forgets a server that is gone, with all its names.
    pub fn forget(&mut self, server: &ServerName) {
        self.by_server.remove(server);
        self.by_name.retain(|_, bound| *bound.server != *server);
    }

    /// The name of an item.
    pub fn public(&self, id: &ItemId) -> Option<&Arc<str>> {
        self.by_server.get(&id.server)?.names.get(id.item.as_str())
    }

    /// The item of a name.
    pub fn resolve(&self, name: &str) -> Option<ItemId> {
        let Bound { server, item } = self.by_name.get(name)?;
        Some(ItemId { server: ServerName::clone(server), item: item.to_string() })
    }
}

// === impl Theirs ===

impl Theirs {
    /// Sets aside what is no longer listed; gives back the names that are free again.
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

/// What an item would like to be called, best first.
struct Wishes<'a> {
    item: &'a str,
    names: Vec<String>,
    /// Whether the best of them is not what it really is called.
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
            Naming::Bare if is_distinct(&alphabet.spell(shown)) => vec![shown.to_owned(), prefixed],
            Naming::Prefixed | Naming::Bare => vec![prefixed],
        };
        let names: Vec<String> = wanted.iter().map(|text| shorten(alphabet.spell(text))).collect();
        let changed = names.first() != wanted.first() || shown != item;
        Self { item, names, changed }
    }

    /// The first of the names that is free; the last one with a hash when none is.
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
        // Every attempt has another hash, and there are fewer names than hashes.
        hashed
            .map(String::into_boxed_str)
            .find(|name| !taken.contains_key(name.as_ref()))
            .map_or_else(|| last.into(), Arc::from)
    }
}

/// Whether a bare name cannot be read as the id of an item of some server.
///
/// A server chooses the names of its tools. None must get the name that another server's tool has,
/// or will have when that server is added.
fn is_distinct(name: &str) -> bool {
    let is_id = |separator: &str| {
        name.split_once(separator)
            .is_some_and(|(server, item)| !item.is_empty() && server.parse::<ServerName>().is_ok())
    };
    !name.is_empty() && !is_id(SEPARATOR) && !is_id(".")
}

/// A name of at most [`MAX_NAME`] characters: of a longer one, its two ends.
fn shorten(name: String) -> String {
    // Only ASCII is left, so bytes are characters.
    let ends = (name.get(..HEAD), name.len().checked_sub(TAIL).and_then(|at| name.get(at..)));
    match ends {
        (Some(head), Some(tail)) if name.len() > MAX_NAME => format!("{head}{GAP}{tail}"),
        (_, _) => name,
    }
}

/// Twelve hexadecimal digits that tell an item from all others.
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
