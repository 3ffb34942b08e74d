//! Lists of the servers that callers use with accounts of their own.

use std::sync::Arc;
use std::time::Duration;

use capstan_model::{Caller, ServerName};
use futures::future::{Either, join_all, select};
use indexmap::IndexMap;

use crate::catalog::Gathered;
use crate::hub::Hub;
use crate::ports::{Item, Lane, Listing, Principal};

/// How long a list waits for the servers of a caller's accounts.
const WAIT: Duration = Duration::from_secs(10);

impl Hub {
    /// True if a caller may see other lists than the operator.
    pub fn has_own_lists(&self, caller: &Caller) -> bool {
        !self.per_caller.is_empty() && Principal::of(caller) != Principal::Operator
    }

    /// Puts the lists of a caller's own accounts in the place of those of the operator's accounts.
    ///
    /// As long as the caller has not signed in, it sees the operator's tools, prompts and templates,
    /// which describe the server, and no resources, which belong to the account.
    pub async fn own_lists(
        &self,
        shared: Gathered,
        listing: Listing,
        caller: &Caller,
        is_shown: &(dyn Fn(&ServerName) -> bool + Sync),
    ) -> Gathered {
        let lane = Lane::ANY.on_behalf_of(caller);
        let reachable =
            |name: &&ServerName| is_shown(name) && self.policy.out_of_reach(caller, name).is_none();
        let reads = self.per_caller.iter().filter(reachable).filter_map(|name| {
            let server = self.servers.get(name)?;
            Some(async move {
                let lease = match server.lease(lane) {
                    Some(lease) => Some(lease),
                    None => server.wake(lane).await.ok(),
                };
                let items = self.judged_by(&lease?, listing).await.ok()?.0;
                Some((name.clone(), items))
            })
        });
        let reads = std::pin::pin!(join_all(reads));
        let own: IndexMap<ServerName, Arc<[Item]>> =
            match select(reads, self.clock.sleep(WAIT)).await {
                Either::Left((read, _)) => read.into_iter().flatten().collect(),
                Either::Right(_) => IndexMap::new(),
            };
        let Gathered { mut lists, mut failed, pending } = shared;
        let mut all = IndexMap::with_capacity(lists.len());
        for name in self.servers.keys() {
            let shared = lists.swap_remove(name);
            let items = match own.get(name) {
                Some(items) => Some(Arc::clone(items)),
                None if self.per_caller.contains(name) && listing == Listing::Resources => None,
                None => shared,
            };
            if let Some(items) = items {
                failed.swap_remove(name);
                all.insert(name.clone(), items);
            }
        }
        Gathered { lists: all, failed, pending }
    }
}
