//! Snapshot of one list: its pages, its sources, and its expiry.

use std::mem;
use std::sync::{Arc, OnceLock};

use capstan_hub::Hub;
use capstan_hub::catalog::Gathered;
use capstan_hub::ports::{Item, Listing};
use capstan_hub::search::ToolPool;
use capstan_model::{CallTools, Caller, ServerName};
use capstan_policy::Policy;
use capstan_wire::{Json, object};
use jiff::Timestamp;

use crate::methods::lists::page::Page;
use crate::protocol::era::Era;

/// Maximum size of a page, in bytes. Many clients read only the first page.
const MAX_PAGE: usize = 8 * 1024 * 1024;

/// Maximum number of items on a page.
const MAX_ITEMS: usize = 1000;

/// One list, ready to be sent.
pub(crate) struct ListSnapshot {
    /// The sources. The snapshot is valid while they are unchanged.
    sources: Vec<(ServerName, Arc<[Item]>)>,
    pages: Vec<Arc<Page>>,
    /// Pages for legacy clients, if these must differ.
    legacy: Option<Vec<Arc<Page>>>,
    /// The time when a rule expires, so that other items may become visible.
    until: Option<Timestamp>,
    /// The version of the approved definitions that the snapshot was made with.
    pins: u64,
    /// The rules that it was made under; each hub has its own.
    rules: Arc<Policy>,
    /// The tools, prepared for search when they are first searched.
    pool: OnceLock<Arc<ToolPool>>,
    /// The lists of clients that search these tools.
    search: [OnceLock<Arc<ListSnapshot>>; 2],
}

/// The parts of a new snapshot.
pub(crate) struct SnapshotParts {
    pub(crate) sources: Vec<(ServerName, Arc<[Item]>)>,
    pub(crate) pages: Pages,
    pub(crate) until: Option<Timestamp>,
    pub(crate) pins: u64,
}

/// Pages under construction.
pub(crate) struct Pages {
    listing: Listing,
    all: Book,
    /// Set from the first item that must look different for legacy clients.
    legacy: Option<Book>,
}

#[derive(Clone, Default)]
struct Book {
    done: Vec<Arc<Page>>,
    current: Page,
}

// === impl ListSnapshot ===

impl ListSnapshot {
    pub(crate) fn new(hub: &Hub, parts: SnapshotParts) -> Self {
        let SnapshotParts { sources, pages: Pages { all, legacy, .. }, until, pins } = parts;
        let (pages, legacy) = (all.finish(), legacy.map(Book::finish));
        let rules = Arc::clone(hub.policy());
        let (pool, search) = (OnceLock::new(), Default::default());
        Self { sources, pages, legacy, until, pins, rules, pool, search }
    }

    /// The tools that `caller` sees, prepared for search; `None` if this hub has no search.
    pub(crate) fn pool(&self, hub: &Hub, caller: &Caller) -> Option<Arc<ToolPool>> {
        if let Some(known) = self.pool.get() {
            return Some(Arc::clone(known));
        }
        let pool = Arc::new(hub.tool_pool(&self.gathered(), caller)?);
        Some(Arc::clone(self.pool.get_or_init(|| pool)))
    }

    /// The list of a client that searches these tools; `build` makes it.
    pub(crate) fn search(&self, calls: CallTools, build: impl FnOnce() -> Self) -> Arc<Self> {
        let [one, by_effect] = &self.search;
        let known = match calls {
            CallTools::One => one,
            CallTools::ByEffect => by_effect,
        };
        Arc::clone(known.get_or_init(|| Arc::new(build())))
    }

    /// The pages for a client of this era.
    pub(crate) fn pages(&self, era: Era) -> &[Arc<Page>] {
        match &self.legacy {
            Some(legacy) if !era.allows_any_structure() => legacy,
            Some(_) | None => &self.pages,
        }
    }

    /// True if clients see the same content in both.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        self.pages == other.pages
    }

    /// The sources of the snapshot.
    pub(crate) fn gathered(&self) -> Gathered {
        Gathered { lists: self.sources.iter().cloned().collect(), ..Gathered::default() }
    }

    #[cfg(test)]
    pub(crate) fn empty() -> Self {
        let (sources, pages) = (Vec::new(), Vec::new());
        Self {
            sources,
            pages,
            legacy: None,
            until: None,
            pins: 0,
            rules: Arc::default(),
            pool: OnceLock::new(),
            search: Default::default(),
        }
    }

    /// True if rules have expired since the snapshot was made.
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// True if it was made under the rules of this hub.
    pub(crate) fn is_under(&self, hub: &Hub) -> bool {
        Arc::ptr_eq(&self.rules, hub.policy())
    }

    /// True if this hub would make the same snapshot from these lists now.
    pub(crate) fn is_of(&self, hub: &Hub, gathered: &Gathered) -> bool {
        let same = self
            .sources
            .iter()
            .zip(&gathered.lists)
            .all(|((name, items), (other, now))| name == other && Arc::ptr_eq(items, now));
        same && self.sources.len() == gathered.lists.len()
            && self.is_under(hub)
            && self.pins == hub.pins().version()
            && !self.is_over(hub.clock().now())
    }
}

// === impl Pages ===

impl Pages {
    pub(crate) fn of(listing: Listing) -> Self {
        Self { listing, all: Book::default(), legacy: None }
    }

    /// Adds an item, optionally under another name.
    pub(crate) fn push(&mut self, item: &Json, name: Option<&Arc<str>>) {
        let plain = (self.listing == Listing::Tools).then(|| without_odd_output(item)).flatten();
        if plain.is_some() && self.legacy.is_none() {
            self.legacy = Some(self.all.clone());
        }
        let key = self.listing.name_key();
        self.all.push(item, key, name);
        if let Some(legacy) = &mut self.legacy {
            legacy.push(plain.as_ref().unwrap_or(item), key, name);
        }
    }
}

// === impl Book ===

impl Book {
    fn push(&mut self, item: &Json, key: &str, name: Option<&Arc<str>>) {
        let is_full =
            self.current.count() >= MAX_ITEMS || self.current.len() + item.len() > MAX_PAGE;
        if !self.current.is_empty() && is_full {
            self.close();
        }
        self.current.push(item.clone(), name.map(|name| (key, name)));
    }

    fn close(&mut self) {
        self.done.push(Arc::new(mem::take(&mut self.current)));
    }

    fn finish(mut self) -> Vec<Arc<Page>> {
        if !self.current.is_empty() || self.done.is_empty() {
            self.close();
        }
        self.done
    }
}

/// Removes a tool's output schema if it is not an object; `None` if nothing is to be changed.
///
/// Up to 2025-11-25 only objects are allowed there, and a client may refuse the complete list.
fn without_odd_output(tool: &Json) -> Option<Json> {
    // Fast path: most tools have no output schema.
    if !tool.as_str().contains("outputSchema") {
        return None;
    }
    let schema = object::get(tool, "outputSchema")?;
    let is_object = object::get_string(&schema, "type").as_deref() == Some("object");
    if is_object { None } else { object::without_member(tool, "outputSchema").ok() }
}

#[cfg(test)]
mod tests {
    use capstan_wire::compose;

    use super::*;

    fn pages(items: &[Json]) -> ListSnapshot {
        let mut pages = Pages::of(Listing::Tools);
        for item in items {
            pages.push(item, None);
        }
        let (pages, legacy) = (pages.all.finish(), pages.legacy.map(Book::finish));
        ListSnapshot { pages, legacy, ..ListSnapshot::empty() }
    }

    fn texts(pages: &[Arc<Page>]) -> Vec<String> {
        let text = |page: &Arc<Page>| {
            let mut text = Vec::new();
            page.write_into(&mut text);
            String::from_utf8(text).unwrap()
        };
        pages.iter().map(text).collect()
    }

    #[test]
    fn pages_are_filled_in_order_and_an_empty_list_is_one() {
        assert_eq!(texts(&pages(&[]).pages), ["[]"]);
        let large = compose::string(&"x".repeat(MAX_PAGE / 2));
        let built = pages(&[large.clone(), large.clone(), large]);
        assert_eq!(built.pages.len(), 3);
        for page in texts(&built.pages) {
            let items = object::items(&Json::parse(page).unwrap()).unwrap();
            assert_eq!(items.len(), 1);
        }
    }

    #[test]
    fn a_page_has_only_so_many_items_for_clients_of_either_era() {
        let tool = |number: usize| {
            let odd = if number == 0 { r#","outputSchema":{"type":"array"}"# } else { "" };
            Json::parse(format!(r#"{{"name":"t{number}"{odd}}}"#)).unwrap()
        };
        let built = pages(&(0..=2 * MAX_ITEMS).map(tool).collect::<Vec<_>>());
        for era in [Era::Legacy, Era::Modern] {
            let counts: Vec<usize> = built.pages(era).iter().map(|page| page.count()).collect();
            assert_eq!(counts, [MAX_ITEMS, MAX_ITEMS, 1]);
        }
    }

    #[test]
    fn what_a_tool_gives_back_is_described_to_legacy_clients_only_if_it_is_an_object() {
        let tool = |name: &str, schema: &str| {
            Json::parse(format!(r#"{{"name":"{name}","outputSchema":{schema},"x":1.0}}"#)).unwrap()
        };
        let fine = [tool("a", r#"{"type":"object"}"#), tool("b", r#"{"type":"object","x":[]}"#)];
        let built = pages(&fine);
        assert!(built.legacy.is_none());
        assert_eq!(built.pages(Era::Legacy), built.pages);
        for odd in
            [r#"{"type":"array"}"#, "{}", r#"{"anyOf":[]}"#, r#"{"type":["object"]}"#, "true"]
        {
            let [first, last] = fine.clone();
            let built = pages(&[first.clone(), tool("o", odd), last.clone()]);
            let all = format!("[{first},{},{last}]", tool("o", odd));
            assert_eq!(texts(built.pages(Era::Modern)), [all]);
            let legacy = format!(r#"[{first},{{"name":"o","x":1.0}},{last}]"#);
            assert_eq!(texts(built.pages(Era::Legacy)), [legacy.as_str()], "{odd}");
        }
    }
}
