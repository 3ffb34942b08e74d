//! Replaces the hub of a running gateway.
//!
//! Subscriptions and tasks continue. Clients are notified of lists that have changed.

use std::collections::HashSet;
use std::sync::Arc;

use capstan_hub::Hub;
use capstan_hub::ports::Listing;
use capstan_model::{Caller, ItemId, ServerName};

use crate::client::{Client, View};
use crate::gateway::Gateway;
use crate::methods::lists::list_snapshot::ListSnapshot;

/// A list that a caller bound by access rules has seen.
struct VisibleList {
    view: View,
    caller: Arc<Caller>,
    listing: Listing,
    /// The unfiltered list, and the part that the caller saw.
    all: Arc<ListSnapshot>,
    own: Arc<ListSnapshot>,
}

impl Gateway {
    /// Replaces the hub and returns the previous one. Running calls end on the hub they started on.
    pub fn renew(self: &Arc<Self>, hub: &Arc<Hub>) -> Arc<Hub> {
        let seen = self.seen(hub);
        let before = self.put(Arc::clone(hub));
        self.exposed.forget();
        let changed = changed(&before, hub);
        self.levels.forget(&changed);
        self.lists.forget_awaited(&changed);
        self.tasks.orphan(&changed);
        self.watch_again(&before, hub, &changed);
        for (view, listing) in self.lists.known() {
            self.look(view, listing);
        }
        let gateway = Arc::clone(self);
        tokio::spawn(async move {
            for seen in seen {
                gateway.tell_if_other(seen).await;
            }
        });
        before
    }

    /// Collects the lists that callers with access rules (before or after) have seen.
    fn seen(&self, hub: &Hub) -> Vec<VisibleList> {
        let before = self.hub();
        let mut all: Vec<(View, Arc<Caller>)> = self.subscribers.all();
        all.retain(|(_, caller)| before.policy().binds(caller) || hub.policy().binds(caller));
        let mut seen: Vec<VisibleList> = Vec::new();
        for (view, caller) in all {
            let known = |one: &VisibleList| {
                one.view == view
                    && one.caller.subject == caller.subject
                    && one.caller.roles == caller.roles
            };
            if seen.iter().any(known) {
                continue;
            }
            for listing in Listing::ALL {
                let Some(all) = self.lists.last(&view, listing) else { continue };
                let own = self.lists.classes.last(&view, &caller, listing);
                let own = own.unwrap_or_else(|| Arc::clone(&all));
                let (view, caller) = (view.clone(), Arc::clone(&caller));
                seen.push(VisibleList { view, caller, listing, all, own });
            }
        }
        seen
    }

    /// Notifies a caller whose filtered list has changed while the unfiltered list has not.
    ///
    /// If the unfiltered list changes, all clients are notified anyway.
    async fn tell_if_other(self: &Arc<Self>, seen: VisibleList) {
        let VisibleList { view, caller, listing, all, own } = seen;
        let Ok(now) = self.seen_by(&view, &caller, listing).await else { return };
        let Some(all_now) = self.lists.last(&view, listing) else { return };
        if all.looks_like(&all_now) && !own.looks_like(&now) {
            let meant = |client: &Client| {
                client.view == view
                    && client.caller.subject == caller.subject
                    && client.caller.roles == caller.roles
                    && self.searches(client, listing).is_none()
            };
            self.tell_those(&meant, listing);
        }
    }

    /// Renews the subscriptions of clients at servers that were replaced.
    fn watch_again(
        self: &Arc<Self>,
        before: &Arc<Hub>,
        hub: &Arc<Hub>,
        changed: &HashSet<ServerName>,
    ) {
        for ((server, uri), clients) in self.subscribers.wanted() {
            // A watch ends when the rules now forbid the resource to all subscribers.
            let shown = |one: &Arc<Client>| hub.shows_resource(&one.caller, &server, &uri);
            let Some(client) = clients.into_iter().find(shown) else { continue };
            if !changed.contains(&server) || !hub.has(&server) {
                continue;
            }
            let (before, hub) = (Arc::clone(before), Arc::clone(hub));
            let id = ItemId { server, item: uri };
            tokio::spawn(async move {
                let (session, by) = (&client.session, (&client.caller, client.lane()));
                if let Err(error) = hub.resubscribe(&before, session, by, id).await {
                    tracing::debug!(%error, "a subscription could not be renewed");
                }
            });
        }
    }
}

/// The servers that were removed or have another connection now.
fn changed(before: &Hub, now: &Hub) -> HashSet<ServerName> {
    before.servers().filter(|name| !before.shares(now, name)).cloned().collect()
}
