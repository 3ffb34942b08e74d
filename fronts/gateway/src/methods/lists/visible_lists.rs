//! Lists filtered by access rules, cached per subject and roles.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use capstan_hub::Hub;
use capstan_hub::ports::Listing;
use capstan_model::{Caller, ServerName};

use crate::client::{Client, View};
use crate::gateway::Gateway;
use crate::methods::lists::build;
use crate::methods::lists::list_snapshot::ListSnapshot;
use crate::protocol::fault::Fault;

/// Maximum number of cached lists; the least recently used one is removed first.
const MAX_LISTS: usize = 256;

/// LRU cache of the lists of callers with access rules.
#[derive(Default)]
pub(crate) struct VisibleLists(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    lists: HashMap<Key, List>,
    /// Counts requests, as the clock of the LRU cache.
    asked: u64,
}

/// An unfiltered list before and after a change.
pub(crate) struct Change {
    pub(crate) before: Arc<ListSnapshot>,
    pub(crate) after: Arc<ListSnapshot>,
    /// True if callers without access rules are told already, because the server reported it.
    pub(crate) is_announced: bool,
}

/// Cache key: view, kind of list, and the caller's subject and roles.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    view: View,
    listing: Listing,
    subject: String,
    roles: Vec<String>,
}

struct List {
    /// The unfiltered list that it was made from.
    ///
    /// The entry is valid as long as that is the current one.
    of: Arc<ListSnapshot>,
    built: Arc<ListSnapshot>,
    asked: u64,
}

impl Gateway {
    /// The current list that a client may see.
    pub(crate) async fn built_for(
        self: &Arc<Self>,
        client: &Client,
        listing: Listing,
    ) -> Result<Arc<ListSnapshot>, Fault> {
        self.seen_by(&client.view, &client.caller, listing).await
    }

    /// The current list that a caller may see.
    pub(crate) async fn seen_by(
        self: &Arc<Self>,
        view: &View,
        caller: &Caller,
        listing: Listing,
    ) -> Result<Arc<ListSnapshot>, Fault> {
        // One hub for both steps: a list made under one hub must not be filtered by another.
        let hub = self.hub();
        let all = self.built_in(&hub, view, listing).await?;
        if hub.has_own_lists(caller) {
            // Not cached: the list depends on accounts that change without notice.
            let is_shown = |server: &ServerName| view.has(server);
            let own = hub.own_lists(all.gathered(), listing, caller, &is_shown).await;
            return Ok(Arc::new(build(&hub, view, listing, &own, caller)));
        }
        if !hub.policy().binds(caller) {
            return Ok(all);
        }
        Ok(self.own(&hub, Key::new(view, listing, caller), &all, caller))
    }

    /// The part of a list that callers with this key see.
    fn own(
        &self,
        hub: &Hub,
        key: Key,
        all: &Arc<ListSnapshot>,
        caller: &Caller,
    ) -> Arc<ListSnapshot> {
        if let Some(known) = self.lists.classes.get(&key, all) {
            return known;
        }
        let own = build(hub, &key.view, key.listing, &all.gathered(), caller);
        // Share the unfiltered list if the caller sees all of it.
        let own = if own.looks_like(all) { Arc::clone(all) } else { Arc::new(own) };
        // The hub may have been replaced meanwhile; then the list is not cached.
        if all.is_under(hub) {
            self.lists.classes.put(key, Arc::clone(all), Arc::clone(&own));
        }
        own
    }

    /// True if a caller is to be told of a change.
    ///
    /// Changes at servers beyond the caller's reach are not revealed.
    pub(crate) fn sees_change(
        &self,
        view: &View,
        listing: Listing,
        Change { before, after, is_announced }: &Change,
        caller: &Caller,
        known: &mut HashMap<Key, bool>,
    ) -> bool {
        let hub = self.hub();
        if !hub.policy().binds(caller) {
            return !is_announced;
        }
        let key = Key::new(view, listing, caller);
        *known.entry(key.clone()).or_insert_with(|| {
            let was = self.own(&hub, key.clone(), before, caller);
            !was.looks_like(&self.own(&hub, key, after, caller))
        })
    }

    /// True if the server exists and the caller can reach at least one of its items.
    pub(crate) fn shows(&self, server: &ServerName, caller: &Caller) -> bool {
        self.knows(server) && self.hub().policy().out_of_reach(caller, server).is_none()
    }
}

// === impl Key ===

impl Key {
    fn new(view: &View, listing: Listing, caller: &Caller) -> Self {
        let Caller { subject, roles, .. } = caller;
        let mut roles = roles.clone();
        roles.sort_unstable();
        roles.dedup();
        Self { view: view.clone(), listing, subject: subject.clone(), roles }
    }
}

// === impl VisibleLists ===

impl VisibleLists {
    /// The cached list, if it was made from `of`.
    fn get(&self, key: &Key, of: &Arc<ListSnapshot>) -> Option<Arc<ListSnapshot>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.asked += 1;
        let asked = kept.asked;
        let list = kept.lists.get_mut(key).filter(|list| Arc::ptr_eq(&list.of, of));
        let built = list.map(|list| {
            list.asked = asked;
            Arc::clone(&list.built)
        });
        drop(kept);
        built
    }

    /// The list that was last served, even if it is outdated.
    pub(crate) fn last(
        &self,
        view: &View,
        caller: &Caller,
        listing: Listing,
    ) -> Option<Arc<ListSnapshot>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.lists.get(&Key::new(view, listing, caller)).map(|list| Arc::clone(&list.built))
    }

    fn put(&self, key: Key, of: Arc<ListSnapshot>, built: Arc<ListSnapshot>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.lists.len() >= MAX_LISTS && !kept.lists.contains_key(&key) {
            let oldest = kept.lists.iter().min_by_key(|(_, list)| list.asked);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                kept.lists.remove(&oldest);
            }
        }
        let asked = kept.asked;
        kept.lists.insert(key, List { of, built, asked });
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(subject: &str) -> Key {
        let (view, listing) = (View::All, Listing::Tools);
        Key { view, listing, subject: subject.to_owned(), roles: Vec::new() }
    }

    #[test]
    fn only_so_many_lists_are_kept_and_the_one_in_use_is_among_them() {
        let (classes, all) = (VisibleLists::default(), Arc::new(ListSnapshot::empty()));
        for number in 0..MAX_LISTS * 2 {
            classes.put(key(&number.to_string()), Arc::clone(&all), Arc::clone(&all));
            assert!(classes.get(&key("0"), &all).is_some());
        }
        assert_eq!(classes.0.lock().unwrap().lists.len(), MAX_LISTS);
        assert!(classes.get(&key("1"), &all).is_none());
    }

    #[test]
    fn a_list_that_was_made_from_another_one_is_not_served() {
        let (classes, all) = (VisibleLists::default(), Arc::new(ListSnapshot::empty()));
        classes.put(key("ann"), Arc::clone(&all), Arc::clone(&all));
        assert!(classes.get(&key("ann"), &all).is_some());
        assert!(classes.get(&key("bob"), &all).is_none());
        assert!(classes.get(&key("ann"), &Arc::new(ListSnapshot::empty())).is_none());
    }
}
