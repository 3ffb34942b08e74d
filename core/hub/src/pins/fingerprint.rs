//! Fingerprints of definitions: they cover everything that a model or a rule reads.

use std::collections::HashSet;
use std::fmt::Write as _;

use capstan_wire::{Json, object};

use crate::approvals::{digest, digest_of};
use crate::ports::{Item, Listing, Pin};

/// The members of a definition that count. Icons and data for programs may change.
const MEMBERS: [&str; 5] = ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// Longest text of a definition that is kept for showing changes, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// Returns the pins of a list. If two tools have the same name, the first one counts, as
/// everywhere.
pub(crate) fn pins<'a, I>(items: I) -> impl Iterator<Item = Pin> + use<'a, I>
where
    I: IntoIterator<Item = &'a Item>,
{
    let mut names = HashSet::new();
    items.into_iter().filter(move |item| names.insert(item.name.as_str())).map(pin)
}

/// Returns the digest of a whole list, byte by byte. Equal digests mean equal definitions.
pub(super) fn sum(items: &[Item]) -> String {
    digest_of(items.iter().flat_map(|item| [item.name.as_str(), item.definition.as_str()]))
}

/// Returns the pin of an item: the fingerprint and the text that are approved.
pub(super) fn pin(item: &Item) -> Pin {
    let parts = object::peek(&item.definition, MEMBERS);
    let fingerprint = fingerprint_of(&item.definition, &parts);
    Pin { tool: item.name.clone(), fingerprint, text: text(&parts) }
}

fn fingerprint(definition: &Json) -> String {
    fingerprint_of(definition, &object::peek(definition, MEMBERS))
}

fn fingerprint_of(definition: &Json, parts: &[Option<Json>; 5]) -> String {
    let mut digests: Vec<String> =
        parts.iter().map(|part| part.as_ref().map(digest).unwrap_or_default()).collect();
    if parts.iter().all(Option::is_none) {
        // The definition may be unreadable; then all of it counts.
        digests.push(digest(definition));
    }
    digest_of(digests.iter().map(String::as_str))
}

/// True if two definitions of an item mean the same: everything that a model or a rule reads is
/// equal. The order of members and the spelling do not count. Of a tool, neither do members that
/// only programs read; of other items, everything counts.
pub(crate) fn means_the_same(listing: Listing, one: &Json, other: &Json) -> bool {
    if one == other {
        return true;
    }
    match listing {
        Listing::Tools => fingerprint(one) == fingerprint(other),
        Listing::Prompts | Listing::Resources | Listing::Templates => digest(one) == digest(other),
    }
}

/// Formats the members as readable text, with a line for each thing that can change.
fn text(parts: &[Option<Json>; 5]) -> String {
    let mut text = String::new();
    for (name, part) in MEMBERS.iter().zip(parts) {
        let Some(part) = part else { continue };
        let shown = match part.read::<String>() {
            Ok(plain) => plain,
            Err(_) => part
                .read::<serde_json::Value>()
                .ok()
                .and_then(|value| serde_json::to_string_pretty(&value).ok())
                .unwrap_or_else(|| part.as_str().to_owned()),
        };
        let _ = writeln!(text, "{name}:");
        for line in shown.lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    if text.len() > MAX_TEXT {
        let end = text.floor_char_boundary(MAX_TEXT);
        text.truncate(end);
        text.push_str("\n…\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(definition: &str) -> Pin {
        let definition = Json::parse(definition.to_owned()).unwrap();
        pin(&Item { name: "t".to_owned(), definition })
    }

    #[test]
    fn what_nobody_reads_does_not_count() {
        let plain = of(r#"{"name":"t","description":"d","inputSchema":{"type":"object"}}"#);
        for same in [
            r#"{"inputSchema":{"type":"object"},"description":"\u0064","name":"t"}"#,
            r#"{"name":"t","description":"d","inputSchema":{"type":"object"},"icons":[1],"_meta":{}}"#,
        ] {
            assert_eq!(of(same).fingerprint, plain.fingerprint, "{same}");
        }
    }

    #[test]
    fn whatever_a_model_or_a_rule_reads_counts() {
        let all = [
            r#"{"name":"t"}"#,
            r#"{"name":"t","description":"d"}"#,
            r#"{"name":"t","description":""}"#,
            r#"{"name":"t","title":"d"}"#,
            r#"{"name":"t","description":"d","inputSchema":{}}"#,
            r#"{"name":"t","description":"d","outputSchema":{}}"#,
            r#"{"name":"t","description":"d","annotations":{}}"#,
            r#"{"name":"t","description":"d","annotations":{"readOnlyHint":true}}"#,
            r#"{"name":"t","description":null}"#,
            r#"{"\ud800":1,"description":"d"}"#,
            r#"{"\ud800":1,"description":"e"}"#,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in all.iter().skip(at + 1) {
                assert_ne!(of(one).fingerprint, of(other).fingerprint, "{one} {other}");
            }
        }
    }

    #[test]
    fn a_person_reads_it_line_by_line() {
        let pin = of(r#"{"description":"two\nlines","inputSchema":{"type":"object"}}"#);
        assert_eq!(
            pin.text,
            "description:\n  two\n  lines\ninputSchema:\n  {\n    \"type\": \"object\"\n  }\n"
        );
        let long = of(&format!(r#"{{"description":"{}"}}"#, "é".repeat(MAX_TEXT)));
        assert!(long.text.len() < MAX_TEXT + 10);
    }
}
