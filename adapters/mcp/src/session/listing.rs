//! Reads a whole list of a server, page by page, and caches it until it changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use capstan_hub::ports::{BoxFuture, Item, Listing};
use capstan_model::CallError;
use capstan_model::rpc_code;
use capstan_wire::{Json, Reply, compose, object};
use futures::future::Shared;
use rustc_hash::{FxHashMap, FxHashSet};
use tracing::warn;

use crate::session::Session;

/// The largest number of pages read.
const MAX_PAGES: usize = 1000;

/// The largest number of items kept.
const MAX_ITEMS: usize = 100_000;

/// The largest number of bytes read, over all pages.
const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// The largest size of a list's result besides its items, in bytes. Larger ones are left out.
const MAX_MEMBERS: usize = 64 * 1024;

/// The server's lists, cached until they change. Concurrent callers share one read of a list.
#[derive(Default)]
pub(crate) struct Lists {
    all: Mutex<FxHashMap<Listing, SharedList>>,
    /// The members of each list's result besides its items.
    members: Mutex<FxHashMap<Listing, Json>>,
}

pub(crate) type SharedList = Shared<BoxFuture<'static, Result<Arc<[Item]>, CallError>>>;

/// The lists of all open connections of a server. A change that is reported on one of them concerns
/// all.
#[derive(Default)]
pub(crate) struct AllLists(Mutex<Vec<Weak<Lists>>>);

// === impl AllLists ===

impl AllLists {
    /// Adds the lists of a new connection.
    pub(crate) fn add(&self, lists: &Arc<Lists>) {
        let mut all = self.all();
        all.retain(|lists| lists.strong_count() > 0);
        all.push(Arc::downgrade(lists));
    }

    /// Drops a list that has changed, on every connection.
    pub(crate) fn forget(&self, listing: Listing) {
        let open: Vec<Arc<Lists>> = self.all().iter().filter_map(Weak::upgrade).collect();
        for lists in open {
            lists.forget(listing);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Weak<Lists>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Lists ===

impl Lists {
    /// A list that has been read.
    pub(crate) fn known(&self, listing: Listing) -> Option<Arc<[Item]>> {
        self.all().get(&listing)?.peek()?.as_ref().ok().cloned()
    }

    /// A list that has been read or is being read; if there is none, reading is started.
    pub(crate) fn get_or_start(
        &self,
        listing: Listing,
        start: impl FnOnce() -> SharedList,
    ) -> SharedList {
        self.all().entry(listing).or_insert_with(start).clone()
    }

    /// Drops a list that has changed; the next caller reads it again.
    pub(crate) fn forget(&self, listing: Listing) {
        let old = self.all().remove(&listing);
        drop(old);
    }

    /// The members of a list's result besides its items, if there are any.
    pub(crate) fn members(&self, listing: Listing) -> Option<Json> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner).get(&listing).cloned()
    }

    fn keep_members(&self, listing: Listing, page: &Json) {
        let rest = [listing.member(), "nextCursor"]
            .into_iter()
            .try_fold(page.clone(), |page, key| object::without_member(&page, key));
        let rest = rest.ok().filter(|rest| rest.len() > 2 && rest.len() <= MAX_MEMBERS);
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        match rest {
            Some(rest) => drop(members.insert(listing, rest)),
            None => drop(members.remove(&listing)),
        }
    }

    fn all(&self) -> MutexGuard<'_, FxHashMap<Listing, SharedList>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the list; empty when the server has no such list.
pub(crate) async fn read(session: &Session, listing: Listing) -> Result<Arc<[Item]>, CallError> {
    if !session.offers(listing) {
        return Ok(Arc::new([]));
    }
    // One timeout for all pages: a server that is slow with each of a thousand would never finish.
    let limit = session.settings.startup_timeout.saturating_add(session.settings.timeout);
    let pages = read_pages(session, listing);
    tokio::time::timeout(limit, pages).await.unwrap_or_else(|_| {
        let server = session.settings.name.clone();
        Err(CallError::TimedOut { server, limit, may_have_run: false })
    })
}

async fn read_pages(session: &Session, listing: Listing) -> Result<Arc<[Item]>, CallError> {
    let mut bytes: usize = 0;
    let mut items = Vec::new();
    let mut cursor: Option<Json> = None;
    for _ in 0..MAX_PAGES {
        let Some(page) = read_page(session, listing, cursor.as_ref()).await? else { break };
        if cursor.is_none() {
            session.lists.keep_members(listing, &page);
        }
        bytes = bytes.saturating_add(page.len());
        if bytes > MAX_LIST_BYTES {
            return Err(session.broken(format!("its list has more than {MAX_LIST_BYTES} bytes")));
        }
        let member = object::get(&page, listing.member());
        let entries =
            member.map(|list| object::items(&list).unwrap_or_default()).unwrap_or_default();
        items.extend(entries.into_iter().filter_map(|entry| item(listing, entry)));
        if items.len() > MAX_ITEMS {
            return Err(session.broken(format!("it lists more than {MAX_ITEMS} items")));
        }
        let next = object::get(&page, "nextCursor").filter(|next| next.as_bytes() != b"null");
        if next.is_some() && next == cursor {
            return Err(session.broken("its list repeats a page".to_owned()));
        }
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    if cursor.is_some() {
        return Err(session.broken(format!("its list has more than {MAX_PAGES} pages")));
    }
    let mut items = unique(items);
    if listing == Listing::Tools {
        items = session.connection.callable_tools(items);
    }
    Ok(items.into())
}

/// Leaves out items whose name was listed before: requests could not tell them apart.
fn unique(items: Vec<Item>) -> Vec<Item> {
    let is_new: Vec<bool> = {
        let mut seen = FxHashSet::default();
        items.iter().map(|item| seen.insert(item.name.as_str())).collect()
    };
    let repeated = is_new.iter().filter(|is_new| !**is_new).count();
    if repeated == 0 {
        return items;
    }
    warn!(repeated, "it lists items of the same name; only the first of each is kept");
    items.into_iter().zip(is_new).filter(|(_, is_new)| *is_new).map(|(item, _)| item).collect()
}

/// Reads one page; `None` if the server does not support such a list after all.
async fn read_page(
    session: &Session,
    listing: Listing,
    cursor: Option<&Json>,
) -> Result<Option<Json>, CallError> {
    let params = match cursor {
        Some(cursor) => compose::object(&[("cursor", cursor)]),
        None => Json::empty_object(),
    };
    match session.ask(listing.method(), &params).await? {
        Reply::Result(result) => Ok(Some(result)),
        Reply::Error(error) if error.code == rpc_code::METHOD_NOT_FOUND => Ok(None),
        Reply::Error(error) => Err(session.refused(&error)),
    }
}

fn item(listing: Listing, definition: Json) -> Option<Item> {
    if let Some(name) = object::get_string(&definition, listing.name_key()) {
        return Some(Item { name, definition });
    }
    warn!(list = listing.member(), "an item of its list has no name; it is left out");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_item_of_a_name_is_kept() {
        let item = |name: &str, text: &str| {
            let definition = Json::parse(format!(r#"{{"name":"{name}","x":{text}}}"#)).unwrap();
            Item { name: name.to_owned(), definition }
        };
        let all = vec![item("a", "1"), item("b", "2"), item("a", "3"), item("A", "4")];
        let [a, b, _, other] = all.clone().try_into().unwrap();
        assert_eq!(unique(all), [a, b, other]);
    }

    #[test]
    fn what_a_list_says_besides_its_items_is_kept() {
        let lists = Lists::default();
        let keep =
            |text: &str| lists.keep_members(Listing::Tools, &Json::parse(text.to_owned()).unwrap());
        let rest = || lists.members(Listing::Tools).map(|json| json.to_string());
        keep(r#"{"tools":[],"ttlMs":60000,"nextCursor":"x","_meta":{"a": 1.0}}"#);
        assert_eq!(rest().as_deref(), Some(r#"{"ttlMs":60000,"_meta":{"a": 1.0}}"#));
        keep(r#"{"tools":[]}"#);
        assert_eq!(rest(), None);
    }
}
