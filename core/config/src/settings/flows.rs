//! The keys of `[flows]`, and those of a server's table `tags`.

use capstan_policy::{FlowAction, FlowRules};

use super::define::keys;
use super::form::{Form, OneOf, Table};
use super::server::patterns::Globs;
use crate::fields::{Fields, Words};

keys! {
    /// Rules about what may follow what in one conversation. They depend on the tags of items, which are inferred from names, annotations and the place of the server, and which `servers.NAME.tags` sets.
    pub merged Flows
    keys {
        /// A call that can send data out, in a conversation that has read content of strangers, such as a web page or a mail: refuse it (`deny`), ask about it (`ask`), or treat it like any other (`off`). Of several files, the strictest applies.
        untrusted_then_send: FlowAction = FlowAction::Off, smallest;
        /// A call that can send data out, in a conversation that has read private data: `deny`, `ask` or `off`. Here a call that reads from an address that the caller chooses counts as sending, too.
        private_then_send: FlowAction = FlowAction::Off, smallest;
    }
}

keys! {
    /// The tags of a server's items, by name or pattern. Each list replaces what is inferred about its tag; those of a project file only add to it.
    pub table TagLists
    keys {
        /// Items whose answers contain content of strangers.
        untrusted: Vec<String> as Globs;
        /// Items whose answers contain private data.
        private: Vec<String> as Globs;
        /// Items that can send data out.
        sends: Vec<String> as Globs;
    }
}

/// The form of a server's table `tags`.
pub(crate) struct TagTable;

// === impl Flows ===

impl Flows {
    /// The rules.
    pub fn rules(&self) -> FlowRules {
        let Self { untrusted_then_send, private_then_send } = *self;
        FlowRules { untrusted_then_send, private_then_send }
    }
}

// === impl FlowAction ===

impl OneOf for FlowAction {
    const WORDS: Words<Self> = &[("deny", Self::Deny), ("ask", Self::Ask), ("off", Self::Off)];
}

// === impl TagLists ===

impl TagLists {
    /// Adds the tags of another entry for the same server.
    pub(crate) fn keep_restrictions_of(&mut self, other: &Self) {
        let add = |own: &mut Option<Vec<String>>, other: &Option<Vec<String>>| {
            if let Some(other) = other {
                own.get_or_insert_default().extend(other.iter().cloned());
            }
        };
        add(&mut self.untrusted, &other.untrusted);
        add(&mut self.private, &other.private);
        add(&mut self.sends, &other.sends);
    }
}

// === impl TagTable ===

impl Form for TagTable {
    type Value = TagLists;
    type Schema = <TagLists as Table>::Keys;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<TagLists> {
        let mut nested = fields.nested(key)?;
        let lists = TagLists::read(&mut nested);
        nested.finish();
        Some(lists)
    }

    fn write(_: &TagLists) -> serde_json::Value {
        serde_json::Value::Null
    }
}
