//! Lists of servers for operations that only read: saved ones where there are some, so that nothing
//! is started.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Ask, Gathered, Patience};
use capstan_hub::ports::{Item, Listing};
use capstan_hub::{Freshness, Hub};
use capstan_model::{Kind, ServerName};
use capstan_wire::{Json, object};
use futures::future::join;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Interact, Local, Missing, is_plain};
use crate::AppError;

/// How a reading operation gets the lists of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The source of the lists.
    pub source: Source,
    /// How long to wait for servers that are asked.
    pub wait: Patience,
}

/// The source of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Saved lists. Connected servers are asked, and those that were never seen are started.
    Saved,
    /// The servers, which are started.
    Servers,
}

/// The lists of servers, and where they come from.
#[derive(Debug, Default)]
pub struct ReadLists {
    /// The lists, the servers that failed, and those that have not answered.
    pub gathered: Gathered,
    /// The servers whose list is a saved one, with the time at which it was last confirmed.
    pub saved: HashMap<ServerName, Timestamp>,
    /// True if servers are missing from it.
    pub incomplete: bool,
}

/// Where a row comes from, as `--json` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// True if the row comes from a saved list.
    #[serde(skip_serializing_if = "is_false", default)]
    pub stale: bool,
    /// The time at which the server was last seen with it, if the row is stale.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seen: Option<Timestamp>,
    /// True if something is missing: in a list of servers, facts about this one; in other lists,
    /// the rows of servers that failed or have not answered.
    #[serde(skip_serializing_if = "is_false", default)]
    pub incomplete: bool,
}

/// Time limit for saved lists, which are compared with pins.
const SAVED_WAIT: Patience = Patience::UpTo(Duration::from_secs(10));

// === impl Local ===

impl Local {
    /// Gathers a list from all servers.
    pub async fn gather(
        &self,
        front: &dyn Interact,
        listing: Listing,
        reading: Reading,
    ) -> ReadLists {
        let hub = &*self.hub;
        let time = |name: &ServerName| Some((name.clone(), saved_at(hub, name, listing, reading)?));
        let saved: HashMap<ServerName, Timestamp> = hub.servers().filter_map(time).collect();
        let total = hub.servers().len() - saved.len();
        let waits = "waiting for the servers";
        if total > 0 {
            front.status(waits);
        }
        let mut answered = 0;
        let mut arrived = |_: &ServerName| {
            answered += 1;
            front.status(&format!("{waits} ({answered} of {total} have answered)"));
        };
        let asks = reading.source.ask();
        let is_saved = |name: &ServerName| saved.contains_key(name);
        let glance = |name: &ServerName| if is_saved(name) { Ask::Glance } else { Ask::Nothing };
        let ask = |name: &ServerName| if is_saved(name) { Ask::Nothing } else { asks };
        let (known, fresh) = join(
            hub.gather_from(listing, SAVED_WAIT, &glance),
            hub.gather_with(listing, reading.wait, &ask, &mut arrived),
        )
        .await;
        let gathered = merged(hub, &saved, known, fresh);
        let incomplete = !Missing::of(hub, &gathered).is_empty();
        ReadLists { gathered, saved, incomplete }
    }

    /// Gathers a list from one server, by its slug or display name.
    ///
    /// # Errors
    /// If there is no such server, or it cannot be used.
    pub async fn gather_one(
        &self,
        front: &dyn Interact,
        listing: Listing,
        name: &str,
        reading: Reading,
    ) -> Result<ReadLists, AppError> {
        let server = &self.setup.server(name)?.name;
        if let Some(read) = self.saved_list(listing, server, reading).await {
            return Ok(read);
        }
        front.status(&format!("starting `{server}`"));
        let freshness = match reading.source {
            Source::Saved => Freshness::Known,
            Source::Servers => Freshness::Current,
        };
        let items = self.hub.list(server, listing, freshness).await?;
        let mut read = ReadLists::default();
        read.gathered.lists.insert(server.clone(), items);
        Ok(read)
    }

    /// The saved list of a server, if it is sufficient. Starts nothing.
    pub(super) async fn saved_list(
        &self,
        listing: Listing,
        server: &ServerName,
        reading: Reading,
    ) -> Option<ReadLists> {
        let time = saved_at(&self.hub, server, listing, reading)?;
        let items = self.hub.list(server, listing, Freshness::Remembered).await.ok()?;
        let mut read = ReadLists::default();
        read.gathered.lists.insert(server.clone(), items);
        read.saved.insert(server.clone(), time);
        Some(read)
    }

    /// Caches the names of items for completions, except those of saved lists that are cached.
    pub fn remember(&self, kind: Kind, read: &ReadLists) {
        let Some(names) = &self.names else { return };
        let cached = names.remembered(kind);
        let is_cached = |server: &ServerName| {
            read.saved.contains_key(server)
                && cached.iter().any(|(name, _)| *name == server.as_str())
        };
        let new: Vec<_> = read.gathered.lists.iter().filter(|(name, _)| !is_cached(name)).collect();
        if new.is_empty() {
            return;
        }
        for (server, items) in &new {
            let plain = capstan_hub::catalog::names(items).filter(|name| is_plain(name));
            names.remember(kind, server, plain.map(ToOwned::to_owned).collect());
        }
        let of_items = |items: &Arc<[Item]>| {
            let plain = items.iter().filter(|item| is_plain(&item.name));
            plain.map(|item| (item.name.clone(), arguments_of(kind, &item.definition))).collect()
        };
        let arguments = new.iter().map(|(server, items)| ((*server).clone(), of_items(items)));
        names.remember_arguments(kind, arguments.collect());
    }
}

// === impl Source ===

impl Source {
    /// How servers without a saved list are asked.
    fn ask(self) -> Ask {
        match self {
            Self::Saved => Ask::List,
            Self::Servers => Ask::Current,
        }
    }
}

// === impl ReadLists ===

impl ReadLists {
    /// Where the rows of a server come from.
    pub fn provenance(&self, server: &ServerName) -> Provenance {
        let seen = self.saved.get(server).copied();
        Provenance { stale: seen.is_some(), seen, incomplete: self.incomplete }
    }
}

/// The time of a saved list that is sufficient.
pub(super) fn saved_at(
    hub: &Hub,
    server: &ServerName,
    listing: Listing,
    reading: Reading,
) -> Option<Timestamp> {
    match reading.source {
        Source::Saved => hub.saved_at(server, listing),
        Source::Servers => None,
    }
}

/// Joins saved lists and those of servers, in the order of the configuration.
fn merged(
    hub: &Hub,
    saved: &HashMap<ServerName, Timestamp>,
    mut known: Gathered,
    mut fresh: Gathered,
) -> Gathered {
    let mut all = Gathered::default();
    for name in hub.servers() {
        let part = if saved.contains_key(name) { &mut known } else { &mut fresh };
        if let Some(items) = part.lists.swap_remove(name) {
            all.lists.insert(name.clone(), items);
        } else if let Some(error) = part.failed.swap_remove(name) {
            all.failed.insert(name.clone(), error);
        } else {
            all.pending.push(name.clone());
        }
    }
    all
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The names of an item's arguments that a shell can complete.
fn arguments_of(kind: Kind, definition: &Json) -> Vec<String> {
    let names: Vec<String> = match kind {
        Kind::Tool => {
            let properties = object::at_path(definition, "inputSchema.properties");
            let members = properties.and_then(|all| object::members(&all).ok());
            members.unwrap_or_default().into_iter().map(|(name, _)| name).collect()
        }
        Kind::Prompt => {
            let list = object::get(definition, "arguments");
            let items = list.and_then(|list| object::items(&list).ok()).unwrap_or_default();
            items.iter().filter_map(|item| object::get_string(item, "name")).collect()
        }
        Kind::Resource => Vec::new(),
    };
    names.into_iter().filter(|name| is_plain(name)).collect()
}
