//! The instructions of servers: scanned, shortened and labelled with the server's name.

use std::fmt::Write as _;

use capstan_model::ServerName;
use capstan_safety::injection::sanitized;

/// Longest instructions of one server, in bytes.
pub const MAX_INSTRUCTIONS: usize = 2 * 1024;

/// Longest instructions where one server is shown, in bytes.
const MAX_OWN: usize = 64 * 1024;

/// Merges the instructions of several servers into one text, sorted by server.
///
/// Each part is labelled with its server, so that no server can speak for another or for the
/// operator.
pub fn merged_instructions<'a>(
    servers: impl IntoIterator<Item = (&'a ServerName, &'a str)>,
) -> String {
    let mut parts: Vec<(&ServerName, &str)> =
        servers.into_iter().filter(|(_, text)| !text.trim().is_empty()).collect();
    parts.sort();
    let mut merged = String::new();
    for (server, text) in parts {
        if !merged.is_empty() {
            merged.push_str("\n\n");
        }
        let text = capped_instructions(text);
        let _ = write!(merged, "Instructions of the server `{server}`:\n{text}");
    }
    merged
}

/// Returns the instructions of the only server that is shown, with prompt injections masked.
///
/// Every other byte stays, up to 64 KiB.
pub fn own_instructions(text: &str) -> String {
    let text = sanitized(text);
    text.get(..text.floor_char_boundary(MAX_OWN)).unwrap_or_default().to_owned()
}

/// Returns the instructions of one server, with prompt injections masked, cut to
/// [`MAX_INSTRUCTIONS`].
pub fn capped_instructions(text: &str) -> String {
    let text = sanitized(text);
    let text = text.trim();
    let cut = text.get(..text.floor_char_boundary(MAX_INSTRUCTIONS)).unwrap_or_default();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut}{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_labelled_and_the_order_is_that_of_the_names() {
        let (a, b): (ServerName, ServerName) = ("a".parse().unwrap(), "b".parse().unwrap());
        let merged = merged_instructions([(&b, "second "), (&a, "first"), (&a, "  ")]);
        let expected = "Instructions of the server `a`:\nfirst\n\n\
                        Instructions of the server `b`:\nsecond";
        assert_eq!(merged, expected);
    }

    #[test]
    fn the_only_server_speaks_in_its_own_words() {
        let text = format!(" first\n{}\n", "x".repeat(10_000));
        assert_eq!(own_instructions(&text), text);
        assert_eq!(own_instructions(&"ü".repeat(MAX_OWN)).len(), MAX_OWN);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let server: ServerName = "a".parse().unwrap();
        let merged = merged_instructions([(&server, "ü".repeat(2000).as_str())]);
        assert!(merged.ends_with("ü…"));
        assert!(merged.len() < MAX_INSTRUCTIONS + 64);
    }
}
