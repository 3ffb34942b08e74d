//! Splits descriptions into sentences and words.

/// Limits of the examined part of a description: bytes, sentences, words, label.
const MAX_BYTES: usize = 4000;
const MAX_SENTENCES: usize = 60;
const MAX_WORDS: usize = 120;

const MAX_LABEL: usize = 60;

/// Words that start the description of the arguments.
const ARGUMENTS: [&str; 10] = [
    "args",
    "arguments",
    "parameters",
    "params",
    "param",
    "example",
    "examples",
    "raises",
    "usage",
    "input",
];

/// The beginning of a text, in lower case.
pub(super) fn lower(text: &str) -> String {
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_lowercase().replace('\u{2019}', "'")
}

/// Removes a label at the start: "`[Billing]` Get an invoice".
pub(super) fn without_label(text: &str) -> &str {
    let label = text.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match label {
        Some((label, rest)) if label.len() <= MAX_LABEL && !rest.trim().is_empty() => rest,
        Some(_) | None => text,
    }
}

/// Splits into sentences and words; commas and slashes are separate words.
pub(super) fn sentences(text: &str) -> Vec<Vec<&str>> {
    let mut sentences = Vec::new();
    // A dot inside a word, as in `v1.2`, does not end a sentence.
    let ends = |c: char| matches!(c, '\n' | '!' | '?' | ';' | '\u{3002}');
    for line in text.split(ends).flat_map(|line| line.split(". ")) {
        let mut words = Vec::new();
        for piece in line.split_inclusive([',', '/', '&', '(', ')', ':', '\u{2014}']) {
            let (text, mark) = match piece.char_indices().next_back() {
                Some((at, ',' | '/' | '&')) => piece.split_at(at),
                Some(_) | None => (piece, ""),
            };
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'');
            let pieces = text.split(|c| !is_part(c)).map(|word| word.trim_matches(['-', '\'']));
            words.extend(pieces.filter(|word| !word.is_empty()));
            if !mark.is_empty() {
                words.push(mark);
            }
        }
        words.truncate(MAX_WORDS);
        if words.first().is_some_and(|first| ARGUMENTS.contains(first)) && !sentences.is_empty() {
            break;
        }
        if words.iter().any(|word| word.starts_with(char::is_alphabetic)) {
            sentences.push(words);
        }
        if sentences.len() == MAX_SENTENCES {
            break;
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_end_and_arguments_are_left_out() {
        let text = "get v1.2 of it, or/and all. use read_file first!\nargs: name\nmore";
        let words: Vec<String> = sentences(text).iter().map(|words| words.join(" ")).collect();
        assert_eq!(words, ["get v1 2 of it , or / and all", "use read_file first"]);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = "ä".repeat(MAX_BYTES);
        assert_eq!(lower(&text).len(), MAX_BYTES);
        assert_eq!(without_label("[billing] get"), " get");
        assert_eq!(without_label("[billing]"), "[billing]");
    }
}
