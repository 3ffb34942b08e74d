//! Finds the comments of a configuration file.
//!
//! A comment may repeat a secret that is too short to be recognised, so none of it is shown.

use std::ops::Range;

/// The text of each comment, without its marks.
///
/// `content` says for each byte whether it belongs to a key or a value. It is `None` for a file that
/// cannot be parsed: there, any mark that may begin a comment counts, within quotes too.
pub(super) fn find(text: &str, content: Option<&[bool]>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find(['#', '/'])) {
        let start = at + step;
        let is_content = content.is_some_and(|content| content.get(start) == Some(&true));
        let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
        let comment = if is_content { None } else { comment(before, rest, content.is_some()) };
        at = start + 1;
        if let Some(Range { start: from, end }) = comment {
            found.push(start + from..start + end);
            at = start + end;
        }
    }
    found
}

/// The text of the comment that `rest` begins with, if it begins with one.
fn comment(before: &str, rest: &str, is_parsed: bool) -> Option<Range<usize>> {
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
    match block.find("*/") {
        Some(end) => Some(2..2 + end),
        // A pattern such as `src/*` begins no comment.
        None => {
            let is_pattern = before.ends_with(|c: char| !c.is_whitespace() && !"{[,:".contains(c));
            (is_parsed || !is_pattern).then_some(2..rest.len())
        }
    }
}
