//! The pages of a long answer.
//!
//! They are pages of its texts. If these fit into a page and something else is long, they are pages
//! of the whole answer as JSON. Images and other bytes do not count, and stay with the first page.

use std::ops::Range;

use capstan_model::{Binding, Caller, Front, Kind};
use capstan_wire::{Json, compose, object};

use super::{BYTES_PER_TOKEN, MAX_AGE, address};
use crate::ports::{SavedAnswer, StoreError};

/// The largest page, in bytes.
const MAX_PAGE: usize = 1 << 40;

/// An answer, split into pages.
pub(crate) struct Pages<'a> {
    answer: &'a Json,
    text: String,
    /// The blocks without text, which stay with the first page.
    media: Vec<Json>,
    /// The size of a page, in bytes.
    size: usize,
}

/// True if the texts and structures of an answer have more than this many bytes.
pub(crate) fn exceeds(answer: &Json, bytes: usize) -> bool {
    if answer.len() <= bytes {
        return false;
    }
    let media: usize = blocks(answer).iter().filter_map(media_bytes).sum();
    answer.len().saturating_sub(media) > bytes
}

// === impl Pages ===

impl<'a> Pages<'a> {
    /// Splits an answer into pages of this many bytes.
    pub(crate) fn of(answer: &'a Json, size: usize) -> Self {
        let size = size.clamp(1, MAX_PAGE);
        let (mut texts, mut media) = (Vec::new(), Vec::new());
        for block in blocks(answer) {
            match text_of(&block) {
                Some(text) => texts.push(text),
                None => media.push(block),
            }
        }
        let mut text = texts.join("\n");
        if text.len() <= size {
            answer.as_str().clone_into(&mut text);
            media.clear();
        }
        Self { answer, text, media, size }
    }

    fn count(&self) -> usize {
        places(&self.text, self.size).count()
    }

    /// Returns a page by its number, which counts from one.
    fn get(&self, number: usize) -> Option<&str> {
        self.text.get(places(&self.text, self.size).nth(number.checked_sub(1)?)?)
    }

    /// Returns a page as the result of reading its address; `None` if there is no such page.
    pub(crate) fn read(&self, id: &str, number: usize) -> Option<Json> {
        let content = content(&address(id, number), "text/plain", self.get(number)?);
        let contents = compose::array(&[content]);
        Some(compose::object(&[("contents", &contents), ("_meta", &self.meta(id, number, None))]))
    }

    /// Returns the answer with its first page in place of its texts, and a note on how to read on.
    pub(crate) fn first(
        &self,
        kind: Kind,
        caller: &Caller,
        saved: Result<&SavedAnswer, &StoreError>,
    ) -> Json {
        let page = self.get(1).unwrap_or_default();
        let (note, next) = (self.note(caller, saved), saved.map(|saved| address(&saved.id, 2)));
        let (key, list) = match kind {
            Kind::Tool => {
                let mut list = vec![text_block(page), text_block(&note)];
                list.extend(self.media.iter().cloned());
                ("content", list)
            }
            Kind::Resource => {
                let first = blocks(self.answer).into_iter().next();
                let member = |key| first.as_ref().and_then(|first| object::get_string(first, key));
                let (uri, mime) = (member("uri"), member("mimeType"));
                let uri = uri.unwrap_or_default();
                let mime = mime.unwrap_or_else(|| "text/plain".to_owned());
                let at = next.unwrap_or_else(|_| uri.clone());
                let mut list = vec![content(&uri, &mime, page), content(&at, "text/plain", &note)];
                list.extend(self.media.iter().cloned());
                ("contents", list)
            }
            Kind::Prompt => {
                let mut list = self.first_messages(page);
                list.push(message(&compose::string("user"), &text_block(&note)));
                ("messages", list)
            }
        };
        let list = compose::array(&list);
        let keys = ["isError", "resultType", "structuredContent"];
        let small = object::peek(self.answer, keys).map(|it| it.filter(|it| it.len() <= self.size));
        let meta = match saved {
            Ok(SavedAnswer { id, file }) => Some(self.meta(id, 1, shown(caller).then_some(file))),
            Err(_) => None,
        };
        let mut members = vec![(key, &list)];
        let kept = keys.into_iter().zip(&small);
        members.extend(kept.filter_map(|(key, value)| Some((key, value.as_ref()?))));
        members.extend(meta.as_ref().map(|meta| ("_meta", meta)));
        compose::object(&members)
    }

    /// Returns the messages of a prompt as far as the first page goes, with their roles and images.
    fn first_messages(&self, page: &str) -> Vec<Json> {
        if self.text == self.answer.as_str() {
            return vec![message(&compose::string("user"), &text_block(page))];
        }
        let mut list = Vec::new();
        let mut left = page;
        for one in object::get(self.answer, "messages").map(|list| items(&list)).unwrap_or_default()
        {
            let role = object::get(&one, "role").unwrap_or_else(|| compose::string("user"));
            for block in
                object::get(&one, "content").map(|content| items(&content)).unwrap_or_default()
            {
                match text_of(&block) {
                    None => list.push(message(&role, &block)),
                    Some(_) if left.is_empty() => {}
                    Some(text) => {
                        let rest = left.strip_prefix(&text);
                        let shown = if rest.is_some() { block } else { text_block(left) };
                        list.push(message(&role, &shown));
                        // The texts are joined by line breaks.
                        left = rest.map_or("", |rest| rest.strip_prefix('\n').unwrap_or(rest));
                    }
                }
            }
        }
        list
    }

    fn note(&self, caller: &Caller, saved: Result<&SavedAnswer, &StoreError>) -> String {
        let (pages, tokens) = (self.count(), self.text.len() / BYTES_PER_TOKEN);
        let begin =
            format!("[capstan: this is page 1 of {pages} of an answer with about {tokens} tokens");
        match saved {
            Err(error) => format!("{begin}; the rest could not be kept: {error}]"),
            Ok(SavedAnswer { id, file }) => {
                let (next, hours) = (address(id, 2), MAX_AGE.as_secs() / 3600);
                // Pages belong to the front that called, so the command works for one only.
                let command = match caller.front {
                    Front::Cli | Front::Terminal => format!(" (`capstan read '{next}'`)"),
                    Front::Gateway => String::new(),
                };
                let here = shown(caller).then(|| format!(", or all of it from {file}"));
                let here = command + &here.unwrap_or_default();
                format!("{begin}; within {hours} hours, read on from the resource {next}{here}]")
            }
        }
    }

    /// Describes a page for programs.
    fn meta(&self, id: &str, number: usize, file: Option<&String>) -> Json {
        let count = |count: usize| compose::number(u64::try_from(count).unwrap_or(u64::MAX));
        let (page, pages) = (count(number), count(self.count()));
        let next = (number < self.count()).then(|| compose::string(&address(id, number + 1)));
        let file = file.map(|file| compose::string(file));
        let mut members = vec![("page", &page), ("pages", &pages)];
        members.extend(next.as_ref().map(|next| ("next", next)));
        members.extend(file.as_ref().map(|file| ("file", file)));
        compose::object(&[(PAGE_KEY, &compose::object(&members))])
    }
}

/// The member of `_meta` that describes a page: `page`, `pages`, and where they apply `next` and
/// `file`.
pub(crate) const PAGE_KEY: &str = "capstan/page";

/// Splits a text into pages of about this many bytes; at the end of a line, if one is near.
fn places(text: &str, size: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let most = start + size;
        // Rounded up, so that a character that is larger than a page makes one.
        let mut end = text.ceil_char_boundary(most);
        if end < text.len()
            && let Some(line) = text.get(start..end)?.rfind('\n')
            && line > size / 2
        {
            end = start + line + 1;
        }
        let place = start..end;
        start = end;
        (!place.is_empty()).then_some(place)
    })
}

/// True if the caller works on this machine, where the file is.
fn shown(caller: &Caller) -> bool {
    caller.binding == Binding::Free
}

/// The blocks of a result: of a tool, a resource or a prompt.
fn blocks(answer: &Json) -> Vec<Json> {
    let list = |key| object::get(answer, key).and_then(|list| object::items(&list).ok());
    if let Some(blocks) = list("content").or_else(|| list("contents")) {
        return blocks;
    }
    let content = |message: Json| Some(items(&object::get(&message, "content")?));
    list("messages").unwrap_or_default().into_iter().filter_map(content).flatten().collect()
}

/// The items of a list; a value that is no list is its only item.
fn items(list: &Json) -> Vec<Json> {
    object::items(list).unwrap_or_else(|_| vec![list.clone()])
}

fn text_of(block: &Json) -> Option<String> {
    let embedded = || object::get_string(&object::get(block, "resource")?, "text");
    object::get_string(block, "text").or_else(embedded)
}

/// The size of the bytes in a block, which no reader gets as text.
fn media_bytes(block: &Json) -> Option<usize> {
    let embedded = || object::at_path(block, "resource.blob");
    let bytes = object::get(block, "data").or_else(|| object::get(block, "blob"));
    bytes.or_else(embedded).map(|bytes| bytes.len())
}

fn message(role: &Json, content: &Json) -> Json {
    compose::object(&[("role", role), ("content", content)])
}

fn text_block(text: &str) -> Json {
    compose::object(&[("type", &compose::string("text")), ("text", &compose::string(text))])
}

fn content(uri: &str, mime: &str, text: &str) -> Json {
    let [uri, mime, text] = [uri, mime, text].map(compose::string);
    compose::object(&[("uri", &uri), ("mimeType", &mime), ("text", &text)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text.to_owned()).unwrap()
    }

    fn tool(text: &str, more: &str) -> Json {
        json(&format!(r#"{{"content":[{}{more}]}}"#, text_block(text).as_str()))
    }

    /// All pages of an answer.
    fn pages(answer: &Json, size: usize) -> Vec<String> {
        let pages = Pages::of(answer, size);
        let all = (1..).map_while(|number| pages.get(number).map(ToOwned::to_owned)).collect();
        assert_eq!(pages.count(), Vec::len(&all));
        assert!(pages.get(0).is_none() && pages.read("i", 0).is_none());
        assert!(pages.get(usize::MAX).is_none());
        all
    }

    #[test]
    fn the_pages_of_a_text_are_the_text() {
        let text = "häßlich €uro 🦀 text\n".repeat(40);
        for size in [1, 2, 3, 7, 64, 1000] {
            assert_eq!(pages(&tool(&text, ""), size).concat(), text, "{size}");
        }
        let two = tool("one", r#",{"type":"text","text":"two"}"#);
        assert_eq!(pages(&two, 4), ["one\n", "two"]);
        let prompt = json(
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"abcdef"}},
                {"role":"user","content":[{"type":"text","text":"gh"}]}]}"#,
        );
        assert_eq!(pages(&prompt, 4), ["abcd", "ef\ng", "h"]);
        assert_eq!(pages(&tool("one two\nthree four", ""), 10), ["one two\n", "three four"]);
        let resource = json(r#"{"contents":[{"uri":"x:","text":"abcdef"}]}"#);
        assert_eq!(pages(&resource, 4), ["abcd", "ef"]);
    }

    #[test]
    fn an_answer_whose_text_is_short_is_paged_as_json() {
        let answer =
            json(r#"{"content":[{"type":"text","text":"ok"}],"structuredContent":{"a":1}}"#);
        assert_eq!(pages(&answer, 30).concat(), answer.as_str());
    }

    #[test]
    fn bytes_of_images_do_not_count() {
        let data = "A".repeat(5000);
        let image = format!(r#",{{"type":"image","mimeType":"image/png","data":"{data}"}}"#);
        let blob = format!(r#",{{"type":"resource","resource":{{"uri":"x:","blob":"{data}"}}}}"#);
        for media in [&image, &blob] {
            assert!(!exceeds(&tool("short", media), 400), "{media}");
            assert!(exceeds(&tool(&"long ".repeat(100), media), 400), "{media}");
        }
        assert!(exceeds(&json(&format!(r#"{{"structuredContent":"{data}"}}"#)), 400));
        assert!(!exceeds(&json(r#"{"content":[]}"#), 400));
    }

    #[test]
    fn the_first_page_takes_the_place_of_the_texts_and_says_how_to_read_on() {
        let image = r#",{"type":"image","mimeType":"image/png","data":"AAAA"}"#;
        let answer = tool("abcdefgh", image);
        let answer = object::with_member(&answer, "isError", &compose::truth()).unwrap();
        let saved = SavedAnswer { id: "k1".to_owned(), file: "/s/k1".to_owned() };
        let pages = Pages::of(&answer, 4);
        let here = pages.first(Kind::Tool, &Caller::operator(Front::Cli), Ok(&saved));
        let texts: Vec<_> = blocks(&here).iter().map(text_of).collect();
        let note = texts[1].as_deref().unwrap();
        assert_eq!((texts[0].as_deref(), &texts[2]), (Some("abcd"), &None));
        assert!(
            note.contains("page 1 of 2")
                && note.contains("`capstan read 'capstan://answers/k1?page=2'`"),
            "{note}"
        );
        assert!(note.contains("/s/k1") && here.as_str().contains(r#""file":"/s/k1""#), "{here:?}");
        assert!(here.as_str().contains(r#""isError":true"#));
        let there = pages.first(Kind::Tool, &Caller::remote("ann", Vec::new()), Ok(&saved));
        assert!(!there.as_str().contains("/s/k1"), "no path of this machine: {there:?}");
        let local = pages.first(Kind::Tool, &Caller::operator(Front::Gateway), Ok(&saved));
        let text = local.as_str();
        assert!(text.contains("/s/k1") && !text.contains("capstan read"), "{local:?}");
        let lost = StoreError { what: "no space".to_owned(), cause: None };
        let lost = pages.first(Kind::Tool, &Caller::operator(Front::Cli), Err(&lost));
        assert!(lost.as_str().contains("could not be kept: no space"), "{lost:?}");
    }
    #[test]
    fn a_prompt_keeps_its_roles_and_images_on_the_first_page() {
        let answer = json(
            r#"{"messages":[{"role":"assistant","content":{"type":"text","text":"abcd","x":1}},
                {"role":"user","content":{"type":"image","mimeType":"image/png","data":"AAAA"}},
                {"role":"user","content":{"type":"text","text":"efghijkl"}},
                {"role":"assistant","content":{"type":"text","text":"later"}}]}"#,
        );
        let saved = SavedAnswer { id: "k1".to_owned(), file: "/s/k1".to_owned() };
        let caller = Caller::operator(Front::Cli);
        let first = Pages::of(&answer, 9).first(Kind::Prompt, &caller, Ok(&saved));
        let messages = items(&object::get(&first, "messages").unwrap());
        let [one, image, two, note] = messages.as_slice() else { panic!("{first:?}") };
        assert_eq!(
            one.as_str(),
            r#"{"role":"assistant","content":{"type":"text","text":"abcd","x":1}}"#
        );
        assert!(image.as_str().contains("AAAA"), "{image:?}");
        assert_eq!(two.as_str(), r#"{"role":"user","content":{"type":"text","text":"efgh"}}"#);
        assert!(note.as_str().contains("page 1 of"), "{note:?}");
    }
}
