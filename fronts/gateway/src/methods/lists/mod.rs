//! The lists of all servers as one, cached until something changes.
//!
//! [`list_snapshot`] is one cached list, [`page`] one of its pages, [`visible_lists`] filters by
//! access rules, [`first_waits`] limits the wait for servers that were never seen, `cursor` makes cursors, and [`changes`]
//! debounces change notifications.

mod cursor;
pub(crate) mod page;
pub(crate) mod list_snapshot;
pub(crate) mod visible_lists;
pub(crate) mod first_waits;
pub(crate) mod changes;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::catalog::{Alphabet, Ask, Gathered, Patience, TOOL, Uris};
use capstan_hub::ports::{BoxFuture, Item, Listing, ResourceLists};
use capstan_hub::{Freshness, Hub};
use capstan_model::{Caller, ItemId, Kind, ServerName};
use capstan_wire::{Json, compose, object};
use jiff::Timestamp;

use crate::client::{Client, View};
use crate::exchange::answer::{Payload, Text};
use crate::gateway::Gateway;
use crate::methods::lists::changes::News;
use crate::methods::lists::first_waits::FirstWaits;
use crate::methods::lists::list_snapshot::{ListSnapshot, Pages, SnapshotParts};
use crate::methods::lists::visible_lists::{Change, VisibleLists};
use crate::protocol::era::Readers;
use crate::protocol::fault::Fault;

/// Wait after the latest answer of a server, and the maximum wait.
const PATIENCE: Patience = Patience::Quiet {
    least: Duration::from_millis(25),
    after: Duration::from_millis(50),
    most: Duration::from_secs(2),
};

/// Longest wait for the members of a list besides its items, which are sent without them then.
const MEMBERS: Duration = Duration::from_secs(5);

/// Longest wait for a list that a connected server has changed.
const CHANGED_LIST: Duration = Duration::from_secs(1);

/// The lists of resources that a client of all servers sees.
pub(crate) struct ClientResources<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) client: &'a Client,
}

/// The reader of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// No client yet: servers that start when a client lists stay stopped.
    WarmUp,
    /// The comparison of a list that clients have read before.
    Comparison,
    /// A client, which waits for servers that were never seen.
    Client,
}

/// Cached lists, by view and kind.
#[derive(Default)]
pub(crate) struct Lists {
    built: Mutex<HashMap<(View, Listing), Arc<ListSnapshot>>>,
    /// Lists whose reported change clients were told of, and that are yet to be compared.
    announced: Mutex<HashSet<(View, Listing)>>,
    /// Lists filtered by access rules.
    pub(crate) classes: VisibleLists,
    /// Servers whose list a background task waits for.
    awaited: Mutex<HashSet<(ServerName, Listing)>>,
    first_waits: FirstWaits,
}

impl Gateway {
    /// Returns one page of a list.
    pub(crate) async fn list(
        self: Arc<Self>,
        client: Arc<Client>,
        listing: Listing,
        params: Option<Json>,
    ) -> Result<Payload, Fault> {
        let cursor = params.and_then(|params| object::get(&params, "cursor"));
        let at = match cursor.filter(|cursor| cursor.as_bytes() != b"null") {
            None => 0,
            Some(cursor) => {
                let cursor = cursor.read::<String>().ok();
                let at = cursor.and_then(|cursor| self.position(&client, 'p', &cursor));
                at.ok_or_else(|| Fault::invalid("`cursor` is unknown"))?
            }
        };
        let built = self.offered(&client, listing).await?;
        let pages = built.pages(client.era);
        let page = pages.get(at);
        let page = page.ok_or_else(|| Fault::invalid("`cursor` is behind the end of the list"))?;
        let mut after = String::new();
        if at + 1 < pages.len() {
            after = format!(r#","nextCursor":"{}""#, self.cursor(&client, 'p', at + 1));
        }
        let hub = self.hub();
        let own = match &client.view {
            View::One(server) => {
                let members = hub.list_members(server, listing, client.lane());
                tokio::time::timeout(MEMBERS, members).await.ok().flatten()
            }
            View::All => None,
        };
        let page = match (&client.view, client.era.tool_member_of_lane()) {
            (View::One(server), Some(key)) if listing == Listing::Tools => {
                let own = hub.own_members(server, client.lane(), key);
                page.with_members(key, &own).map_or_else(|| Arc::clone(page), Arc::new)
            }
            _ => Arc::clone(page),
        };
        let is_bound = hub.policy().binds(&client.caller);
        let readers = if is_bound { Readers::Caller } else { Readers::All };
        after = client.era.list_members(after, own.as_ref(), readers);
        after.push('}');
        let before = Bytes::from(format!(r#"{{"{}":"#, listing.member()));
        Ok(Payload { before, body: Text::Page(page), after: after.into() })
    }

    /// Reads a list, to notify clients if it has changed. Waits for no server that was never seen.
    pub(crate) async fn compare(
        self: &Arc<Self>,
        view: &View,
        listing: Listing,
    ) -> Result<(), Fault> {
        self.built_for_reader(&self.hub(), view, listing, Reader::Comparison).await.map(drop)
    }

    /// The current list of this hub, for callers without access rules.
    pub(crate) async fn built_in(
        self: &Arc<Self>,
        hub: &Hub,
        view: &View,
        listing: Listing,
    ) -> Result<Arc<ListSnapshot>, Fault> {
        self.built_for_reader(hub, view, listing, Reader::Client).await
    }

    async fn built_for_reader(
        self: &Arc<Self>,
        hub: &Hub,
        view: &View,
        listing: Listing,
        reader: Reader,
    ) -> Result<Arc<ListSnapshot>, Fault> {
        let gathered = match view {
            View::All => self.gather_all(hub, listing, reader).await,
            View::One(server) => gather_one(hub, server, listing).await?,
        };
        let key = (view.clone(), listing);
        let known = self.lists.built().get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.is_of(hub, &gathered)) {
            return Ok(Arc::clone(known));
        }
        let built = Arc::new(build(hub, view, listing, &gathered, &Caller::anonymous()));
        let before = self.lists.built().insert(key.clone(), Arc::clone(&built));
        if let Some(before) = before.filter(|before| !before.looks_like(&built)) {
            let is_announced =
                self.lists.take_announced(&key) || self.changes.is_reported(view, listing);
            // The first reader of a change notifies all clients that are not told otherwise.
            let change = Change { before, after: Arc::clone(&built), is_announced };
            self.tell_list(view, listing, &change);
        }
        Ok(built)
    }

    /// Starts the servers without a cached manifest and reads their tools.
    ///
    /// The first request then need not wait. Servers that are started only by a client's list
    /// request stay stopped.
    pub async fn warm_up(self: &Arc<Self>) {
        self.gather_all(&self.hub(), Listing::Tools, Reader::WarmUp).await;
    }

    /// Collects the lists of all servers that answer in time.
    pub(crate) async fn gather(&self, hub: &Hub, listing: Listing, reader: Reader) -> Gathered {
        let awaited = self.lists.awaited().clone();
        let is_awaited = |server: &ServerName| awaited.contains(&(server.clone(), listing));
        let how = |server: &ServerName| match self.first_wait(hub, server, listing, reader) {
            Some(left) => Ask::Await(left),
            None if is_awaited(server) => Ask::Nothing,
            // A client that was told of a change must not get the list from before it.
            None if reader != Reader::WarmUp && hub.is_outdated(server, listing) => {
                Ask::Await(CHANGED_LIST)
            }
            None => reader.ask(),
        };
        let gathered = hub.gather_from(listing, PATIENCE, &how).await;
        for server in gathered.failed.keys() {
            self.lists.first_waits.end(server);
        }
        gathered
    }

    /// How long a client's list still waits for a server that was never seen.
    fn first_wait(
        &self,
        hub: &Hub,
        server: &ServerName,
        listing: Listing,
        reader: Reader,
    ) -> Option<Duration> {
        if reader != Reader::Client || hub.has_seen(server, listing) {
            return None;
        }
        let (now, wait) = (hub.clock().monotonic(), hub.limits().first_list_wait);
        let left = self.lists.first_waits.left(server, now, wait);
        (!left.is_zero()).then_some(left)
    }

    async fn gather_all(self: &Arc<Self>, hub: &Hub, listing: Listing, reader: Reader) -> Gathered {
        let gathered = self.gather(hub, listing, reader).await;
        for server in &gathered.pending {
            self.wait_for(hub, server, listing);
        }
        gathered
    }

    /// Waits for a slow server in one background task; notifies clients when it has answered.
    fn wait_for(self: &Arc<Self>, hub: &Hub, server: &ServerName, listing: Listing) {
        let key = (server.clone(), listing);
        if !self.lists.awaited().insert(key.clone()) {
            return;
        }
        let gateway = Arc::clone(self);
        let list = hub.list_in_background(server, listing);
        tokio::spawn(async move {
            let there = list.await.is_ok();
            gateway.lists.awaited().remove(&key);
            if there {
                gateway.changes.note(&key.0, listing, News::MayDiffer);
            }
        });
    }

    /// Finds the prompt with this name.
    pub(crate) async fn find_prompt(
        self: &Arc<Self>,
        client: &Client,
        name: &str,
    ) -> Option<(ServerName, String)> {
        let target = client.view.target(Kind::Prompt, name);
        let (id, _) = self.hub().find(&client.caller, target).await.ok()?;
        Some((id.server, id.item))
    }
}

// === impl Reader ===

impl Reader {
    fn ask(self) -> Ask {
        match self {
            Self::WarmUp => Ask::Glance,
            Self::Comparison | Self::Client => Ask::List,
        }
    }
}

// === impl ClientResources ===

impl ResourceLists for ClientResources<'_> {
    fn load(&self, listing: Listing) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Building the list enters it in the map of URIs.
            drop(self.gateway.built_for(self.client, listing).await);
        })
    }
}

// === impl Lists ===

impl Lists {
    /// The cached lists that have expired.
    pub(crate) fn expired(&self, now: Timestamp) -> Vec<(View, Listing)> {
        let built = self.built();
        built.iter().filter(|(_, built)| built.is_over(now)).map(|(key, _)| key.clone()).collect()
    }

    /// The last list that was served to callers without access rules.
    pub(crate) fn last(&self, view: &View, listing: Listing) -> Option<Arc<ListSnapshot>> {
        self.built().get(&(view.clone(), listing)).cloned()
    }

    /// The lists that clients have requested.
    pub(crate) fn known(&self) -> Vec<(View, Listing)> {
        self.built().keys().cloned().collect()
    }

    fn built(&self) -> MutexGuard<'_, HashMap<(View, Listing), Arc<ListSnapshot>>> {
        self.built.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that clients are told of a reported change.
    pub(crate) fn announce(&self, view: View, listing: Listing) {
        self.announced().insert((view, listing));
    }

    /// True if clients were told of the change; the next one is another.
    pub(crate) fn take_announced(&self, list: &(View, Listing)) -> bool {
        self.announced().remove(list)
    }

    fn announced(&self) -> MutexGuard<'_, HashSet<(View, Listing)>> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the waits for servers that were replaced.
    pub(crate) fn forget_awaited(&self, servers: &HashSet<ServerName>) {
        self.first_waits.forget(servers);
        self.awaited().retain(|(server, _)| !servers.contains(server));
    }

    fn awaited(&self) -> MutexGuard<'_, HashSet<(ServerName, Listing)>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn gather_one(hub: &Hub, server: &ServerName, listing: Listing) -> Result<Gathered, Fault> {
    let mut gathered = Gathered::default();
    if !hub.has(server) {
        return Ok(gathered);
    }
    let items = hub.list(server, listing, Freshness::Known).await;
    let items = items.map_err(|error| Fault::of_tool(&error, server.as_str()))?;
    gathered.lists.insert(server.clone(), items);
    Ok(gathered)
}

/// Builds the list that `caller` may see from the gathered items.
pub(crate) fn build(
    hub: &Hub,
    view: &View,
    listing: Listing,
    gathered: &Gathered,
    caller: &Caller,
) -> ListSnapshot {
    build_of(
        hub,
        view,
        gathered,
        caller,
        Selected { listing, first: Vec::new(), has: &|_, _| true },
    )
}

/// The items that a list has.
pub(crate) struct Selected<'a> {
    pub(crate) listing: Listing,
    /// Items that come before those of servers.
    pub(crate) first: Vec<Json>,
    /// True for the items of servers that it has; the second argument is the shown name.
    pub(crate) has: &'a dyn Fn(&ItemId, &str) -> bool,
}

/// Builds the part of a list that `selected` has.
pub(crate) fn build_of(
    hub: &Hub,
    view: &View,
    gathered: &Gathered,
    caller: &Caller,
    selected: Selected<'_>,
) -> ListSnapshot {
    let Selected { listing, first, has } = selected;
    // Read first, so that a concurrent change invalidates the snapshot.
    let pins = hub.pins().version();
    let sources: Vec<(ServerName, Arc<[Item]>)> =
        gathered.lists.iter().map(|(name, items)| (name.clone(), Arc::clone(items))).collect();
    let mut pages = Pages::of(listing);
    let kind = match listing {
        Listing::Tools => Kind::Tool,
        Listing::Prompts => Kind::Prompt,
        Listing::Resources | Listing::Templates => Kind::Resource,
    };
    let (names, uris) = (&hub.catalog().names, &hub.catalog().uris);
    let maps_uris = *view == View::All;
    learn(hub, listing, gathered, maps_uris.then_some(uris));
    for item in &first {
        pages.push(item, None);
    }
    for (server, item) in hub.visible_items(gathered, kind, caller) {
        let id = ItemId { server: server.clone(), item: item.name.clone() };
        let changed = (kind == Kind::Tool).then(|| hub.catalog().overrides.shown(&id)).flatten();
        let definition = changed.as_ref().map_or(&item.definition, |shown| &shown.definition);
        let own = changed.as_ref().map_or(&item.name, |shown| &shown.name);
        if !has(&id, own) {
            continue;
        }
        let masked = hub.catalog().screens.shown_definition(server, definition);
        let definition = masked.as_ref().unwrap_or(definition);
        let mapped = (maps_uris && kind == Kind::Tool)
            .then(|| uris.shown_in(server, definition, TOOL))
            .flatten();
        let definition = mapped.as_ref().unwrap_or(definition);
        let is_named = *view == View::All && kind != Kind::Resource;
        let given = is_named.then(|| names.public(kind, Alphabet::Usual, &id)).flatten();
        if let Some(given) = given {
            pages.push(definition, Some(&given).filter(|given| given.as_ref() != own.as_str()));
            continue;
        }
        let shown = match (view, listing) {
            (View::All, Listing::Tools | Listing::Prompts) => id.to_string(),
            (View::All, Listing::Resources) if maps_uris => {
                uris.shown(server, own).unwrap_or_else(|| own.clone())
            }
            (View::All, Listing::Templates) if maps_uris => {
                uris.shown_template(server, own).unwrap_or_else(|| own.clone())
            }
            (View::All | View::One(_), _) => own.clone(),
        };
        if shown == *own {
            pages.push(definition, None);
        } else {
            let name = compose::string(&shown);
            let renamed = object::with_member(definition, listing.name_key(), &name);
            pages.push(&renamed.unwrap_or_else(|_| definition.clone()), None);
        }
    }
    let until = hub.rules_change_at();
    ListSnapshot::new(hub, SnapshotParts { sources, pages, until, pins })
}

/// Enters the items into the public names, and their URIs into the map of them.
fn learn(hub: &Hub, listing: Listing, gathered: &Gathered, uris: Option<&Arc<Uris>>) {
    let kind = match listing {
        Listing::Tools => Some(Kind::Tool),
        Listing::Prompts => Some(Kind::Prompt),
        Listing::Resources | Listing::Templates => None,
    };
    for (server, items) in &gathered.lists {
        if let Some(kind) = kind {
            hub.catalog().names.learn(kind, Alphabet::Usual, server, items);
        }
        if let Some(uris) = uris {
            uris.learn(listing, server, items);
        }
    }
}
