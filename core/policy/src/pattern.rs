//! Patterns over tools, with matchers over their arguments.
//!
//! ```text
//! linear__delete_*                      any spelling of an id: s__t, mcp__s__t, s:t, s.t
//! delete_*                              the bare name of a tool, whatever the server
//! mcp__gh__create_issue:repo=acme/*     and its arguments; several are joined by commas
//! Elicit(linear)                        not a tool: the server's questions to the operator
//! ```

use capstan_model::{ItemId, Verdict};
use capstan_wire::{BadJson, Json, object};
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

    /// Whether it looks at arguments, and not only at names.
    pub fn has_matchers(&self) -> bool {
        match &self.what {
            What::Item { arguments, .. } => !arguments.is_empty(),
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
            What::Item { name, arguments: matchers } => {
                names.iter().any(|spelling| name.is_match(spelling))
                    && match arguments {
                        Arguments::These(arguments) => matchers
                            .iter()
                            .all(|(key, glob)| argument_matches(arguments, key, glob, verdict)),
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

fn argument_matches(arguments: &Json, key: &str, glob: &GlobMatcher, verdict: Verdict) -> bool {
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

    /// Whether a rule that allows means it; where all is readable and plain, so do the others.
    fn fits(pattern: &str, arguments: &str) -> bool {
        let [allow, ask, deny] = [Verdict::Allow, Verdict::Ask, Verdict::Deny]
            .map(|verdict| fits_for(verdict, pattern, arguments));
        assert_eq!((allow, allow), (ask, deny), "{pattern} {arguments}");
        allow
    }

    fn fits_for(verdict: Verdict, pattern: &str, arguments: &str) -> bool {
        let pattern = Pattern::parse(pattern).unwrap();
        let arguments = Json::parse(arguments.to_owned()).unwrap();
        let names = spellings(&id("gh", "create_issue"), "GH");
        pattern.matches(&names, Arguments::These(&arguments), verdict)
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

    #[track_caller]
    fn strict_rules_alone_mean(pattern: &str, arguments: &str) {
        assert!(fits_for(Verdict::Deny, pattern, arguments), "not denied: {arguments}");
        assert!(fits_for(Verdict::Ask, pattern, arguments), "not asked about: {arguments}");
        assert!(!fits_for(Verdict::Allow, pattern, arguments), "allowed: {arguments}");
    }

    #[test]
    fn arguments_that_cannot_be_read_are_denied_and_never_allowed() {
        let unreadable = [
            r#"{"path":"/etc/passwd","\ud800":1}"#,
            r#"{"\udfff":1,"path":"/home"}"#,
            r#"{"path":"/etc/passwd\ud800"}"#,
            r#"{"path":"\ud800"}"#,
            r#"["/etc/passwd"]"#,
            r#""{\"path\":\"/etc/passwd\"}""#,
            "1",
        ];
        for arguments in unreadable {
            strict_rules_alone_mean("create_issue:path=/etc/*", arguments);
        }
        strict_rules_alone_mean("create_issue:a.path=/etc/*", r#"{"a":{"\ud800":1,"path":"x"}}"#);
        assert!(!fits("gl__create_issue:path=*", "{}"));
        assert!(!fits("create_issue:path=*", "null"));
    }

    #[test]
    fn a_second_reading_hides_no_first_one() {
        let pattern = "create_issue:issue.repo=acme/*";
        for arguments in [
            r#"{"issue.repo":"x","issue":{"repo":"acme/a"}}"#,
            r#"{"issue":{"repo":"acme/a"},"issue.repo":"x"}"#,
            r#"{"issue.repo":"acme/a","issue":{"repo":"x"}}"#,
        ] {
            strict_rules_alone_mean(pattern, arguments);
        }
        assert!(!fits(pattern, r#"{"issue.repo":"x","issue":{"repo":"y"}}"#));
        assert!(fits(pattern, r#"{"issue.repo":"acme/b","issue":{"repo":"acme/a"}}"#));
    }

    #[test]
    fn while_arguments_are_unknown_only_a_matcher_that_denies_never_matches() {
        let pattern = Pattern::parse("create_issue:repo=*").unwrap();
        let names = spellings(&id("gh", "create_issue"), "gh");
        let matches = |verdict| pattern.matches(&names, Arguments::Unknown, verdict);
        assert!(!matches(Verdict::Deny));
        assert!(matches(Verdict::Ask));
        assert!(matches(Verdict::Allow));
        let bare = Pattern::parse("create_issue").unwrap();
        assert!(bare.matches(&names, Arguments::Unknown, Verdict::Deny));
    }

    #[test]
    fn questions_of_a_server_have_patterns_of_their_own() {
        let pattern = Pattern::parse("Elicit(lin*)").unwrap();
        assert!(pattern.matches_elicitation("linear"));
        assert!(!pattern.matches_elicitation("github"));
        let names = ["linear__x".to_owned()];
        assert!(!pattern.matches(&names, Arguments::Unknown, Verdict::Allow));
        assert!(!Pattern::parse("*").unwrap().matches_elicitation("linear"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for bad in ["", "  ", "[x", "a{b", "Elicit([)", "t:key=[", "t:a=1,b"] {
            assert!(Pattern::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
