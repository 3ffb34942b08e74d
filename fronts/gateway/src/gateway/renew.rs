//! Another hub behind the same clients: what they have asked for goes on, and they are told of what
//! looks otherwise now.

use std::collections::HashSet;
use std::sync::Arc;

use capstan_hub::Hub;
use capstan_hub::ports::Listing;
use capstan_model::{Caller, ItemId, ServerName};

use crate::client::View;
use crate::gateway::Gateway;
use crate::methods::lists::list_snapshot::ListSnapshot;

/// A list that a caller bound by access rules has seen.
struct Seen {
    view: View,
    caller: Arc<Caller>,
    listing: Listing,
    /// The list of everything, and what they saw of it.
    all: Arc<ListSnapshot>,
    own: Arc<ListSnapshot>,
}

impl Gateway {
    /// Puts another hub in the place of the one before, which is given back. Calls that are under
    /// way end where they began.
    pub fn renew(self: &Arc<Self>, hub: &Arc<Hub>) -> Arc<Hub> {
        let seen = self.seen(hub);
        let before = self.put(Arc::clone(hub));
        let changed = changed(&before, hub);
        self.forget_levels(&changed);
        self.lists.forget_awaited(&changed);
        self.tasks.orphan(&changed);
        self.watch_again((&before, hub), &changed);
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

    /// The lists that callers bound by access rules see, before and after.
    fn seen(&self, hub: &Hub) -> Vec<Seen> {
        let before = self.hub();
        let mut all: Vec<(View, Arc<Caller>)> = self.audience.all();
        all.retain(|(_, caller)| before.policy().binds(caller) || hub.policy().binds(caller));
        let mut seen: Vec<Seen> = Vec::new();
        for (view, caller) in all {
            let known = |one: &Seen| {
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
                seen.push(Seen { view, caller, listing, all, own });
            }
        }
        seen
    }

    /// Tells a caller of a list of theirs that is another now while that of everything is not;
    /// of that everybody is told.
    async fn tell_if_other(self: &Arc<Self>, seen: Seen) {
        let Seen { view, caller, listing, all, own } = seen;
        let Ok(now) = self.seen_by(&view, &caller, listing).await else { return };
        let Some(all_now) = self.lists.last(&view, listing) else { return };
        if all.looks_like(&all_now) && !own.looks_like(&now) {
            let meant = |other: &View, whose: &Caller| {
                *other == view && whose.subject == caller.subject && whose.roles == caller.roles
            };
            self.tell_those(&meant, listing);
        }
    }

    /// Asks servers that are others now to tell of what clients want to hear of.
    fn watch_again(
        self: &Arc<Self>,
        (before, hub): (&Arc<Hub>, &Arc<Hub>),
        changed: &HashSet<ServerName>,
    ) {
        for ((server, uri), callers) in self.audience.wanted() {
            // A watch ends when the rules now forbid the resource to all subscribers.
            let shown = |caller: &&Arc<Caller>| hub.shows_resource(caller, &server, &uri);
            let Some(caller) = callers.iter().find(shown) else { continue };
            if !changed.contains(&server) || !hub.has(&server) {
                continue;
            }
            let (before, hub, caller) = (Arc::clone(before), Arc::clone(hub), Arc::clone(caller));
            let id = ItemId { server, item: uri };
            tokio::spawn(async move {
                if let Err(error) = hub.resubscribe(&before, &caller, id).await {
                    tracing::debug!(%error, "a subscription does not go on");
                }
            });
        }
    }
}

/// The servers that are gone or stand for another connection now.
fn changed(before: &Hub, now: &Hub) -> HashSet<ServerName> {
    before.servers().filter(|name| !before.shares(now, name)).cloned().collect()
}
