//! Warnings about rules that match nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use capstan_hub::Hub;
use capstan_hub::catalog::{Ask, Patience};
use capstan_hub::ports::Listing;
use capstan_model::ItemId;

/// Time limit for servers to list their items.
const PATIENCE: Patience = Patience::UpTo(Duration::from_mins(1));

/// Warns about rules that match no item of any server, because they are likely misspelt.
///
/// Rules about servers that did not answer are left out.
pub async fn warn_unmatched(hub: &Hub) {
    let (mut items, mut unknown) = (Vec::new(), BTreeSet::new());
    // Most rules are about tools; other items are listed only if rules are left.
    for listing in [Listing::Tools, Listing::Prompts, Listing::Resources, Listing::Templates] {
        let gathered = hub.gather_from(listing, PATIENCE, &|_| Ask::Glance).await;
        unknown.extend(gathered.failed.keys().chain(&gathered.pending).cloned());
        for (server, list) in &gathered.lists {
            let id = |name: &String| ItemId { server: server.clone(), item: name.clone() };
            for item in list.iter().map(|item| id(&item.name)) {
                items.extend(hub.policy().new_name(&item));
                items.push(item);
            }
        }
        if hub.policy().unmatched(&items, &unknown).is_empty() {
            return;
        }
    }
    for rule in hub.policy().unmatched(&items, &unknown) {
        tracing::warn!(%rule, "a rule matches nothing that the servers offer");
    }
}
