//! Patterns over tools, with matchers over their arguments.
//!
//! ```text
//! linear__delete_*                      any spelling of an id: s__t, mcp__s__t, s:t, s.t
//! delete_*                              the bare name of a tool, whatever the server
//! mcp__gh__create_issue:repo=acme/*     and its arguments; several are joined by commas
//! gh__create_issue:repo=acme/x,!        and no other arguments than these
//! Elicit(linear)                        not a tool: the server's questions to the operator
//! ```

use capstan_model::name::{FOREIGN_PREFIX, SEPARATOR};
use capstan_model::{ItemId, Verdict};
use capstan_wire::{BadJson, Json, object};
use globset::GlobMatcher;

use crate::glob::Glob;

/// One pattern of a rule.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    what: What,
}

/// The reason why a text is not a valid pattern.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadPattern {
    /// The text is empty.
    #[error("the pattern is empty")]
    Empty,
    /// The glob in it is malformed.
    #[error("`{0}` is not a glob pattern")]
    Glob(String, #[source] globset::Error),
    /// An argument matcher is not `key=glob`.
    #[error("`{0}` is not an argument matcher; write `key=pattern`")]
    Matcher(String),
    /// `Elicit(` without its end.
    #[error("`{0}` has no `)` at its end; write `Elicit(server)`")]
    Unclosed(String),
    /// It declares the same tools as reading and as writing.
    #[error("`{0}` is in `effect.read` and in `effect.write`")]
    Both(String),
}

/// A call's arguments, as input of a match.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'a> {
    /// The arguments of a call.
    These(&'a Json),
    /// Unknown arguments, as when tools are listed.
    ///
    /// A rule that allows or asks matches if some arguments would match; a rule that denies does
    /// not.
    Unknown,
}

/// The names that the glob of a pattern is matched against.
#[derive(Clone, Copy, Debug)]
pub enum PatternSubject<'a> {
    /// The names of tools, resources and prompts.
    Item(&'a Glob),
    /// The names of servers that ask the operator.
    Elicit(&'a Glob),
}

#[derive(Clone, Debug)]
enum What {
    Item { name: Glob, matchers: Matchers },
    Elicit(Glob),
}

/// The argument matchers of a pattern.
#[derive(Clone, Debug, Default)]
struct Matchers {
    each: Vec<(String, Glob)>,
    others: Others,
}

/// Decides if a call may have arguments that a pattern does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Others {
    #[default]
    Any,
    None,
}

/// Excludes further arguments.
const NO_OTHERS: &str = "!";

// === impl Pattern ===

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        // The text determines the meaning.
        self.text == other.text
    }
}

impl Pattern {
    /// Parses a pattern as an operator wrote it.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(BadPattern::Empty);
        }
        // Such a typo would make a rule that never matches, unnoticed.
        if trimmed.ends_with(':') || trimmed.contains(":=") {
            return Err(BadPattern::Matcher(trimmed.to_owned()));
        }
        if trimmed.starts_with("Elicit(") && !trimmed.ends_with(')') {
            return Err(BadPattern::Unclosed(trimmed.to_owned()));
        }
        let elicit = trimmed.strip_prefix("Elicit(").and_then(|rest| rest.strip_suffix(')'));
        let what = match elicit {
            Some(server) => What::Elicit(Glob::parse(server)?),
            None => item(trimmed)?,
        };
        Ok(Self { text: text.to_owned(), what })
    }

    /// The pattern as the operator wrote it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if it has argument matchers.
    pub fn has_matchers(&self) -> bool {
        match &self.what {
            What::Item { matchers, .. } => !matchers.is_empty(),
            What::Elicit(_) => false,
        }
    }

    /// The glob over names of items, or over servers that ask the operator.
    pub fn subject(&self) -> PatternSubject<'_> {
        match &self.what {
            What::Item { name, .. } => PatternSubject::Item(name),
            What::Elicit(server) => PatternSubject::Elicit(server),
        }
    }

    /// True if it matches an item with these names, for any arguments.
    pub fn names_one_of(&self, names: &[String]) -> bool {
        match &self.what {
            What::Item { name, .. } => names.iter().any(|spelling| name.is_match(spelling)),
            What::Elicit(_) => false,
        }
    }

    /// True if a rule with this verdict matches a call of one of `names` with these arguments.
    ///
    /// `names` are the spellings of one item. If the arguments are ambiguous, a rule that denies or
    /// asks matches and a rule that allows does not.
    pub fn matches(&self, names: &[String], arguments: Arguments<'_>, verdict: Verdict) -> bool {
        match &self.what {
            What::Elicit(_) => false,
            What::Item { name, matchers } => {
                names.iter().any(|spelling| name.is_match(spelling))
                    && match arguments {
                        Arguments::These(arguments) => matchers.mean(arguments, verdict),
                        Arguments::Unknown => matchers.is_empty() || verdict != Verdict::Deny,
                    }
            }
        }
    }

    /// True if it matches the questions of this server.
    pub fn matches_elicitation(&self, server: &str) -> bool {
        match &self.what {
            What::Elicit(glob) => glob.is_match(server),
            What::Item { .. } => false,
        }
    }
}

// === impl Matchers ===

impl Matchers {
    fn parse(text: &str) -> Result<Self, BadPattern> {
        let mut parts = split_outside_braces(text);
        let others = match parts.pop_if(|last| last.trim() == NO_OTHERS) {
            Some(_) => Others::None,
            None => Others::Any,
        };
        let one = |matcher: &str| {
            let bad = || BadPattern::Matcher(matcher.to_owned());
            let (key, pattern) = matcher.split_once('=').ok_or_else(bad)?;
            if key.trim().is_empty() {
                return Err(bad());
            }
            Ok((key.trim().to_owned(), Glob::parse(pattern.trim())?))
        };
        Ok(Self { each: parts.into_iter().map(one).collect::<Result<_, _>>()?, others })
    }

    fn is_empty(&self) -> bool {
        self.each.is_empty() && self.others == Others::Any
    }

    fn mean(&self, arguments: &Json, verdict: Verdict) -> bool {
        let fits = |(key, glob): &(String, Glob)| argument_matches(arguments, key, glob, verdict);
        self.each.iter().all(fits)
            && match self.others {
                Others::Any => true,
                // Unreadable arguments may contain anything.
                Others::None => match self.leaves_out(arguments, "", verdict) {
                    Ok(left_out) => !left_out,
                    Err(_) => verdict != Verdict::Allow,
                },
            }
    }

    /// True if there is a value at or below `path` that no matcher names.
    ///
    /// For a rule that allows, a value counts as named only if it is unambiguous.
    fn leaves_out(&self, arguments: &Json, path: &str, verdict: Verdict) -> Result<bool, BadJson> {
        if path.is_empty() && arguments.as_bytes() == b"null" {
            return Ok(false);
        }
        for (name, value) in object::members(arguments)? {
            let path = if path.is_empty() { name.clone() } else { [path, ".", &name].concat() };
            let below = |key: &str| key.strip_prefix(&path).is_some_and(|it| it.starts_with('.'));
            let goes_on =
                value.as_bytes().starts_with(b"{") && self.each.iter().any(|it| below(&it.0));
            let fine = match verdict {
                _ if goes_on => !self.leaves_out(&value, &path, verdict)?,
                Verdict::Deny | Verdict::Ask => self.names(&path),
                Verdict::Allow => {
                    self.names(&path) && !name.contains('.') && is_unambiguous(&value)?
                }
            };
            if !fine {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn names(&self, path: &str) -> bool {
        self.each.iter().any(|(key, _)| key == path)
    }
}

/// Every name of `id` that a pattern may use.
///
/// These are its spellings under both names of its server, and the bare name of the item.
pub fn spellings(id: &ItemId, display: &str) -> Vec<String> {
    let (server, item) = (id.server.as_str(), id.item.as_str());
    let both = if display == server { &[server][..] } else { &[server, display] };
    let mut names = Vec::with_capacity(4 * both.len() + 1);
    for server in both {
        // Concatenated by hand, because this runs for every call.
        for (before, between) in
            [("", SEPARATOR), (FOREIGN_PREFIX, SEPARATOR), ("", ":"), ("", ".")]
        {
            names.push([before, server, between, item].concat());
        }
    }
    names.push(item.to_owned());
    names
}

fn item(text: &str) -> Result<What, BadPattern> {
    let (name, matchers) = split_arguments(text);
    let matchers = matchers.map(Matchers::parse).transpose()?.unwrap_or_default();
    Ok(What::Item { name: Glob::parse(name)?, matchers })
}

/// Splits `name:key=glob,…` at the first colon that is followed by `key=`.
pub fn split_arguments(text: &str) -> (&str, Option<&str>) {
    let is_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    for (at, _) in text.match_indices(':') {
        let (Some(name), Some(rest)) = (text.get(..at), text.get(at + 1..)) else { continue };
        if rest.split(',').next() == Some(NO_OTHERS) {
            return (name, Some(rest));
        }
        if let Some((key, _)) = rest.split_once('=')
            && !key.is_empty()
            && key.chars().all(is_key)
        {
            return (name, Some(rest));
        }
    }
    (text, None)
}

/// Splits at commas, except those within a `{a,b}` alternative.
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

fn argument_matches(arguments: &Json, key: &str, glob: &Glob, verdict: Verdict) -> bool {
    let found = readings(arguments, key);
    match (found, verdict) {
        (Ok(found), Verdict::Deny | Verdict::Ask) => found.iter().any(|text| glob.is_match(text)),
        (Ok(found), Verdict::Allow) => {
            !found.is_empty() && found.iter().all(|text| glob.is_match(text))
        }
        // The server may read arguments that are unreadable here, in any way.
        (Err(_), Verdict::Deny | Verdict::Ask) => true,
        (Err(_), Verdict::Allow) => false,
    }
}

/// True if matchers cannot take a value for anything else.
///
/// It is no list, no object, and no string that contains JSON, such as a number.
fn is_unambiguous(value: &Json) -> Result<bool, BadJson> {
    match value.as_bytes().first() {
        Some(b'"') => Ok(Json::parse(value.read::<String>()?).is_err()),
        Some(first) => Ok(!matches!(first, b'[' | b'{')),
        None => Ok(false),
    }
}

/// Every value that a server may find under `key`.
fn readings(arguments: &Json, key: &str) -> Result<Vec<String>, BadJson> {
    if arguments.as_bytes() == b"null" {
        return Ok(Vec::new());
    }
    let found = object::all_at_path(arguments, key)?;
    let text = |value: &Json| match value.as_bytes().first() {
        Some(b'"') => value.read(),
        // Numbers, booleans and the rest are matched as written.
        Some(_) | None => Ok(value.as_str().to_owned()),
    };
    found.iter().map(text).collect()
}

/// Compiles a glob to a regular expression. For many globs, [`Glob`] is faster.
pub(crate) fn glob(text: &str) -> Result<GlobMatcher, BadPattern> {
    match globset::Glob::new(text) {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(cause) => Err(BadPattern::Glob(text.to_owned(), cause)),
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
