//! The saved identity and lists of a server, as a text with a checksum.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use capstan_wire::{Json, compose, object};
use sha2::{Digest as _, Sha256};

use crate::approvals::hex;
use crate::ports::{About, Item, Listing};

/// The first word of the text. Its number changes with the format.
const HEAD: &str = "capstan-manifest-1";

/// The maximum size of the text. Nothing is saved for a server that needs more.
const MAX_SIZE: usize = 8 * 1024 * 1024;

/// The saved identity and lists of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// The server's identity.
    pub about: Arc<About>,
    /// The lists that were read.
    pub lists: HashMap<Listing, Arc<[Item]>>,
}

/// A manifest as text. It is written as a stream and never held in memory as a whole, because it is
/// as large as all lists together.
pub(super) struct Text<'a> {
    manifest: &'a Manifest,
    /// The first line, with its line feed.
    head: String,
}

/// A writer that computes the digest and size of its input.
#[derive(Default)]
struct Sum {
    hash: Sha256,
    size: usize,
}

// === impl Manifest ===

impl Manifest {
    /// Returns the manifest as text; `None` if it would be too large.
    pub(super) fn to_text(&self) -> Option<Text<'_>> {
        let mut sum = Sum::default();
        self.write_body(&mut sum).ok()?;
        let head = head(&sum.hash.finalize());
        (head.len() + sum.size <= MAX_SIZE).then_some(Text { manifest: self, head })
    }

    fn write_body(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(b"{\"about\":")?;
        to.write_all(about_json(&self.about).as_bytes())?;
        let lists = Listing::ALL.into_iter().filter_map(|one| Some((one, self.lists.get(&one)?)));
        for (listing, items) in lists {
            write!(to, ",\"{}\":[", listing.member())?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    to.write_all(b",")?;
                }
                to.write_all(item.definition.as_bytes())?;
            }
            to.write_all(b"]")?;
        }
        to.write_all(b"}")
    }

    /// Reads a text; `None` if it is damaged or has another version.
    pub fn from_text(text: impl Into<Bytes>) -> Option<Self> {
        let mut body: Bytes = text.into();
        let size = body.len();
        let end = body.iter().position(|byte| *byte == b'\n')?;
        let head = body.split_to(end + 1);
        let sum = std::str::from_utf8(&head).ok()?.strip_prefix(HEAD)?.strip_prefix(' ')?;
        if size > MAX_SIZE || hex(&Sha256::digest(&body)) != sum.strip_suffix('\n')? {
            return None;
        }
        let body = Json::parse(body).ok()?;
        let about = Arc::new(about_of(&object::get(&body, "about")?));
        let mut lists = HashMap::new();
        let members = object::peek(&body, Listing::ALL.map(Listing::member));
        for (listing, list) in Listing::ALL.into_iter().zip(members) {
            let Some(list) = list else { continue };
            let items = object::items(&list).ok()?.into_iter();
            let items: Option<Vec<Item>> = items
                .map(|definition| {
                    let name = object::get_string(&definition, listing.name_key())?;
                    Some(Item { name, definition })
                })
                .collect();
            lists.insert(listing, items?.into());
        }
        Some(Self { about, lists })
    }
}

// === impl Text ===

impl Text<'_> {
    pub(super) fn write_to(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(self.head.as_bytes())?;
        self.manifest.write_body(to)
    }
}

// === impl Sum ===

impl Write for Sum {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.size += text.len();
        if self.size > MAX_SIZE {
            // The rest need not be hashed.
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.hash.update(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the first line, with its line feed.
fn head(sum: &[u8]) -> String {
    format!("{HEAD} {}\n", hex(sum))
}

fn about_json(about: &About) -> Json {
    // How long a description may be cached is of no use after a restart.
    let About { protocol, title, version, instructions, capabilities, info, caching: _ } = about;
    let texts = [
        ("protocol", Some(protocol)),
        ("title", title.as_ref()),
        ("version", version.as_ref()),
        ("instructions", instructions.as_ref()),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, compose::string(text?))));
    let texts: Vec<(&str, Json)> = texts.collect();
    let mut members: Vec<(&str, &Json)> = texts.iter().map(|(key, json)| (*key, json)).collect();
    members.extend(capabilities.as_ref().map(|json| ("capabilities", json)));
    members.extend(info.as_ref().map(|json| ("info", json)));
    compose::object(&members)
}

fn about_of(json: &Json) -> About {
    About {
        protocol: object::get_string(json, "protocol").unwrap_or_default(),
        title: object::get_string(json, "title"),
        version: object::get_string(json, "version"),
        instructions: object::get_string(json, "instructions"),
        capabilities: object::get(json, "capabilities"),
        info: object::get(json, "info"),
        caching: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let tool = Json::parse(r#"{"name":"a","x":1.00,"ü":[ 1e0 ]}"#).unwrap();
        let template = Json::parse(r#"{"uriTemplate":"f://{x}","name":"n"}"#).unwrap();
        let about = About {
            protocol: "2025-11-25".to_owned(),
            title: Some("T".to_owned()),
            instructions: Some("Be kind.\n".to_owned()),
            capabilities: Some(Json::parse(r#"{"tools":{ }}"#).unwrap()),
            info: Some(Json::parse(r#"{"name":"n", "x":1.0}"#).unwrap()),
            ..About::default()
        };
        let item = |name: &str, definition| Item { name: name.to_owned(), definition };
        let lists = [
            (Listing::Tools, [item("a", tool)].into()),
            (Listing::Prompts, [].into()),
            (Listing::Templates, [item("f://{x}", template)].into()),
        ];
        Manifest { about: Arc::new(about), lists: lists.into() }
    }

    fn text() -> Vec<u8> {
        let (manifest, mut text) = (manifest(), Vec::new());
        manifest.to_text().unwrap().write_to(&mut text).unwrap();
        text
    }

    #[test]
    fn what_is_remembered_comes_back_byte_by_byte() {
        assert_eq!(Manifest::from_text(text()), Some(manifest()));
        assert!(!manifest().lists.contains_key(&Listing::Resources));
    }

    #[test]
    fn a_text_that_is_not_whole_is_none() {
        let text = text();
        assert_eq!(Manifest::from_text(Bytes::new()), None);
        for at in 0..text.len() {
            assert_eq!(Manifest::from_text(text[..at].to_vec()), None, "cut at {at}");
            let mut bent = text.clone();
            bent[at] ^= 1;
            assert_eq!(Manifest::from_text(bent), None, "bent at {at}");
        }
    }

    #[test]
    fn too_much_is_not_remembered() {
        let definition = compose::object(&[("name", &compose::string(&"x".repeat(MAX_SIZE)))]);
        let item = Item { name: String::new(), definition };
        let lists = [(Listing::Tools, [item].into())];
        assert!(Manifest { lists: lists.into(), ..manifest() }.to_text().is_none());
    }
}
