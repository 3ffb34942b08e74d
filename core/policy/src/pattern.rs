//! Patterns over tools, with matchers over their arguments.
//!
//! ```text
//! linear__delete_*                      any spelling of an id: s__t, mcp__s__t, s:t, s.t
//! delete_*                              the bare name of a tool, whatever the server
//! mcp__gh__create_issue:repo=acme/*     and its arguments; several are joined by commas
//! Elicit(linear)                        not a tool: the server's questions to the operator
//! ```

use capstan_model::ItemId;
use capstan_wire::{Json, object};
use globset::{Glob, GlobMatcher};

/// One pattern of a rule.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    what: What,
}

/// Why a text is no pattern.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadPattern {
    /// Nothing to match.
    #[error("the pattern is empty")]
    Empty,
    /// The glob in it is malformed.
    #[error("`{0}` is not a glob pattern")]
    Glob(String, #[source] globset::Error),
    /// An argument matcher is not `key=glob`.
    #[error("`{0}` is not an argument matcher; write `key=pattern`")]
    Matcher(String),
}

/// What a call's arguments are when a pattern looks at them.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'a> {
    /// These.
    These(&'a Json),
    /// Not known yet, as when tools are listed. A matcher over arguments never matches, so that a
    /// rule which denies some of them hides nothing.
    Unknown,
    /// Those that suit the rule best: a matcher over arguments always matches.
    Fitting,
}

#[derive(Clone, Debug)]
enum What {
    Item { name: GlobMatcher, arguments: Vec<(String, GlobMatcher)> },
    Elicit(GlobMatcher),
}

// === impl Pattern ===

impl Pattern {
    /// Reads a pattern as an operator wrote it.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(BadPattern::Empty);
        }
        let elicit = trimmed.strip_prefix("Elicit(").and_then(|rest| rest.strip_suffix(')'));
        let what = match elicit {
            Some(server) => What::Elicit(glob(server)?),
            None => item(trimmed)?,
        };
        Ok(Self { text: text.to_owned(), what })
    }

    /// The pattern as the operator wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a call of one of `names` with these arguments is meant.
    ///
    /// `names` are the spellings of one and the same item.
    pub fn matches(&self, names: &[String], arguments: Arguments<'_>) -> bool {
        match &self.what {
            What::Elicit(_) => false,
            What::Item { name, arguments: matchers } => {
                names.iter().any(|spelling| name.is_match(spelling))
                    && matchers.iter().all(|(key, glob)| argument_matches(arguments, key, glob))
            }
        }
    }

    /// Whether the questions of this server are meant.
    pub fn matches_elicitation(&self, server: &str) -> bool {
        match &self.what {
            What::Elicit(glob) => glob.is_match(server),
            What::Item { .. } => false,
        }
    }
}

/// Every name that a pattern may call `id`: its spellings under both names of its server, and the
/// bare name of the item.
pub fn spellings(id: &ItemId, display: &str) -> Vec<String> {
    let mut names: Vec<String> = id.spellings().into();
    if display != id.server.as_str() {
        let item = &id.item;
        names.extend(["__", ":", "."].map(|separator| format!("{display}{separator}{item}")));
        names.push(format!("mcp__{display}__{item}"));
    }
    names.push(id.item.clone());
    names
}

fn item(text: &str) -> Result<What, BadPattern> {
    let (name, matchers) = split_arguments(text);
    let arguments = match matchers {
        None => Vec::new(),
        Some(matchers) => split_outside_braces(matchers)
            .into_iter()
            .map(|matcher| {
                let bad = || BadPattern::Matcher(matcher.to_owned());
                let (key, pattern) = matcher.split_once('=').ok_or_else(bad)?;
                if key.trim().is_empty() {
                    return Err(bad());
                }
                Ok((key.trim().to_owned(), glob(pattern.trim())?))
            })
            .collect::<Result<_, _>>()?,
    };
    Ok(What::Item { name: glob(name)?, arguments })
}

/// Splits `name:key=glob,…` at the first colon that is followed by `key=`.
fn split_arguments(text: &str) -> (&str, Option<&str>) {
    let is_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    for (at, _) in text.match_indices(':') {
        let (Some(name), Some(rest)) = (text.get(..at), text.get(at + 1..)) else { continue };
        if let Some((key, _)) = rest.split_once('=')
            && !key.is_empty()
            && key.chars().all(is_key)
        {
            return (name, Some(rest));
        }
    }
    (text, None)
}

/// Splits at commas, but not at those of a `{a,b}` alternative.
fn split_outside_braces(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

fn argument_matches(arguments: Arguments<'_>, key: &str, glob: &GlobMatcher) -> bool {
    let arguments = match arguments {
        Arguments::These(arguments) => arguments,
        Arguments::Unknown => return false,
        Arguments::Fitting => return true,
    };
    let Some(value) = object::at_path(arguments, key) else { return false };
    match value.read::<String>() {
        Ok(text) => glob.is_match(text),
        // Numbers, booleans and the rest are matched as they were written.
        Err(_) => glob.is_match(value.as_str()),
    }
}

/// A glob in which `*` matches anything, slashes included.
pub(crate) fn glob(text: &str) -> Result<GlobMatcher, BadPattern> {
    match Glob::new(text) {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(cause) => Err(BadPattern::Glob(text.to_owned(), cause)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(server: &str, item: &str) -> ItemId {
        ItemId { server: server.parse().unwrap(), item: item.to_owned() }
    }

    fn fits(pattern: &str, arguments: &str) -> bool {
        let pattern = Pattern::parse(pattern).unwrap();
        let arguments = Json::parse(arguments.to_owned()).unwrap();
        let names = spellings(&id("gh", "create_issue"), "GH");
        pattern.matches(&names, Arguments::These(&arguments))
    }

    #[test]
    fn a_pattern_matches_every_spelling_of_an_id_and_the_bare_name() {
        let fitting = [
            "*",
            "gh__create_issue",
            "mcp__gh__create_*",
            "gh:create_issue",
            "gh.create_issue",
            "create_*",
            "GH__create_issue",
            "g?__create_{issue,pull}",
        ];
        for pattern in fitting {
            assert!(fits(pattern, "{}"), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_does_not_reach_further_than_it_says() {
        let others =
            ["gh", "gh__", "create", "issue", "gl__create_issue", "gh__create", "Create_*"];
        for pattern in others {
            assert!(!fits(pattern, "{}"), "{pattern}");
        }
    }

    #[test]
    fn argument_matchers_must_all_fit() {
        let pattern = "mcp__gh__create_issue:repo=acme/*,title=feat*";
        assert!(fits(pattern, r#"{"repo":"acme/x","title":"feat: y"}"#));
        assert!(!fits(pattern, r#"{"repo":"acme/x","title":"fix"}"#));
        assert!(!fits(pattern, r#"{"repo":"other/x","title":"feat"}"#));
        assert!(!fits(pattern, r#"{"title":"feat"}"#));
        assert!(!fits(pattern, "{}"));
        assert!(fits("gh:create_issue:issue.repo=acme/*", r#"{"issue":{"repo":"acme/a"}}"#));
        assert!(fits("gh:create_issue:n=1*", r#"{"n":12345678901234567890123}"#));
        assert!(fits("create_issue:n={1,2}", r#"{"n":2}"#));
        assert!(!fits("create_issue:n={1,2}", r#"{"n":3}"#));
    }

    #[test]
    fn a_matcher_over_arguments_never_matches_while_they_are_unknown() {
        let pattern = Pattern::parse("create_issue:repo=*").unwrap();
        assert!(!pattern.matches(&spellings(&id("gh", "create_issue"), "gh"), Arguments::Unknown));
    }

    #[test]
    fn questions_of_a_server_have_patterns_of_their_own() {
        let pattern = Pattern::parse("Elicit(lin*)").unwrap();
        assert!(pattern.matches_elicitation("linear"));
        assert!(!pattern.matches_elicitation("github"));
        assert!(!pattern.matches(&["linear__x".to_owned()], Arguments::Unknown));
        assert!(!Pattern::parse("*").unwrap().matches_elicitation("linear"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["", "  ", "[x", "a{b", "Elicit([)", "t:key=[", "t:a=1,b"] {
            assert!(Pattern::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
