//! Names of servers and of what they offer.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Separates server from item in the name a client sees: `linear__list_issues`.
pub const SEPARATOR: &str = "__";

/// Prefix that other programs put before every tool; accepted, and used if so configured.
pub const FOREIGN_PREFIX: &str = "mcp__";

/// Longest slug, in bytes.
const MAX_SLUG: usize = 32;

/// The slug of a server, by which rules, ids and commands name it.
///
/// Invariant: 1 to 32 of `a-z`, `0-9`, `-` and single `_`, the latter at neither end, so that an
/// [`ItemId`] can always be split back into its two halves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(Arc<str>);

/// Why a string is not a [`ServerName`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a server name: use 1 to 32 of a-z, 0-9, - and single _, not at its ends")]
pub struct BadServerName(String);

/// One tool, resource or prompt of one server; shown as `server__item`.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct ItemId {
    /// The server that answers.
    pub server: ServerName,
    /// The item's own name (or URI), as its server spells it.
    pub item: String,
}

/// How the items of a server are named towards clients and models.
///
/// It decides only the names that are offered. Rules use ids, and every id is accepted whatever the
/// naming of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Naming {
    /// `server__item`.
    #[default]
    Prefixed,
    /// `mcp__server__item`, as some clients use.
    Mcp,
    /// `item` for the server that comes first in the configuration, `server__item` for the others.
    Bare,
}

// === impl ServerName ===

impl ServerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Makes a slug out of any display name: lower case, other characters become `-`.
    ///
    /// `None` when nothing usable is left.
    pub fn from_display(display: &str) -> Option<Self> {
        let mut slug = String::new();
        for c in display.chars().flat_map(char::to_lowercase) {
            let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let repeats = slug.ends_with(c) && matches!(c, '_' | '-');
            if !repeats && slug.len() < MAX_SLUG {
                slug.push(c);
            }
        }
        let slug = slug.trim_matches(['-', '_']);
        slug.parse().ok()
    }
}

impl FromStr for ServerName {
    type Err = BadServerName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=MAX_SLUG).contains(&text.len()) && !text.contains(SEPARATOR);
        let clean = text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        let bare_ends = !text.starts_with('_') && !text.ends_with('_');
        if !(fits && clean && bare_ends) {
            return Err(BadServerName(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl serde::Serialize for ServerName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for ServerName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

// === impl ItemId ===

impl ItemId {
    /// Splits any spelling (`s__t`, `mcp__s__t`, `s:t`, `s.t`) among the `known` servers.
    ///
    /// Where several servers fit, the longest name wins, so that `git` never answers for
    /// `git_hub`. `None` when no known server fits or nothing follows its name.
    pub fn resolve<'a>(
        text: &str,
        known: impl IntoIterator<Item = &'a ServerName>,
    ) -> Option<Self> {
        let mut best: Option<Self> = None;
        for server in known {
            let Some(item) = after_server(text, server.as_str()) else { continue };
            let longer = best.as_ref().is_none_or(|b| b.server.0.len() < server.0.len());
            if longer {
                best = Some(Self { server: server.clone(), item: item.to_owned() });
            }
        }
        best
    }

    /// Every spelling of this id that a pattern may be written in, the canonical one first.
    pub fn spellings(&self) -> [String; 4] {
        let (server, item) = (&self.server, &self.item);
        [
            format!("{server}{SEPARATOR}{item}"),
            format!("{FOREIGN_PREFIX}{server}{SEPARATOR}{item}"),
            format!("{server}:{item}"),
            format!("{server}.{item}"),
        ]
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.server, self.item)
    }
}

/// Returns the rest of `text` after `server` and a separator.
fn after_server<'a>(text: &'a str, server: &str) -> Option<&'a str> {
    let split = |text: &'a str, separators: &[&str]| {
        let rest = text.strip_prefix(server)?;
        let item = separators.iter().find_map(|separator| rest.strip_prefix(separator))?;
        (!item.is_empty()).then_some(item)
    };
    let foreign = text.strip_prefix(FOREIGN_PREFIX).and_then(|rest| split(rest, &[SEPARATOR]));
    split(text, &[SEPARATOR, ":", "."]).or(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<ServerName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn every_spelling_of_an_id_names_the_same_item() {
        let known = names(&["linear"]);
        let id = ItemId::resolve("linear__list__issues", &known).unwrap();
        assert_eq!(id.item, "list__issues");
        for spelling in id.spellings() {
            assert_eq!(ItemId::resolve(&spelling, &known).as_ref(), Some(&id), "{spelling}");
        }
    }

    #[test]
    fn the_longest_known_server_answers() {
        let known = names(&["git", "git_hub"]);
        let id = ItemId::resolve("git_hub__x", &known).unwrap();
        assert_eq!((id.server.as_str(), id.item.as_str()), ("git_hub", "x"));
    }

    #[test]
    fn text_that_names_no_known_server_or_no_item_is_nobodys() {
        let known = names(&["linear"]);
        for text in ["", "linear", "linear__", "linear:", "other__x", "LINEAR__x", "linearx__y"] {
            assert_eq!(ItemId::resolve(text, &known), None, "{text:?}");
        }
    }

    #[test]
    fn names_that_could_not_be_split_back_are_refused() {
        for bad in ["", "two__halves", "a_", "_a", "Upper", "space here", "ü", &"x".repeat(33)] {
            assert!(bad.parse::<ServerName>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_display_name_becomes_a_slug() {
        let slug = |text| ServerName::from_display(text).map(|name| name.to_string());
        assert_eq!(slug("My Server"), Some("my-server".to_owned()));
        assert_eq!(slug("nodeServer"), Some("nodeserver".to_owned()));
        assert_eq!(slug("a__b"), Some("a_b".to_owned()));
        assert_eq!(slug("ü"), None);
        assert_eq!(slug(&"x".repeat(50)), Some("x".repeat(32)));
    }
}
