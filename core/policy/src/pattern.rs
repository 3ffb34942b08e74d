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
    /// `Elicit(` without its end.
    #[error("`{0}` has no `)` at its end; write `Elicit(server)`")]
    Unclosed(String),
    /// It says of the same tools that they read and that they write.
    #[error("`{0}` is in `effect.read` and in `effect.write`")]
    Both(String),
}

/// What a call's arguments are when a pattern looks at them.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'a> {
    /// These.
    These(&'a Json),
    /// Not known yet, as when tools are listed. A call counts as possible where some would do:
    /// those that a rule allows or asks about, and not those that a rule denies.
    Unknown,
}

/// What the glob of a pattern is held against.
#[derive(Clone, Copy, Debug)]
pub enum PatternSubject<'a> {
    /// The names of tools, resources and prompts.
    Item(&'a Glob),
    /// The names of servers that ask something.
    Elicit(&'a Glob),
}

#[derive(Clone, Debug)]
enum What {
    Item { name: Glob, matchers: Matchers },
    Elicit(Glob),
}

/// What a pattern says of arguments.
#[derive(Clone, Debug, Default)]
struct Matchers {
    each: Vec<(String, Glob)>,
    others: Others,
}

/// Whether a call may have arguments that a pattern does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Others {
    #[default]
    Any,
    None,
}

/// Says that there are no arguments but those before it.
const NO_OTHERS: &str = "!";

// === impl Pattern ===

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        // What it means follows from how it is written.
        self.text == other.text
    }
}

impl Pattern {
    /// Reads a pattern as an operator wrote it.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(BadPattern::Empty);
        }
        // A slip here would make a rule that never speaks, and nobody would notice.
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

    /// Whether it looks at arguments, and not only at names.
    pub fn has_matchers(&self) -> bool {
        match &self.what {
            What::Item { matchers, .. } => !matchers.is_empty(),
            What::Elicit(_) => false,
        }
    }

    /// What it says of names: of items, or of the servers whose questions it speaks of.
    pub fn subject(&self) -> PatternSubject<'_> {
        match &self.what {
            What::Item { name, .. } => PatternSubject::Item(name),
            What::Elicit(server) => PatternSubject::Elicit(server),
        }
    }

    /// Whether an item of these names is meant, whatever its arguments.
    pub fn names_one_of(&self, names: &[String]) -> bool {
        match &self.what {
            What::Item { name, .. } => names.iter().any(|spelling| name.is_match(spelling)),
            What::Elicit(_) => false,
        }
    }

    /// Whether a call of one of `names` with these arguments is meant by a rule that says `verdict`.
    ///
    /// `names` are the spellings of one and the same item. In doubt about the arguments a rule that
    /// denies or asks means them and a rule that allows does not.
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

    /// Whether the questions of this server are meant.
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
                // What cannot be read may be anything.
                Others::None => match self.leaves_out(arguments, "", verdict) {
                    Ok(left_out) => !left_out,
                    Err(_) => verdict != Verdict::Allow,
                },
            }
    }

    /// Whether there is something at or below `path` that no matcher names. A rule that allows
    /// names only what cannot be read in another way.
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

/// Every name that a pattern may call `id`: its spellings under both names of its server, and the
/// bare name of the item.
pub fn spellings(id: &ItemId, display: &str) -> Vec<String> {
    let (server, item) = (id.server.as_str(), id.item.as_str());
    let both = if display == server { &[server][..] } else { &[server, display] };
    let mut names = Vec::with_capacity(4 * both.len() + 1);
    for server in both {
        // Put together by hand: this is done for every call.
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
fn split_arguments(text: &str) -> (&str, Option<&str>) {
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

fn argument_matches(arguments: &Json, key: &str, glob: &Glob, verdict: Verdict) -> bool {
    let found = readings(arguments, key);
    match (found, verdict) {
        (Ok(found), Verdict::Deny | Verdict::Ask) => found.iter().any(|text| glob.is_match(text)),
        (Ok(found), Verdict::Allow) => {
            !found.is_empty() && found.iter().all(|text| glob.is_match(text))
        }
        // What cannot be read here may be read by the server, and as anything.
        (Err(_), Verdict::Deny | Verdict::Ask) => true,
        (Err(_), Verdict::Allow) => false,
    }
}

/// Whether a value is one that matchers take for nothing else: no list, no object, and no text that
/// spells a number or another value.
fn is_unambiguous(value: &Json) -> Result<bool, BadJson> {
    match value.as_bytes().first() {
        Some(b'"') => Ok(Json::parse(value.read::<String>()?).is_err()),
        Some(first) => Ok(!matches!(first, b'[' | b'{')),
        None => Ok(false),
    }
}

/// Everything that a server may find under `key`.
fn readings(arguments: &Json, key: &str) -> Result<Vec<String>, BadJson> {
    if arguments.as_bytes() == b"null" {
        return Ok(Vec::new());
    }
    let found = object::all_at_path(arguments, key)?;
    let text = |value: &Json| match value.as_bytes().first() {
        Some(b'"') => value.read(),
        // Numbers, booleans and the rest are matched as they were written.
        Some(_) | None => Ok(value.as_str().to_owned()),
    };
    found.iter().map(text).collect()
}

/// A glob as a regular expression. Where there are many, [`Glob`] is quicker.
pub(crate) fn glob(text: &str) -> Result<GlobMatcher, BadPattern> {
    match globset::Glob::new(text) {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(cause) => Err(BadPattern::Glob(text.to_owned(), cause)),
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
