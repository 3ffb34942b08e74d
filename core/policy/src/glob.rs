//! Globs over names, in which `*` matches anything, slashes included.
//!
//! Most are plain text, or text with `*`. Those are matched here; only globs with other special
//! characters use the regular expressions of [`globset`], which cost a hundred times as much.

use globset::{Glob as Written, GlobMatcher};

use crate::pattern::BadPattern;

/// Special characters other than `*`.
const SIGNS: [char; 6] = ['?', '[', ']', '{', '}', '\\'];

/// A glob.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// The name equals the text.
    Exact,
    /// The texts before, between and after the `*`.
    Stars(Vec<String>),
    /// A regular expression, and the literal prefix of all matching names.
    Other(String, GlobMatcher),
}

// === impl Glob ===

impl Glob {
    /// Parses a glob with `*`, `?`, `[a-z]` and `{a,b}`.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        // `**` has its own meaning next to slashes.
        if !text.contains(SIGNS) && !text.contains("**") {
            return Ok(Self::stars(text));
        }
        let text = text.to_owned();
        match Written::new(&text) {
            Ok(glob) => {
                let begin = text.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default();
                // Next to `**`, a slash may match nothing.
                let begin = begin.trim_end_matches('/').to_owned();
                Ok(Self { how: How::Other(begin, glob.compile_matcher()), text })
            }
            Err(cause) => Err(BadPattern::Glob(text, cause)),
        }
    }

    /// Parses a glob in which only `*` is special.
    pub fn stars(text: &str) -> Self {
        let how = if text.contains('*') {
            How::Stars(text.split('*').map(str::to_owned).collect())
        } else {
            How::Exact
        };
        Self { text: text.to_owned(), how }
    }

    /// The glob as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the glob matches a name.
    pub fn is_match(&self, name: &str) -> bool {
        match &self.how {
            How::Exact => self.text == name,
            How::Stars(parts) => between_stars(parts, name),
            How::Other(begin, glob) => name.starts_with(begin) && glob.is_match(name),
        }
    }

    /// The only name that matches, if there is just one.
    pub(crate) fn exact(&self) -> Option<&str> {
        match &self.how {
            How::Exact => Some(&self.text),
            How::Stars(_) | How::Other(..) => None,
        }
    }

    /// A text that every matching name contains; `None` if there is none.
    pub(crate) fn needle(&self) -> Option<&str> {
        let needle = match &self.how {
            How::Exact => self.text.as_str(),
            How::Stars(parts) => parts.iter().max_by_key(|part| part.len())?,
            How::Other(begin, _) => begin,
        };
        (!needle.is_empty()).then_some(needle)
    }
}

/// True if `name` consists of these parts in order, with any text in between.
///
/// It starts with the first part and ends with the last.
fn between_stars(parts: &[String], name: &str) -> bool {
    let [first, between @ .., last] = parts else { return false };
    let Some(rest) = name.strip_prefix(first.as_str()) else { return false };
    let Some(mut rest) = rest.strip_suffix(last.as_str()) else { return false };
    for part in between {
        let Some((_, after)) = rest.split_once(part.as_str()) else { return false };
        rest = after;
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Row C39 of the seed examples: the table of globs.
    #[test]
    fn c39_globs_match_as_their_table_says() {
        let table: [(&str, &[&str], &[&str]); 6] = [
            ("sentry__*", &["sentry__search_issues"], &["sentr__x", "my_sentry__x", "Sentry__x"]),
            ("*_issues", &["search_issues", "sentry__list_issues"], &["issues", "search_issue"]),
            ("*admin*", &["admin_panel", "user_admin_tools"], &["adm_in", "ADMIN"]),
            ("sentry__*_admin__*", &["sentry__team_admin__delete"], &["sentry__admin__delete"]),
            ("my_tool", &["my_tool"], &["my_tool2", "my_too", "a__my_tool", ""]),
            ("*", &["any tool", "", "a/b\nc"], &[]),
        ];
        for (glob, fitting, others) in table {
            for glob in [Glob::stars(glob), Glob::parse(glob).unwrap()] {
                for name in fitting {
                    assert!(glob.is_match(name), "{glob:?} {name}");
                }
                for name in others {
                    assert!(!glob.is_match(name), "{glob:?} {name}");
                }
            }
        }
    }

    #[test]
    fn where_only_stars_have_a_meaning_other_signs_are_themselves() {
        assert!(Glob::stars("docs://a?b=[c]*").is_match("docs://a?b=[c]d"));
        assert!(!Glob::stars("docs://a?b").is_match("docs://axb"));
        assert!(Glob::parse("docs://a?b").unwrap().is_match("docs://axb"));
    }

    #[test]
    fn the_text_looked_for_is_the_longest_there_is() {
        let needle = |text: &str| Glob::parse(text).unwrap().needle().map(str::to_owned);
        for (text, expected) in [
            ("get_thing", Some("get_thing")),
            ("a*delete*", Some("delete")),
            ("gh__create_{issue,pull}", Some("gh__create_")),
            ("a/**/b", Some("a")),
            ("*", None),
            ("?x", None),
        ] {
            assert_eq!(needle(text).as_deref(), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_meant_has_the_text_looked_for_in_it(
            text in "[ab/]{0,2}[ab*?/]{0,4}(\\{a,b\\})?",
            name in "[ab/]{0,6}",
        ) {
            let glob = Glob::parse(&text).unwrap();
            if glob.is_match(&name) && let Some(needle) = glob.needle() {
                prop_assert!(name.contains(needle));
            }
        }

        #[test]
        fn plain_globs_match_what_the_full_ones_do(
            text in "[ab_.:*/]{0,8}",
            name in "[ab_.:/\n]{0,8}",
        ) {
            prop_assume!(!text.contains("**"));
            let full = Written::new(&text).unwrap().compile_matcher();
            prop_assert_eq!(Glob::parse(&text).unwrap().is_match(&name), full.is_match(&name));
        }
    }
}
