//! The public names of everything that a hub offers, shared by all sessions.

mod lookup;
mod naming;

pub(crate) use lookup::find_public;
pub use naming::{Alphabet, MAX_NAME, NameTable};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_model::name::{FOREIGN_PREFIX, SEPARATOR};
use capstan_model::{ItemId, Kind, Naming, ServerName};

use naming::HEAD;

use super::overrides::Overrides;
use crate::ports::Item;

/// The public names of tools and prompts, in each alphabet that was used so far.
#[derive(Debug, Default)]
pub struct Names {
    servers: HashMap<ServerName, Naming>,
    overrides: Arc<Overrides>,
    tables: Mutex<HashMap<(Kind, Alphabet), Table>>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    names: NameTable,
    /// The lists that are in the table. A list that has not changed is not processed again.
    lists: HashMap<ServerName, Arc<[Item]>>,
}

// === impl Names ===

impl Names {
    /// Creates names for these servers. A server that is not among them uses [`Naming::Prefixed`].
    pub fn new(servers: impl IntoIterator<Item = (ServerName, Naming)>) -> Self {
        Self { servers: servers.into_iter().collect(), ..Self::default() }
    }

    /// Replaces the overrides, which decide what tools are called.
    ///
    /// A server whose tools the operator now renames differently loses the names that it had.
    #[must_use]
    pub fn with(self, overrides: Arc<Overrides>) -> Self {
        let other = |server: &ServerName| !overrides.renames_as(&self.overrides, server);
        let mut tables = self.tables();
        for ((kind, _), table) in tables.iter_mut() {
            match kind {
                Kind::Tool => table.forget(other),
                Kind::Resource | Kind::Prompt => {}
            }
        }
        drop(tables);
        Self { overrides, ..self }
    }

    /// Creates names for these servers, keeping the names that are already in use.
    ///
    /// An item keeps its name for as long as its server exists, its naming has not changed, and no
    /// new server turns the name into an id.
    #[must_use]
    pub fn then(&self, servers: impl IntoIterator<Item = (ServerName, Naming)>) -> Self {
        let new = Self::new(servers);
        let mut tables = self.tables().clone();
        let gone = |server: &ServerName| new.servers.get(server) != Some(&self.naming(server));
        for table in tables.values_mut() {
            table.forget(gone);
            for server in table.names.release(|name| new.is_server(name)) {
                table.lists.remove(&server);
            }
        }
        // The names were given under these overrides; `with` compares them with the new ones.
        let overrides = Arc::clone(&self.overrides);
        Self { tables: Mutex::new(tables), overrides, ..new }
    }

    /// Adds a server's current list. If servers compete for a name, the one added first gets it.
    pub fn learn(&self, kind: Kind, alphabet: Alphabet, server: &ServerName, items: &Arc<[Item]>) {
        let overlay = match kind {
            Kind::Tool => self.overrides.learn(server, items),
            Kind::Resource | Kind::Prompt => None,
        };
        let mut tables = self.tables();
        let table = tables
            .entry((kind, alphabet))
            .or_insert_with(|| Table { names: NameTable::new(alphabet), ..Table::default() });
        if table.lists.get(server).is_some_and(|known| Arc::ptr_eq(known, items)) {
            return;
        }
        let shown = |own| (own, overlay.as_ref().map_or(own, |overlay| overlay.name(own)));
        let names = super::names(items).map(shown);
        let is_server = |name: &str| self.is_server(name);
        table.names.update_shown(server, self.naming(server), names, is_server);
        table.lists.insert(server.clone(), Arc::clone(items));
        drop(tables);
    }

    /// Returns the public name of an item, if its list was added.
    pub fn public(&self, kind: Kind, alphabet: Alphabet, id: &ItemId) -> Option<Arc<str>> {
        self.tables().get(&(kind, alphabet))?.names.public(id).cloned()
    }

    /// Returns the item that has this public name.
    pub fn resolve(&self, kind: Kind, alphabet: Alphabet, name: &str) -> Option<ItemId> {
        self.tables().get(&(kind, alphabet))?.names.resolve(name)
    }

    /// True if an item of this server could have this public name.
    pub(crate) fn may_name(&self, server: &ServerName, name: &str) -> bool {
        let begins = |prefix: &str| {
            // A shortened name keeps only its first characters.
            let prefix = prefix.get(..HEAD).unwrap_or(prefix);
            name.starts_with(prefix)
                || name.strip_prefix('_').is_some_and(|name| name.starts_with(prefix))
        };
        match self.naming(server) {
            Naming::Prefixed => begins(&format!("{server}{SEPARATOR}")),
            Naming::Mcp => begins(&format!("{FOREIGN_PREFIX}{server}{SEPARATOR}")),
            Naming::Bare => true,
        }
    }

    /// True if this is the name of a server.
    fn is_server(&self, name: &str) -> bool {
        name.parse().is_ok_and(|name: ServerName| self.servers.contains_key(&name))
    }

    fn naming(&self, server: &ServerName) -> Naming {
        self.servers.get(server).copied().unwrap_or_default()
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<(Kind, Alphabet), Table>> {
        // No invariant spans two statements, so the tables are consistent after a panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Table ===

impl Table {
    /// Removes the names of the servers for which `gone` returns true.
    fn forget(&mut self, gone: impl Fn(&ServerName) -> bool) {
        let gone: Vec<ServerName> =
            self.lists.keys().filter(|server| gone(server)).cloned().collect();
        for server in gone {
            self.names.forget(&server);
            self.lists.remove(&server);
        }
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::ToolOverride;
    use capstan_wire::Json;

    use super::*;

    fn server(name: &str) -> ServerName {
        name.parse().unwrap()
    }

    fn list(names: &[&str]) -> Arc<[Item]> {
        let item =
            |name: &&str| Item { name: (*name).to_owned(), definition: Json::empty_object() };
        names.iter().map(item).collect()
    }

    #[test]
    fn names_stay_over_a_change_and_those_of_a_server_that_is_gone_are_free() {
        let bare = |name| (server(name), Naming::Bare);
        let before = Names::new([bare("a"), bare("b"), bare("c")]);
        for name in ["a", "b", "c"] {
            before.learn(Kind::Tool, Alphabet::Usual, &server(name), &list(&["read"]));
        }
        let after = before.then([bare("b"), (server("c"), Naming::Prefixed), bare("d")]);
        for name in ["b", "c", "d"] {
            after.learn(Kind::Tool, Alphabet::Usual, &server(name), &list(&["read"]));
        }
        let called = |name: &str| {
            let id = ItemId { server: server(name), item: "read".to_owned() };
            after.public(Kind::Tool, Alphabet::Usual, &id).map(|name| name.to_string())
        };
        assert_eq!(called("a"), None);
        assert_eq!(called("b").as_deref(), Some("b__read"), "as before");
        assert_eq!(called("c").as_deref(), Some("c__read"));
        assert_eq!(called("d").as_deref(), Some("read"), "nobody else is called that");
    }

    /// C58: dots are allowed in names, so a bare name keeps its dot unless it is an id.
    #[test]
    fn c58_a_bare_name_with_a_dot_stays_until_a_server_makes_it_an_id() {
        let bare = |name| (server(name), Naming::Bare);
        let items = list(&["repo.list", "repo.sync.all", "files.delete", "s.own"]);
        let public = |names: &Names| {
            names.learn(Kind::Tool, Alphabet::Usual, &server("s"), &items);
            ["repo.list", "repo.sync.all", "files.delete", "s.own"].map(|item| {
                let id = ItemId { server: server("s"), item: item.to_owned() };
                names.public(Kind::Tool, Alphabet::Usual, &id).unwrap().to_string()
            })
        };
        let before = Names::new([bare("s"), bare("files")]);
        let expected = ["repo.list", "repo.sync.all", "s__files.delete", "s__s.own"];
        assert_eq!(public(&before), expected);
        let after = before.then([bare("s"), bare("files"), bare("repo")]);
        let expected = ["s__repo.list", "s__repo.sync.all", "s__files.delete", "s__s.own"];
        assert_eq!(after.resolve(Kind::Tool, Alphabet::Usual, "repo.list"), None);
        assert_eq!(public(&after), expected);
    }

    #[test]
    fn a_tool_that_is_called_otherwise_over_a_change_gives_up_its_name() {
        let renamed = |names: &[(&str, &str)]| {
            let one = |(tool, name): &(&str, &str)| {
                let name = Some((*name).to_owned()).filter(|name| !name.is_empty());
                ((*tool).to_owned(), ToolOverride { name, ..ToolOverride::default() })
            };
            Arc::new(Overrides::new([(server("s"), names.iter().map(one).collect())]))
        };
        let items = list(&["get", "put"]);
        let all = || [(server("s"), Naming::Prefixed)];
        let public = |names: &Names| {
            names.learn(Kind::Tool, Alphabet::Usual, &server("s"), &items);
            ["get", "put"].map(|item| {
                let id = ItemId { server: server("s"), item: item.to_owned() };
                let name = names.public(Kind::Tool, Alphabet::Usual, &id).unwrap();
                assert_eq!(names.resolve(Kind::Tool, Alphabet::Usual, &name), Some(id));
                name.to_string()
            })
        };
        let mut names = Names::new(all()).with(renamed(&[("get", "fetch")]));
        assert_eq!(public(&names), ["s__fetch", "s__put"]);
        for (new, expected, gone) in [
            (&[("get", "fetch"), ("put", "")][..], ["s__fetch", "s__put"], "s__get"),
            (&[("put", "fetch")], ["s__get", "s__fetch"], "s__put"),
            (&[("get", "load")], ["s__load", "s__put"], "s__fetch"),
            (&[], ["s__get", "s__put"], "s__load"),
        ] {
            names = names.then(all()).with(renamed(new));
            assert_eq!(public(&names), expected, "{new:?}");
            assert_eq!(names.resolve(Kind::Tool, Alphabet::Usual, gone), None, "{new:?}");
        }
    }
}
