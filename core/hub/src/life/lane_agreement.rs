//! Tells if the connection of a lane defines an item as the home connection does.
//!
//! A server that speaks both eras may write one definition in two ways: with its members in another
//! order, or without members that only one era has. A call is decided on the home connection's
//! definition, so it goes to another connection only if the definition there means the same.

use std::sync::{Arc, Mutex, Weak};

use capstan_wire::Json;
use rustc_hash::FxHashMap;

use super::supervisor::lock;
use crate::pins::fingerprint::means_the_same;
use crate::ports::{Item, Listing};

/// The results of comparisons, cached as long as the lane's list is the same object.
#[derive(Default)]
pub(super) struct LaneAgreement(Mutex<FxHashMap<Listing, Compared>>);

struct Compared {
    /// The lane's list. Weak, because the connection may be closed.
    items: Weak<[Item]>,
    /// The items that were compared: the definition on the home connection, and the result.
    results: FxHashMap<String, (Json, bool)>,
}

// === impl LaneAgreement ===

impl LaneAgreement {
    /// Returns the cached result for an item, given its name and its definition on the home
    /// connection.
    pub(super) fn known(
        &self,
        listing: Listing,
        items: &Arc<[Item]>,
        (name, home): (&str, &Json),
    ) -> Option<bool> {
        let all = lock(&self.0);
        let compared = all.get(&listing).filter(|compared| compared.is_of(items))?;
        let (definition, agrees) = compared.results.get(name)?;
        let known = (definition == home).then_some(*agrees);
        drop(all);
        known
    }

    /// Compares an item's definition in the lane's list with the one on the home connection.
    pub(super) fn find(
        &self,
        listing: Listing,
        items: &Arc<[Item]>,
        (name, home): (&str, &Json),
    ) -> bool {
        if let Some(agrees) = self.known(listing, items, (name, home)) {
            return agrees;
        }
        // The first of two items with one name counts, as everywhere.
        let own = items.iter().find(|item| item.name == name);
        let agrees = own.is_some_and(|own| means_the_same(listing, &own.definition, home));
        let mut all = lock(&self.0);
        let compared = all.entry(listing).or_insert_with(|| Compared::new(items));
        if !compared.is_of(items) {
            *compared = Compared::new(items);
        }
        compared.results.insert(name.to_owned(), (home.clone(), agrees));
        drop(all);
        agrees
    }
}

// === impl Compared ===

impl Compared {
    fn new(items: &Arc<[Item]>) -> Self {
        Self { items: Arc::downgrade(items), results: FxHashMap::default() }
    }

    fn is_of(&self, items: &Arc<[Item]>) -> bool {
        // The caller holds `items`, so its address cannot belong to another list by now.
        std::ptr::addr_eq(self.items.as_ptr(), Arc::as_ptr(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn list(text: &str) -> Arc<[Item]> {
        Arc::new([Item { name: "a".to_owned(), definition: json(text) }])
    }

    #[test]
    fn a_definition_agrees_if_a_model_and_a_rule_read_the_same() {
        let home = json(r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1}}"#);
        let agreement = LaneAgreement::default();
        for (own, expected) in [
            (r#"{"name":"a","inputSchema":{"x":1,"type":"object"},"description":"d"}"#, true),
            (
                r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":1},"execution":{}}"#,
                true,
            ),
            (r#"{"name":"a","description":"e","inputSchema":{"type":"object","x":1}}"#, false),
            (r#"{"name":"a","description":"d","inputSchema":{"type":"object","x":2}}"#, false),
        ] {
            let own = list(own);
            assert_eq!(agreement.known(Listing::Tools, &own, ("a", &home)), None);
            assert_eq!(agreement.find(Listing::Tools, &own, ("a", &home)), expected);
            assert_eq!(agreement.known(Listing::Tools, &own, ("a", &home)), Some(expected));
            assert!(!agreement.find(Listing::Tools, &own, ("b", &home)), "it is not there");
        }
    }

    #[test]
    fn another_definition_on_either_connection_is_compared_again() {
        let (home, own) = (json(r#"{"description":"d"}"#), list(r#"{"description":"d"}"#));
        let agreement = LaneAgreement::default();
        assert!(agreement.find(Listing::Tools, &own, ("a", &home)));
        let changed = json(r#"{"description":"e"}"#);
        assert_eq!(agreement.known(Listing::Tools, &own, ("a", &changed)), None);
        assert_eq!(agreement.known(Listing::Prompts, &own, ("a", &home)), None);
        let other = list(r#"{"description":"d"}"#);
        assert_eq!(agreement.known(Listing::Tools, &other, ("a", &home)), None);
        assert!(!agreement.find(Listing::Tools, &own, ("a", &changed)));
    }

    #[test]
    fn all_of_a_prompt_counts() {
        let home = json(r#"{"description":"d","arguments":[{"name":"x"}]}"#);
        let agreement = LaneAgreement::default();
        let same = list(r#"{"arguments":[{"name":"x"}],"description":"d"}"#);
        assert!(agreement.find(Listing::Prompts, &same, ("a", &home)));
        let other = list(r#"{"description":"d","arguments":[{"name":"y"}]}"#);
        assert!(!agreement.find(Listing::Prompts, &other, ("a", &home)));
    }
}
