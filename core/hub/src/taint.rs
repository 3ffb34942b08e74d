//! The answers that a conversation has received, as far as rules about flows need them.
//!
//! **Invariant:** tags are only added. They last as long as the [`Session`](crate::Session), also
//! when the rules change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use capstan_model::ItemId;
use capstan_policy::{Tag, Tags};
use serde::{Deserialize, Serialize};

/// The first item by which a conversation has read each kind of data.
#[derive(Debug, Default)]
pub(crate) struct Taint {
    sources: Mutex<ReadSources>,
}

/// The items by which a conversation has read data that rules about flows depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSources {
    /// The first item whose answer contained content of strangers.
    pub untrusted: Option<ItemId>,
    /// The first item whose answer contained private data.
    pub private: Option<ItemId>,
}

// === impl Taint ===

impl Taint {
    /// Notes an answer of an item with these tags.
    pub(crate) fn add(&self, tags: Tags, id: &ItemId) {
        if !tags.has(Tag::Untrusted) && !tags.has(Tag::Private) {
            return;
        }
        let mut sources = self.sources();
        if tags.has(Tag::Untrusted) {
            sources.untrusted.get_or_insert_with(|| id.clone());
        }
        if tags.has(Tag::Private) {
            sources.private.get_or_insert_with(|| id.clone());
        }
    }

    /// The item by which data with this tag was read first; `None` if none was read.
    pub(crate) fn source(&self, tag: Tag) -> Option<ItemId> {
        let sources = self.sources();
        match tag {
            Tag::Untrusted => sources.untrusted.clone(),
            Tag::Private => sources.private.clone(),
            Tag::Sends | Tag::Addresses => None,
        }
    }

    pub(crate) fn all(&self) -> ReadSources {
        self.sources().clone()
    }

    /// Adds the items of an earlier part of the conversation.
    pub(crate) fn restore(&self, earlier: ReadSources) {
        let mut sources = self.sources();
        sources.untrusted = earlier.untrusted.or_else(|| sources.untrusted.take());
        sources.private = earlier.private.or_else(|| sources.private.take());
    }

    fn sources(&self) -> MutexGuard<'_, ReadSources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_of_each_tag_is_kept() {
        let id = |item: &str| ItemId { server: "s".parse().unwrap(), item: item.to_owned() };
        let taint = Taint::default();
        taint.add(Tags::NONE.with(Tag::Sends), &id("send"));
        assert_eq!((taint.source(Tag::Untrusted), taint.source(Tag::Sends)), (None, None));
        taint.add(Tags::NONE.with(Tag::Untrusted), &id("page"));
        taint.add(Tags::NONE.with(Tag::Untrusted).with(Tag::Private), &id("mail"));
        assert_eq!(taint.source(Tag::Untrusted), Some(id("page")));
        assert_eq!(taint.source(Tag::Private), Some(id("mail")));
    }
}
