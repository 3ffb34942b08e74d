//! Capstan's own tools: which clients have them, and the lists of those clients.
//!
//! A client of all servers may get tools that find, describe and call the others instead of these.
//! The choice holds for a connection, and for requests without a connection until the configuration
//! changes, so that a client's list of tools is stable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use capstan_hub::own_tools::definitions;
use capstan_hub::ports::{BoxFuture, Listing, ToolLists};
use capstan_hub::search::ToolPool;
use capstan_model::{CallError, CallTools, Expose};

use crate::client::{Client, View};
use crate::gateway::Gateway;
use crate::methods::lists::list_snapshot::ListSnapshot;
use crate::methods::lists::visible_lists::Change;
use crate::methods::lists::{Selected, build_of};
use crate::protocol::fault::Fault;

/// Maximum number of callers whose choice is remembered.
const MAX_REMEMBERED: usize = 1024;

/// The choices by the size of the catalog, by caller.
#[derive(Default)]
pub(crate) struct Exposed(Mutex<HashMap<String, Option<CallTools>>>);

/// The choice depends on the cost of the client's tools.
struct DependsOnCost;

/// The tools that a client can find.
pub(crate) struct ClientTools<'a> {
    pub(crate) gateway: &'a Arc<Gateway>,
    pub(crate) client: &'a Client,
}

impl Gateway {
    /// One list of a client: that of all servers, or of those own tools that it has.
    pub(crate) async fn offered(
        self: &Arc<Self>,
        client: &Client,
        listing: Listing,
    ) -> Result<Arc<ListSnapshot>, Fault> {
        let all = self.built_for(client, listing).await?;
        if listing != Listing::Tools || client.view != View::All {
            return Ok(all);
        }
        match self.own_tools_among(client, &all) {
            Some(calls) => Ok(self.search_list(client, &all, calls)),
            None => Ok(all),
        }
    }

    /// The own tools that a client has instead of all tools.
    ///
    /// # Errors
    /// When the choice depends on lists that cannot be read.
    pub(crate) async fn own_tools_of(
        self: &Arc<Self>,
        client: &Client,
    ) -> Result<Option<CallTools>, CallError> {
        self.settle_own_tools(client);
        if let Some(settled) = client.own_tools.get() {
            return Ok(*settled);
        }
        let all = self.tools_of(client).await?;
        Ok(self.own_tools_among(client, &all))
    }

    /// Settles the choice for a client if it does not depend on the size of the catalog.
    pub(crate) fn settle_own_tools(&self, client: &Client) {
        if let Ok(settled) = self.known_own_tools(client) {
            client.own_tools.get_or_init(|| settled);
        }
    }

    /// The own tools of a client if it is asked for its tools and searches them.
    pub(crate) fn searches(&self, client: &Client, listing: Listing) -> Option<CallTools> {
        if listing != Listing::Tools {
            return None;
        }
        match client.own_tools.get() {
            Some(settled) => *settled,
            None => self.known_own_tools(client).ok().flatten(),
        }
    }

    /// True if the change makes a difference to the list of a client that searches.
    pub(crate) fn sees_other_pins(
        &self,
        client: &Client,
        Change { before, after, .. }: &Change,
        calls: CallTools,
    ) -> bool {
        let before = self.search_list(client, before, calls);
        !before.looks_like(&self.search_list(client, after, calls))
    }

    /// The choice for a client, if it is known without its tools.
    fn known_own_tools(&self, client: &Client) -> Result<Option<CallTools>, DependsOnCost> {
        let hub = self.hub();
        let Some(offer) = hub.offer().filter(|_| client.view == View::All) else {
            return Ok(None);
        };
        match offer.expose(&client.caller) {
            Expose::All => Ok(None),
            Expose::Search(calls) => Ok(Some(calls)),
            Expose::Auto(_) => {
                let known = self.exposed.lock().get(&key(client)).copied();
                known.ok_or(DependsOnCost)
            }
        }
    }

    /// The choice for a client that sees these tools.
    fn own_tools_among(&self, client: &Client, all: &ListSnapshot) -> Option<CallTools> {
        self.settle_own_tools(client);
        if let Some(settled) = client.own_tools.get() {
            return *settled;
        }
        let hub = self.hub();
        let offer = hub.offer()?;
        let Expose::Auto(calls) = offer.expose(&client.caller) else { return None };
        let pool = all.pool(&hub, &client.caller)?;
        let tokens: usize = pool.tools().iter().map(|tool| tool.tokens).sum();
        let chosen = (tokens > offer.budget).then_some(calls);
        *client.own_tools.get_or_init(|| self.exposed.remember(key(client), chosen))
    }

    /// The list of a client that searches: its own tools and the pinned ones of `all`.
    fn search_list(
        &self,
        client: &Client,
        all: &Arc<ListSnapshot>,
        calls: CallTools,
    ) -> Arc<ListSnapshot> {
        let hub = self.hub();
        all.search(calls, || {
            let has =
                |id: &_, shown: &_| hub.offer().is_some_and(|offer| offer.always_lists(id, shown));
            let first = definitions(calls);
            let selected = Selected { listing: Listing::Tools, first, has: &has };
            build_of(&hub, &View::All, &all.gathered(), &client.caller, selected)
        })
    }

    /// All tools of a client.
    async fn tools_of(self: &Arc<Self>, client: &Client) -> Result<Arc<ListSnapshot>, CallError> {
        let all = self.seen_by(&View::All, &client.caller, Listing::Tools).await;
        // The list of all servers leaves out those that fail, so it does not fail itself.
        all.map_err(|_| CallError::Stopped)
    }
}

// === impl Exposed ===

impl Exposed {
    /// Forgets all choices, when the configuration has changed.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    /// Remembers a choice, and returns the one that was made first.
    fn remember(&self, key: String, chosen: Option<CallTools>) -> Option<CallTools> {
        let mut known = self.lock();
        if known.len() >= MAX_REMEMBERED && !known.contains_key(&key) {
            return chosen;
        }
        *known.entry(key).or_insert(chosen)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<CallTools>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ClientTools ===

impl ToolLists for ClientTools<'_> {
    fn load(&self) -> BoxFuture<'_, Result<Arc<ToolPool>, CallError>> {
        Box::pin(async move {
            let Self { gateway, client } = self;
            let all = gateway.tools_of(client).await?;
            let hub = gateway.hub();
            all.pool(&hub, &client.caller).ok_or(CallError::Stopped)
        })
    }
}

/// Callers with one key have the same choice.
fn key(client: &Client) -> String {
    let name = client.caller.client.as_deref().unwrap_or_default();
    format!("{}\n\n{name}", client.caller.identity())
}
