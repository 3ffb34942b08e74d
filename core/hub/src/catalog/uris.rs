//! The URIs of resources and templates of all servers, as clients see them.

use std::collections::HashMap;

use capstan_model::{ItemId, ServerName};

/// Prefix that makes the URI of a second resource with the same URI unique.
const MAPPED: &str = "capstan://";

/// The URIs in one list of all servers, each with the server and its own URI.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct UriMap(HashMap<String, ItemId>);

// === impl UriMap ===

impl UriMap {
    /// Adds a resource or template and returns the URI that clients see. It differs from the
    /// server's own URI if another server has the same one.
    pub fn add(&mut self, id: ItemId) -> String {
        let shown = if self.0.contains_key(&id.item) {
            format!("{MAPPED}{}/{}", id.server, id.item)
        } else {
            id.item.clone()
        };
        self.0.insert(shown.clone(), id);
        shown
    }

    /// The item with exactly this URI.
    pub(crate) fn get(&self, uri: &str) -> Option<&ItemId> {
        self.0.get(uri)
    }

    /// The server of the template that fits the URI best: the one with the longest fixed text.
    pub(crate) fn fitting(&self, uri: &str) -> Option<&ServerName> {
        let fitting = self.0.iter().filter_map(|(shown, id)| {
            let (prefix, suffix) = fixed_ends(shown)?;
            let fits = uri.len() > prefix.len() + suffix.len()
                && uri.starts_with(prefix)
                && uri.ends_with(suffix);
            fits.then_some((prefix.len() + suffix.len(), id))
        });
        let best = fitting.max_by(|(a, one), (b, other)| {
            let first = || (&other.server, &other.item).cmp(&(&one.server, &one.item));
            a.cmp(b).then_with(first)
        });
        best.map(|(_, id)| &id.server)
    }

    /// The servers in the list.
    pub(crate) fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.0.values().map(|id| &id.server)
    }
}

/// Reads the server and its own URI from a URI that was made unique.
pub(crate) fn mapped(uri: &str) -> Option<ItemId> {
    let (server, own) = uri.strip_prefix(MAPPED)?.split_once('/')?;
    Some(ItemId { server: server.parse().ok()?, item: own.to_owned() })
}

/// The fixed text before the first and after the last placeholder of a template.
fn fixed_ends(template: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = template.split_once('{')?;
    let (_, suffix) = rest.rsplit_once('}')?;
    Some((prefix, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(server: &str, uri: &str) -> ItemId {
        ItemId { server: server.parse().unwrap(), item: uri.to_owned() }
    }

    #[test]
    fn a_uri_that_two_servers_have_is_shown_twice_and_leads_to_both() {
        let mut uris = UriMap::default();
        assert_eq!(uris.add(id("a", "f://x")), "f://x");
        assert_eq!(uris.add(id("b", "f://x")), "capstan://b/f://x");
        assert_eq!(uris.get("f://x"), Some(&id("a", "f://x")));
        assert_eq!(uris.get("capstan://b/f://x"), Some(&id("b", "f://x")));
        assert_eq!(mapped("capstan://b/f://x"), Some(id("b", "f://x")));
        assert_eq!((mapped("f://x"), mapped("capstan://b")), (None, None));
    }

    #[test]
    fn the_template_with_the_longest_fixed_text_fits_best_and_then_the_first_server() {
        let mut uris = UriMap::default();
        for (server, uri) in
            [("b", "f://{x}"), ("a", "f://{y}"), ("c", "f://docs/{x}.md"), ("d", "g://plain")]
        {
            uris.add(id(server, uri));
        }
        let best = |uri| uris.fitting(uri).map(ServerName::as_str);
        assert_eq!(best("f://docs/a.md"), Some("c"));
        assert_eq!(best("f://other"), Some("a"));
        assert_eq!((best("f://"), best("g://plain")), (None, None));
    }
}
