//! Infers the tags of an item from its name, its annotations, its arguments and its server.
//!
//! Annotations of a server that is not trusted can add tags and never remove any.

use capstan_model::{Effect, Kind, Trust};
use capstan_wire::{Json, object};

use super::words::{ADDRESS, CREATES, PRIVATE, PUBLISHED, SENDS, SHELL, STRANGERS, WEB};
use super::{Place, Tag, TaggedItem, Tags};
use crate::effect::{WordList, name_words};

/// The words that describe an item.
struct Words {
    own: Vec<String>,
    server: Vec<String>,
}

/// The tags of an item, without the operator's lists.
pub(super) fn infer(item: &TaggedItem<'_>, server: &str, place: Place) -> Tags {
    let words = Words { own: name_words(&item.id.item), server: name_words(server) };
    match item.kind {
        Kind::Tool => tool(item, &words, place),
        Kind::Resource => resource(&item.id.item, &words),
        // A prompt is a text of the server itself, which the scanner reads.
        Kind::Prompt => Tags::NONE,
    }
}

fn tool(item: &TaggedItem<'_>, words: &Words, place: Place) -> Tags {
    let mut tags = Tags::NONE;
    let writes = item.effect == Effect::Write;
    let reads = item.effect == Effect::Read;
    let is_web = words.has(&WEB);
    let open_world = open_world(item.definition);
    if is_web || (!writes && words.has(&STRANGERS)) || (!writes && open_world == Some(true)) {
        tags = tags.with(Tag::Untrusted);
    }
    if !writes && words.has(&PRIVATE) {
        tags = tags.with(Tag::Private);
    }
    let says_so = words.own_has(&SENDS) && !reads;
    let publishes = words.own_has(&CREATES) && words.own_has(&PUBLISHED);
    let goes_out = !reads && (place == Place::Elsewhere || open_world == Some(true));
    let has_address = takes_address(item.definition);
    if words.own_has(&SHELL) && !reads {
        tags = tags.with(Tag::Sends).with(Tag::Private);
    } else if says_so || publishes {
        tags = tags.with(Tag::Sends);
    } else if is_web && has_address {
        // A browser: where it goes is an address, also if its effect is not known.
        tags = tags.with(Tag::Addresses);
    } else if goes_out {
        tags = tags.with(Tag::Sends);
    } else if has_address && !writes {
        tags = tags.with(Tag::Addresses);
    }
    if open_world == Some(false) && item.trust == Trust::Trusted {
        tags = tags.without(Tag::Untrusted).without(Tag::Sends).without(Tag::Addresses);
    }
    tags
}

fn resource(uri: &str, words: &Words) -> Tags {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let scheme = scheme.as_deref().unwrap_or_default();
    let mut tags = Tags::NONE;
    if matches!(scheme, "http" | "https" | "ftp") || words.has(&STRANGERS) {
        tags = tags.with(Tag::Untrusted);
    }
    if scheme == "file" || words.has(&PRIVATE) {
        tags = tags.with(Tag::Private);
    }
    tags
}

/// The annotation `openWorldHint`, if the tool has one.
fn open_world(definition: &Json) -> Option<bool> {
    let annotations = object::get(definition, "annotations")?;
    object::get(&annotations, "openWorldHint")?.read().ok()
}

/// True if one of the arguments is an address.
fn takes_address(definition: &Json) -> bool {
    let schema = object::get(definition, "inputSchema");
    let properties = schema.and_then(|schema| object::get(&schema, "properties"));
    let properties: Option<serde_json::Map<String, serde_json::Value>> =
        properties.and_then(|properties| properties.read().ok());
    properties.into_iter().flatten().any(|(name, schema)| {
        let is_uri = schema.get("format").and_then(serde_json::Value::as_str) == Some("uri");
        is_uri || name_words(&name).iter().any(|word| ADDRESS.has(word))
    })
}

// === impl Words ===

impl Words {
    fn own_has(&self, list: &WordList) -> bool {
        self.own.iter().any(|word| list.has(word))
    }

    fn has(&self, list: &WordList) -> bool {
        self.own_has(list) || self.server.iter().any(|word| list.has(word))
    }
}
