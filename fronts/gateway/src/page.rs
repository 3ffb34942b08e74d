//! One page of a list: items as their servers wrote them, some under another name.
//!
//! What servers wrote is there already, so that a page is only a list of pieces of it. It is put
//! together when it is sent, a part at a time.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use capstan_wire::{Json, object};

/// How much is put together at once, in bytes; one item more at the most.
const PART: usize = 64 * 1024;

/// One page, as an array.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    entries: Vec<Entry>,
    /// How long all of them are, without what stands between them.
    size: usize,
}

/// An item on it.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    text: Json,
    renamed: Option<Renamed>,
}

/// The name that an item is shown under.
#[derive(Clone, Debug, PartialEq)]
struct Renamed {
    /// Of characters that stand for themselves in JSON.
    name: Arc<str>,
    /// Where its own name stands in its text.
    from: u32,
    to: u32,
}

/// The parts of a page, in order.
#[derive(Debug)]
pub(crate) struct Parts {
    page: Arc<Page>,
    /// How many items are out; past the last one when all is.
    at: usize,
}

// === impl Page ===

impl Page {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        // Brackets around them, a comma between each two.
        self.size + self.entries.len().max(1) + 1
    }

    pub(crate) fn push(&mut self, text: Json) {
        self.add(Entry { text, renamed: None });
    }

    /// Adds an item under another name than its own, which stands at `key`. The name is of characters
    /// that stand for themselves; gives the item back where it has no name there.
    pub(crate) fn push_as(&mut self, text: Json, key: &str, name: &Arc<str>) -> Result<(), Json> {
        let place = object::place(&text, key).and_then(|place| {
            Some((u32::try_from(place.start).ok()?, u32::try_from(place.end).ok()?))
        });
        let Some((from, to)) = place else { return Err(text) };
        let renamed = Some(Renamed { name: Arc::clone(name), from, to });
        self.add(Entry { text, renamed });
        Ok(())
    }

    fn add(&mut self, entry: Entry) {
        self.size += entry.len();
        self.entries.push(entry);
    }

    /// Puts all of it behind what is there.
    pub(crate) fn write_into(&self, out: &mut Vec<u8>) {
        self.write(0..self.entries.len(), out);
        self.close(out);
    }

    /// Puts items behind what is there; where they end before the last, something is to follow.
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

    /// How many items from here on make a part.
    fn part(&self, at: usize) -> Range<usize> {
        let mut size = 0;
        let rest = self.entries.get(at..).unwrap_or_default().iter();
        let fitting = rest.take_while(|entry| {
            let fits = size < PART;
            size += entry.len();
            fits
        });
        at..at + fitting.count()
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
        let range = self.page.part(self.at);
        let sizes = self.page.entries.get(range.clone()).unwrap_or_default().iter().map(Entry::len);
        let mut part = Vec::with_capacity(sizes.sum::<usize>() + range.len() + 2);
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
    fn items_are_as_they_were_written_but_for_their_names() {
        let mut page = Page::default();
        assert_eq!(whole(&page), "[]");
        page.push(json(r#"{ "name" : "a", "x":1.00 }"#));
        assert_eq!(whole(&page), r#"[{ "name" : "a", "x":1.00 }]"#);
        let name: Arc<str> = "s__b".into();
        page.push_as(json(r#"{"x":[1e2], "name" : "\u0062", "name":"c"}"#), "name", &name).unwrap();
        page.push_as(json(r#"{"name":""}"#), "name", &name).unwrap();
        let expected = r#"[{ "name" : "a", "x":1.00 },{"x":[1e2], "name" : "s__b", "name":"c"},{"name":"s__b"}]"#;
        assert_eq!(whole(&page), expected);
        let nameless = json(r#"{"title":"name"}"#);
        assert_eq!(page.push_as(nameless.clone(), "name", &name), Err(nameless));
        assert_eq!(whole(&page), expected);
    }

    #[test]
    fn a_long_page_comes_in_parts_of_whole_items() {
        let mut page = Page::default();
        let item = json(&format!(r#"{{"name":"{}"}}"#, "x".repeat(10_000)));
        for _ in 0..50 {
            page.push(item.clone());
        }
        page.push(json(&format!(r#""{}""#, "y".repeat(5 * PART))));
        assert_eq!(whole(&page).matches("name").count(), 50);
        let parts: Vec<Bytes> = Parts::of(Arc::new(page)).collect();
        assert_eq!(parts.len(), 8);
        assert!(parts.iter().take(7).all(|part| (PART..PART + 10_100).contains(&part.len())));
    }

    #[test]
    fn the_same_items_make_the_same_page() {
        let page = |texts: &[&str]| {
            let mut page = Page::default();
            for text in texts {
                page.push(json(text));
            }
            page
        };
        assert_eq!(page(&["1", "2"]), page(&["1", "2"]));
        for other in [&["1"][..], &["2", "1"], &["1", "2", "3"], &["1", "2.0"]] {
            assert_ne!(page(&["1", "2"]), page(other));
        }
        let mut named = Page::default();
        let name: Arc<str> = "s__b".into();
        named.push_as(json(r#"{"name":"b"}"#), "name", &name).unwrap();
        assert_ne!(named, page(&[r#"{"name":"b"}"#]));
    }
}
