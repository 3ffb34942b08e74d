//! Scans every text of a definition: its name, descriptions, and each key and string in schemas.

use std::collections::BTreeSet;

use serde_json::Value;

use super::words::{INSTEAD, MUST, USE, WHEN};
use super::{About, Class, Finding, Severity, Surface, scan_about};

/// A finding and the place of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The JSON pointer to the string, or to the member whose key it is.
    pub place: String,
    /// The text, which the finding's span belongs to.
    pub text: String,
    /// The finding.
    pub finding: Finding,
}

/// Most strings of a definition that are scanned.
const MAX_STRINGS: usize = 10_000;

/// Shortest text that can be a finding.
const SHORTEST: usize = 4;

/// A tool of another server.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// Its server.
    pub server: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
}

/// Share of equal words from which two descriptions are the same, in percent.
const SAME: usize = 60;

/// Shortest name of another server's tool that a text can mention by chance.
const SHORTEST_NAME: usize = 6;

/// Scans a definition beside tools of other servers: it must not pose as one of them, or tell how
/// they are used.
pub fn scan_among(definition: &Value, peers: &[Peer<'_>]) -> Vec<Located> {
    let mut found = scan_definition(definition);
    let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
    let (name, description) = (text("name"), text("description"));
    for peer in peers {
        let severity = if poses(name, description, peer) || has_order(description, peer.name) {
            Severity::Medium
        } else {
            continue;
        };
        let (place, whole) = ("/description".to_owned(), 0..description.len());
        let finding = Finding::new(description, Class::CrossServer, severity, whole);
        found.push(Located { place, text: description.to_owned(), finding });
    }
    found
}

/// True if a tool has the name and the description of another server's tool.
fn poses(name: &str, description: &str, peer: &Peer<'_>) -> bool {
    let plain = |name: &str| name.to_lowercase().replace(['-', '.'], "_");
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
        words.map(str::to_lowercase).collect()
    };
    let (own, other) = (words(description), words(peer.description));
    let (same, all) = (own.intersection(&other).count(), own.union(&other).count());
    plain(name) == plain(peer.name) && all > 0 && same * 100 >= all * SAME
}

/// True if a description mentions a tool by its name, in a sentence that gives an order.
fn has_order(description: &str, name: &str) -> bool {
    if name.len() < SHORTEST_NAME || !name.contains(['_', '-']) || !description.contains(name) {
        return false;
    }
    super::sentence::sentences(description, "").iter().any(|sentence| {
        let text = description.get(sentence.span.clone()).unwrap_or_default();
        let has = |group| sentence.words.iter().any(|word| word.groups.has(group));
        text.contains(name) && has(USE | INSTEAD) && has(MUST | WHEN | INSTEAD)
    })
}

/// Scans a definition.
pub fn scan_definition(definition: &Value) -> Vec<Located> {
    let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut walk = Walk { name, found: Vec::new(), left: MAX_STRINGS };
    walk.value(definition, "");
    walk.found
}

struct Walk<'a> {
    name: &'a str,
    found: Vec<Located>,
    left: usize,
}

// === impl Walk ===

impl Walk<'_> {
    fn value(&mut self, value: &Value, place: &str) {
        match value {
            Value::String(text) => self.text(text, place),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(item, &format!("{place}/{at}"));
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    let place = format!("{place}/{}", key.replace('~', "~0").replace('/', "~1"));
                    self.text(key, &place);
                    self.value(value, &place);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, place: &str) {
        let is_word = || text.bytes().all(|byte| byte.is_ascii_lowercase());
        if text.len() < SHORTEST || self.left == 0 || is_word() {
            return;
        }
        self.left -= 1;
        let found = scan_about(text, About { surface: Surface::Definition, name: self.name });
        let located = |finding| Located { place: place.to_owned(), text: text.to_owned(), finding };
        self.found.extend(found.into_iter().map(located));
    }
}
