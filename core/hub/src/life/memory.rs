//! The known lists of a server in memory. A list stays the same object as long as its bytes are the
//! same.

use std::sync::{Arc, Weak};

use capstan_wire::object;
use jiff::Timestamp;
use rustc_hash::FxHashMap;

use super::manifest::Manifest;
use crate::ports::{About, Item, Listing};

/// The known identity and lists of a server.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) about: Option<Arc<About>>,
    /// The time at which the server last confirmed it, exact to about a minute.
    pub(super) seen: Option<Timestamp>,
    lists: FxHashMap<Listing, Known>,
}

struct Known {
    items: Arc<[Item]>,
    /// The server's own list that was last compared. Weak, because the process may be gone.
    compared: Option<Weak<[Item]>>,
}

/// The server's own list, compared with the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// No difference.
    None,
    /// No list was known.
    First,
    /// The list differs.
    Changed,
}

// === impl Memory ===

impl Memory {
    pub(super) fn of(manifest: Manifest, seen: Timestamp) -> Self {
        let known = |items| Known { items, compared: None };
        let lists = manifest.lists.into_iter().map(|(listing, items)| (listing, known(items)));
        Self { about: Some(manifest.about), seen: Some(seen), lists: lists.collect() }
    }

    pub(super) fn manifest(&self) -> Option<Manifest> {
        let lists = self.lists.iter();
        let lists = lists.map(|(listing, known)| (*listing, Arc::clone(&known.items))).collect();
        Some(Manifest { about: Arc::clone(self.about.as_ref()?), lists })
    }

    /// Returns a list if it is known. A list that the server does not declare is known to be empty.
    pub(super) fn list(&self, listing: Listing) -> Option<Arc<[Item]>> {
        if let Some(known) = self.lists.get(&listing) {
            return Some(Arc::clone(&known.items));
        }
        let capabilities = self.about.as_ref()?.capabilities.as_ref();
        let offers = capabilities.and_then(|all| object::get(all, listing.capability())).is_some();
        (!offers).then(|| Arc::new([]) as Arc<[Item]>)
    }

    /// True if all lists are known and have no items.
    pub(super) fn has_no_items(&self) -> bool {
        Listing::ALL.into_iter().all(|one| self.list(one).is_some_and(|items| items.is_empty()))
    }

    /// Returns the known list if `items` is the server's list that was last compared.
    pub(super) fn adopted(&self, listing: Listing, items: &Arc<[Item]>) -> Option<Arc<[Item]>> {
        let known = self.lists.get(&listing)?;
        let last = known.compared.as_ref()?;
        // The caller holds `items`, so its address cannot belong to another list by now.
        std::ptr::eq(last.as_ptr(), Arc::as_ptr(items)).then(|| Arc::clone(&known.items))
    }

    /// Compares the server's own list with the known one. Returns the list to use, and the
    /// difference.
    pub(super) fn adopt(&mut self, listing: Listing, items: &Arc<[Item]>) -> (Arc<[Item]>, News) {
        let own = Arc::downgrade(items);
        if let Some(known) = self.lists.get_mut(&listing) {
            let compared = known.compared.as_ref().is_some_and(|last| last.ptr_eq(&own));
            if compared || *known.items == **items {
                known.compared = Some(own);
                return (Arc::clone(&known.items), News::None);
            }
        }
        let known = Known { items: Arc::clone(items), compared: Some(own) };
        let before = self.lists.insert(listing, known);
        (Arc::clone(items), if before.is_some() { News::Changed } else { News::First })
    }
}

#[cfg(test)]
mod tests {
    use capstan_wire::Json;

    use super::*;

    fn list(texts: &[&str]) -> Arc<[Item]> {
        let item = |text: &&str| Item {
            name: "a".to_owned(),
            definition: Json::parse((*text).to_owned()).unwrap(),
        };
        texts.iter().map(item).collect()
    }

    #[test]
    fn only_a_list_that_differs_in_its_bytes_is_another() {
        let mut memory = Memory::default();
        let first = list(&[r#"{"name":"a"}"#]);
        assert_eq!(memory.adopt(Listing::Tools, &first).1, News::First);
        let (same, news) = memory.adopt(Listing::Tools, &list(&[r#"{"name":"a"}"#]));
        assert!(Arc::ptr_eq(&same, &first) && news == News::None);
        assert_eq!(memory.adopt(Listing::Prompts, &first).1, News::First);
        assert!(memory.adopted(Listing::Tools, &list(&[r#"{"name":"a"}"#])).is_none());
        let adopted = memory.adopted(Listing::Prompts, &first).unwrap();
        assert!(Arc::ptr_eq(&adopted, &first));
        for other in [&[r#"{"name": "a"}"#][..], &[], &[r#"{"name":"a"}"#; 2]] {
            let (now, news) = memory.adopt(Listing::Tools, &list(other));
            assert_eq!((now.len(), news), (other.len(), News::Changed), "{other:?}");
            assert_eq!(memory.adopt(Listing::Tools, &now).1, News::None);
        }
    }

    #[test]
    fn what_a_server_does_not_have_is_known_to_be_empty() {
        let mut memory = Memory::default();
        assert!(memory.list(Listing::Tools).is_none() && memory.manifest().is_none());
        let capabilities = Some(Json::parse(r#"{"tools":{}}"#).unwrap());
        memory.about = Some(Arc::new(About { capabilities, ..About::default() }));
        assert!(memory.list(Listing::Tools).is_none());
        for listing in [Listing::Prompts, Listing::Resources, Listing::Templates] {
            assert_eq!(memory.list(listing).map(|items| items.len()), Some(0));
        }
    }
}
