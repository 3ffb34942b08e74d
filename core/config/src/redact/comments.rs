//! Finds the comments of a configuration file.
//!
//! A comment may repeat a secret that is too short to be recognised, so none of it is shown.

use std::ops::Range;

/// Returns the range of each comment, without its marks.
///
/// `content` is true for each byte that belongs to a key or a value. It is `None` for a file that
/// cannot be parsed: there, any mark that may begin a comment counts, within quotes too.
pub(super) fn find(text: &str, content: Option<&[bool]>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find(['#', '/'])) {
        let start = at + step;
        let is_content = content.is_some_and(|content| content.get(start) == Some(&true));
        let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
        let comment = if is_content { None } else { comment(before, rest, content) };
        at = start + 1;
        if let Some(Range { start: from, end }) = comment {
            found.push(start + from..start + end);
            at = start + end;
        }
    }
    found
}

/// The range of the comment that `rest` begins with, if any.
fn comment(before: &str, rest: &str, content: Option<&[bool]>) -> Option<Range<usize>> {
    let is_parsed = content.is_some();
    let line = rest.find('\n').unwrap_or(rest.len());
    if rest.starts_with('#') {
        return Some(1..line);
    }
    if rest.starts_with("//") {
        let scheme = before.strip_suffix(':').unwrap_or_default();
        let is_url = !is_parsed && scheme.ends_with(|c: char| c.is_ascii_alphanumeric());
        return (!is_url).then_some(2..line);
    }
    let block = rest.strip_prefix("/*")?;
    if let Some(end) = block.find("*/") {
        return Some(2..2 + end);
    }
    // A pattern such as `src/*` begins no comment.
    let is_pattern = before.ends_with(|c: char| !c.is_whitespace() && !"{[,:".contains(c));
    (is_parsed || !is_pattern).then_some(2..rest.len())
}

#[cfg(test)]
mod tests {
    use crate::redact::{Hide, redact_file};

    /// A secret that is too short to be recognised may be repeated in any comment.
    #[test]
    fn comments_are_hidden_as_a_whole() {
        for (path, text, shown) in [
            ("a.toml", "[tokens]\n\"ZQ7\" = \"bob\" # ZQ7", "[tokens]\n\"***\" = \"***\" # ***"),
            ("a.toml", "tokens.ZQ7 = \"bob\" # ZQ7", "tokens.*** = \"***\" # ***"),
            ("a.toml", "tokens = { ZQ7 = \"bob\" } # ZQ7", "tokens = { *** = \"***\" } # ***"),
            ("a.toml", "# tok ZQ7 = bob\ncwd = \"#a\"", "# *** *** * ***\ncwd = \"#a\""),
            ("a.toml", "cwd = \"x\" # ZQ7\ntimeout =", "cwd = \"x\" # ***\ntimeout ="),
            ("a.toml", "bearer_token=\"Zq1w\" # Zq1w", "bearer_token=\"****\" # ****"),
            ("a.json", "{\"cwd\":// ZQ7\n\"//\"}", "{\"cwd\":// ***\n\"//\"}"),
            ("a.json", "{\"url\": \"h://x\" /* ZQ7\n */}", "{\"url\": \"h://x\" /* ***\n */}"),
            ("a.json", "{\"url\": \"h://x\" /* ZQ7", "{\"url\": \"h://x\" /* ***"),
            ("a.json", "{\"cwd\": \"a\",, // ZQ7", "{\"cwd\": \"a\",, // ***"),
            ("a.yaml", "cmd: x#y # ZQ7\nuri: h://x", "cmd: x#y # ***\nuri: h://x"),
            ("a.yaml", "env:\n  DB: corre # corre", "env:\n  DB: ***** # *****"),
        ] {
            assert_eq!(redact_file(path, text, Hide::EveryValue), shown, "{text}");
        }
    }
}
