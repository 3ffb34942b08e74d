//! Decides which of a server's tools are offered at all.

use std::collections::{HashMap, HashSet};

use capstan_model::Trust;

use crate::glob::Glob;
use crate::pattern::BadPattern;

/// The tools of one server that are offered.
#[derive(Clone, Debug, Default)]
pub struct Exposure {
    /// Offers only these; `None` means all.
    expose: Option<List>,
    /// Hides these, even if `expose` lists them.
    hide: List,
    /// Hides these as well; each has its own key in the configuration.
    hidden: HashSet<String>,
}

/// The answer of `Exposure::of`, with the line of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    /// No line hides it.
    Yes,
    /// This line hides it.
    No(String),
}

/// A list of patterns. Plain names are in a hash map, as there may be hundreds.
#[derive(Clone, Debug, Default)]
struct List {
    all: Vec<Glob>,
    /// Position of each plain name.
    names: HashMap<String, usize>,
    /// Positions of the other patterns.
    others: Vec<usize>,
}

// === impl Exposure ===

impl Exposure {
    /// Parses the two lists of a server.
    pub fn new(expose: Option<&[String]>, hide: &[String]) -> Result<Self, BadPattern> {
        let expose = expose.map(List::new).transpose()?;
        Ok(Self { expose, hide: List::new(hide)?, hidden: HashSet::new() })
    }

    /// Adds tools that are hidden by their own keys.
    #[must_use]
    pub fn without(self, hidden: impl IntoIterator<Item = String>) -> Self {
        Self { hidden: hidden.into_iter().collect(), ..self }
    }

    /// Checks if the tool with these spellings is offered, by a server with this trust.
    pub fn of(&self, names: &[String], trust: Trust) -> Offered {
        if let hidden @ Offered::No(_) = self.hides(names) {
            return hidden;
        }
        match (&self.expose, trust) {
            (Some(patterns), _) if patterns.find(names).is_some() => Offered::Yes,
            (Some(_), _) => Offered::No("expose: it is not listed".to_owned()),
            (None, Trust::Sandboxed) => {
                Offered::No("trust: sandboxed, and there is no `expose` list".to_owned())
            }
            (None, Trust::Trusted | Trust::Untrusted) => Offered::Yes,
        }
    }

    /// Checks if a line hides the tool with these spellings.
    pub(crate) fn hides(&self, names: &[String]) -> Offered {
        match self.hide.find(names) {
            Some(hidden) => Offered::No(format!("hide: {}", hidden.as_str())),
            None => match names.iter().find(|name| self.hidden.contains(*name)) {
                Some(name) => Offered::No(format!("tools.{name}.hidden")),
                None => Offered::Yes,
            },
        }
    }

    /// True if there is an `expose` list.
    pub fn has_list(&self) -> bool {
        self.expose.is_some()
    }
}

// === impl List ===

impl List {
    fn new(patterns: &[String]) -> Result<Self, BadPattern> {
        let mut list = Self::default();
        for (at, text) in patterns.iter().enumerate() {
            let glob = Glob::parse(text)?;
            match glob.exact() {
                Some(name) => {
                    list.names.entry(name.to_owned()).or_insert(at);
                }
                None => list.others.push(at),
            }
            list.all.push(glob);
        }
        Ok(list)
    }

    /// The first pattern that matches one of these names.
    fn find(&self, names: &[String]) -> Option<&Glob> {
        if self.all.is_empty() {
            return None;
        }
        let exact = names.iter().filter_map(|name| self.names.get(name).copied()).min();
        let means = |at: &&usize| {
            let glob = self.all.get(**at);
            glob.is_some_and(|glob| names.iter().any(|name| glob.is_match(name)))
        };
        let other = self.others.iter().find(means).copied();
        let first = exact.into_iter().chain(other).min()?;
        self.all.get(first)
    }
}

#[cfg(test)]
mod tests {
    use capstan_model::ItemId;

    use super::*;
    use crate::pattern::spellings;

    fn offered(expose: Option<&[&str]>, hide: &[&str], trust: Trust, tool: &str) -> bool {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expose = expose.map(own);
        let exposure = Exposure::new(expose.as_deref(), &own(hide)).unwrap();
        let id = ItemId { server: "files".parse().unwrap(), item: tool.to_owned() };
        exposure.of(&spellings(&id, "Files"), trust) == Offered::Yes
    }

    #[test]
    fn the_lists_know_a_tool_in_any_spelling() {
        let spelt = [
            "drop",
            "files__drop",
            "mcp__files__d*",
            "files:drop",
            "files.drop",
            "Files__drop",
            "Files:drop",
        ];
        for pattern in spelt {
            assert!(!offered(None, &[pattern], Trust::Trusted, "drop"), "{pattern}");
            assert!(offered(None, &[pattern], Trust::Trusted, "read"), "{pattern}");
            assert!(!offered(Some(&[pattern]), &[], Trust::Sandboxed, "read"), "{pattern}");
            assert!(offered(Some(&[pattern]), &[], Trust::Sandboxed, "drop"), "{pattern}");
        }
        assert!(!offered(Some(&["other__drop"]), &[], Trust::Trusted, "drop"));
    }

    #[test]
    fn without_lists_everything_is_offered() {
        assert!(offered(None, &[], Trust::Untrusted, "a"));
        assert!(offered(None, &[], Trust::Trusted, "a"));
    }

    #[test]
    fn hide_wins_over_expose() {
        let (expose, hide) = (Some(&["read_*", "drop"][..]), &["read_secret", "drop"][..]);
        assert!(offered(expose, hide, Trust::Trusted, "read_file"));
        assert!(!offered(expose, hide, Trust::Trusted, "read_secret"));
        assert!(!offered(expose, hide, Trust::Trusted, "drop"));
        assert!(!offered(expose, hide, Trust::Trusted, "write_file"));
    }

    #[test]
    fn a_sandboxed_server_offers_only_what_is_listed() {
        assert!(offered(Some(&["a"]), &[], Trust::Sandboxed, "a"));
        assert!(!offered(Some(&["a"]), &[], Trust::Sandboxed, "b"));
        assert!(!offered(Some(&[]), &[], Trust::Sandboxed, "a"));
        assert!(!offered(None, &[], Trust::Sandboxed, "a"));
    }

    #[test]
    fn an_empty_list_offers_nothing() {
        assert!(!offered(Some(&[]), &[], Trust::Trusted, "a"));
    }
}
