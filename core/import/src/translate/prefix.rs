//! Reduces a pattern for names with a prefix to a pattern for the rest of the name.

use std::collections::BTreeSet;

/// Returns patterns for the rest of a name that begins with `prefix`.
///
/// In `pattern`, `*` stands for any text and `?` for any character. A name matches the pattern
/// exactly if the rest of it matches one of the returned patterns.
pub(crate) fn after(prefix: &str, pattern: &str) -> Vec<String> {
    let signs: Vec<char> = pattern.chars().collect();
    // The positions in the pattern that the prefix may have led to.
    let mut reached = BTreeSet::from([0]);
    for c in prefix.chars() {
        let mut next = BTreeSet::new();
        for mut at in reached {
            while signs.get(at) == Some(&'*') {
                next.insert(at);
                at += 1;
            }
            if signs.get(at).is_some_and(|sign| *sign == '?' || *sign == c) {
                next.insert(at + 1);
            }
        }
        reached = next;
    }
    let rest = |at: usize| signs.get(at..).unwrap_or_default().iter().collect::<String>();
    let mut patterns: Vec<String> =
        reached.into_iter().map(rest).filter(|rest| !rest.is_empty()).collect();
    if patterns.iter().any(|pattern| pattern == "*") {
        patterns = vec!["*".to_owned()];
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_over_all_tools_is_reduced_to_those_of_a_server() {
        for (pattern, expected) in [
            ("my-mcp_search", &["search"][..]),
            ("my-mcp_*", &["*"]),
            ("my-mcp*", &["*"]),
            ("my*", &["*"]),
            ("*", &["*"]),
            ("my-mcp_get_*", &["get_*"]),
            ("*_delete", &["*_delete", "delete"]),
            ("*delete*", &["*delete*"]),
            ("m?-mcp_?et", &["?et"]),
            ("*mcp*", &["*"]),
            ("other_*", &[]),
            ("bash", &[]),
            ("my-mcp", &[]),
            ("my-mcp_", &[]),
        ] {
            assert_eq!(after("my-mcp_", pattern), expected, "{pattern}");
        }
    }
}
