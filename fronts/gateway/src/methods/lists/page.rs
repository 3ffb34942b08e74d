//! One page of a list: the items in their servers' bytes, some of them renamed.
//!
//! A page refers to the bytes of the servers' lists. It is composed when it is sent, in parts if
//! possible, else once for all concurrent readers.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use capstan_wire::{Json, object};

/// Size of a part, in bytes; it may exceed this by one item.
const PART: usize = 64 * 1024;

/// One page, as an array.
#[derive(Debug, Default)]
pub(crate) struct Page {
    entries: Vec<Entry>,
    /// Total length of the items, without brackets and commas.
    size: usize,
    /// The composed page, while a reader holds it.
    whole: Mutex<Weak<ComposedPage>>,
}

/// A composed page.
#[derive(Debug)]
struct ComposedPage(Vec<u8>);

/// Keeps the composed page alive.
struct PageOwner(Arc<ComposedPage>);

/// An item on a page.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    text: Json,
    renamed: Option<Renamed>,
}

/// The name that an item is shown under.
#[derive(Clone, Debug, PartialEq)]
struct Renamed {
    /// Contains only characters that need no escape in JSON.
    name: Arc<str>,
    /// Position of the item's own name in its text.
    from: u32,
    to: u32,
}

/// The parts of a page, in order.
#[derive(Debug)]
pub(crate) struct Parts {
    page: Arc<Page>,
    /// Number of items that are out; one more after the end.
    at: usize,
}

// === impl Page ===

impl Page {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of items.
    pub(crate) fn count(&self) -> usize {
        self.entries.len()
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        // Two brackets, and a comma between items.
        self.size + self.entries.len().max(1) + 1
    }

    /// Adds an item.
    ///
    /// With `shown`, the value at that key is replaced by that name, which must contain only
    /// characters that need no escape.
    pub(crate) fn push(&mut self, text: Json, shown: Option<(&str, &Arc<str>)>) {
        let renamed = shown.and_then(|(key, name)| Renamed::of(&text, key, name));
        let entry = Entry { text, renamed };
        self.size += entry.len();
        self.entries.push(entry);
    }

    /// The page with the member `key` added to the items that have none, by their own names; `None`
    /// if there is nothing to add.
    pub(crate) fn with_members(&self, key: &str, members: &HashMap<String, Json>) -> Option<Self> {
        if members.is_empty() {
            return None;
        }
        let mut page = Self::default();
        for entry in &self.entries {
            let [name, known] = object::peek(&entry.text, ["name", key]);
            let name = name.as_ref().and_then(Json::text);
            let member = name.and_then(|name| members.get(&*name)).filter(|_| known.is_none());
            let text = member.and_then(|value| object::with_member(&entry.text, key, value).ok());
            let shown = entry.renamed.as_ref().map(|renamed| ("name", &renamed.name));
            page.push(text.unwrap_or_else(|| entry.text.clone()), shown);
        }
        Some(page)
    }

    /// The composed page. Concurrent readers share it.
    pub(crate) fn whole(&self) -> Bytes {
        let mut known = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = known.upgrade().unwrap_or_else(|| {
            let mut text = Vec::with_capacity(self.len());
            self.write_into(&mut text);
            Arc::new(ComposedPage(text))
        });
        *known = Arc::downgrade(&whole);
        drop(known);
        Bytes::from_owner(PageOwner(whole))
    }

    /// Appends the complete page to `out`.
    pub(crate) fn write_into(&self, out: &mut Vec<u8>) {
        self.write(0..self.entries.len(), out);
        self.close(out);
    }

    /// Appends a range of items to `out`.
    fn write(&self, range: Range<usize>, out: &mut Vec<u8>) {
        let start = range.start;
        for (number, entry) in self.entries.get(range).unwrap_or_default().iter().enumerate() {
            out.push(if start + number == 0 { b'[' } else { b',' });
            entry.write_into(out);
        }
    }

    fn close(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            out.push(b'[');
        }
        out.push(b']');
    }

    /// The range of items that make the next part, and their length.
    fn part(&self, at: usize) -> (Range<usize>, usize) {
        let (mut end, mut size) = (at, 0);
        for entry in self.entries.get(at..).unwrap_or_default() {
            if size >= PART {
                break;
            }
            size += entry.len() + 1;
            end += 1;
        }
        (at..end, size)
    }
}

impl Clone for Page {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), size: self.size, whole: Mutex::default() }
    }
}

impl PartialEq for Page {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

// === impl PageOwner ===

impl AsRef<[u8]> for PageOwner {
    fn as_ref(&self) -> &[u8] {
        &self.0.0
    }
}

// === impl Entry ===

impl Entry {
    fn len(&self) -> usize {
        match &self.renamed {
            None => self.text.len(),
            Some(renamed) => {
                let own = renamed.place();
                self.text.len() - own.len() + renamed.name.len() + 2
            }
        }
    }

    fn write_into(&self, out: &mut Vec<u8>) {
        let text = self.text.as_bytes();
        let Some(renamed) = &self.renamed else { return out.extend_from_slice(text) };
        let place = renamed.place();
        out.extend_from_slice(text.get(..place.start).unwrap_or_default());
        out.push(b'"');
        out.extend_from_slice(renamed.name.as_bytes());
        out.push(b'"');
        out.extend_from_slice(text.get(place.end..).unwrap_or_default());
    }
}

// === impl Renamed ===

impl Renamed {
    /// `None` if the item has no such key.
    fn of(text: &Json, key: &str, name: &Arc<str>) -> Option<Self> {
        debug_assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte)));
        let place = object::place(text, key)?;
        let (from, to) = (u32::try_from(place.start).ok()?, u32::try_from(place.end).ok()?);
        Some(Self { name: Arc::clone(name), from, to })
    }

    fn place(&self) -> Range<usize> {
        let at = |place: u32| usize::try_from(place).unwrap_or(usize::MAX);
        at(self.from)..at(self.to)
    }
}

// === impl Parts ===

impl Parts {
    pub(crate) fn of(page: Arc<Page>) -> Self {
        Self { page, at: 0 }
    }
}

impl Iterator for Parts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.at > self.page.entries.len() {
            return None;
        }
        let (range, size) = self.page.part(self.at);
        let mut part = Vec::with_capacity(size + 2);
        self.at = range.end;
        self.page.write(range, &mut part);
        if self.at == self.page.entries.len() {
            self.page.close(&mut part);
            self.at += 1;
        }
        Some(part.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn whole(page: &Page) -> String {
        let mut text = Vec::new();
        page.write_into(&mut text);
        assert_eq!(text.len(), page.len());
        let parts: Vec<Bytes> = Parts::of(Arc::new(page.clone())).collect();
        assert_eq!(parts.concat(), text, "in parts as at once");
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_member_is_added_to_the_items_that_lack_it_and_the_others_stay() {
        let mut page = Page::default();
        page.push(json(r#"{"name":"a","x": 1.00}"#), None);
        page.push(json(r#"{"name":"b", "m":0}"#), None);
        page.push(json(r#"{"name":"c", "x":1}"#), None);
        let members = |names: &[&str]| -> HashMap<String, Json> {
            names.iter().map(|name| ((*name).to_owned(), json(r#"{"y":2.0}"#))).collect()
        };
        assert_eq!(page.with_members("m", &members(&[])).map(|page| whole(&page)), None);
        let expected =
            r#"[{"name":"a","x":1.00,"m":{"y":2.0}},{"name":"b", "m":0},{"name":"c", "x":1}]"#;
        let shown = page.with_members("m", &members(&["a", "b", "other"]));
        assert_eq!(shown.map(|page| whole(&page)).as_deref(), Some(expected));
    }

    #[test]
    fn items_are_as_they_were_written_but_for_their_names() {
        let mut page = Page::default();
        assert_eq!(whole(&page), "[]");
        page.push(json(r#"{ "name" : "a", "x":1.00 }"#), None);
        assert_eq!(whole(&page), r#"[{ "name" : "a", "x":1.00 }]"#);
        let name: Arc<str> = "s__b".into();
        let shown = Some(("name", &name));
        page.push(json(r#"{"x":[1e2], "name" : "\u0062", "name":"c"}"#), shown);
        page.push(json(r#"{"name":""}"#), shown);
        page.push(json(r#"{"title":"name"}"#), shown);
        assert_eq!(
            whole(&page),
            r#"[{ "name" : "a", "x":1.00 },{"x":[1e2], "name" : "s__b", "name":"c"},{"name":"s__b"},{"title":"name"}]"#
        );
    }

    #[test]
    fn a_long_page_comes_in_parts_of_whole_items() {
        let mut page = Page::default();
        let item = json(&format!(r#"{{"name":"{}"}}"#, "x".repeat(10_000)));
        for _ in 0..50 {
            page.push(item.clone(), None);
        }
        page.push(json(&format!(r#""{}""#, "y".repeat(5 * PART))), None);
        assert_eq!(whole(&page).matches("name").count(), 50);
        let parts: Vec<Bytes> = Parts::of(Arc::new(page)).collect();
        assert_eq!(parts.len(), 8);
        assert!(parts.iter().take(7).all(|part| (PART..PART + 10_100).contains(&part.len())));
    }

    #[test]
    fn all_who_hold_a_page_hold_the_same_and_it_goes_with_them() {
        let mut page = Page::default();
        page.push(json("1"), None);
        let (first, second) = (page.whole(), page.whole());
        assert_eq!(first, "[1]");
        assert_eq!(first.as_ptr(), second.as_ptr());
        drop((first, second));
        assert!(page.whole.lock().unwrap().upgrade().is_none());
        assert_eq!(page.whole(), "[1]");
    }

    #[test]
    fn the_same_items_make_the_same_page() {
        let page = |texts: &[&str]| {
            let mut page = Page::default();
            for text in texts {
                page.push(json(text), None);
            }
            page
        };
        assert_eq!(page(&["1", "2"]), page(&["1", "2"]));
        for other in [&["1"][..], &["2", "1"], &["1", "2", "3"], &["1", "2.0"]] {
            assert_ne!(page(&["1", "2"]), page(other));
        }
        let mut named = Page::default();
        named.push(json(r#"{"name":"b"}"#), Some(("name", &"s__b".into())));
        assert_ne!(named, page(&[r#"{"name":"b"}"#]));
    }
}
