//! Highlights code with a light method: words, strings, numbers and comments of common languages.

use ratatui::style::Style;

use super::wrap::Piece;
use crate::theme::Colours;

/// Words that many languages reserve.
const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "begin",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "goto",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "match",
    "mod",
    "module",
    "move",
    "mut",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "select",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "undefined",
    "union",
    "unsafe",
    "use",
    "using",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "insert",
    "update",
    "delete",
    "into",
    "values",
    "create",
    "table",
    "join",
    "on",
    "group",
    "order",
    "by",
    "limit",
];

/// A language, as far as highlighting needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    /// Not known: nothing is highlighted.
    Unknown,
    /// A comparison of two texts.
    Diff,
    /// A language with this sign before comments.
    Code(&'static str),
}

/// The pieces of a line of code in a language that a model has named.
pub(super) fn highlight(line: &str, language: &str, colours: Colours) -> Vec<Piece> {
    match Language::of(language) {
        Language::Unknown => vec![(line.to_owned(), Style::new())],
        Language::Diff => {
            let style = match line.chars().next() {
                Some('+') => colours.good(),
                Some('-') => colours.error(),
                Some('@') => colours.accent(),
                _ => Style::new(),
            };
            vec![(line.to_owned(), style)]
        }
        Language::Code(comment) => code(line, comment, colours),
    }
}

fn code(line: &str, comment: &str, colours: Colours) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut push = |text: &str, style: Style| match pieces.last_mut() {
        Some((last, kept)) if *kept == style => last.push_str(text),
        _ => pieces.push((text.to_owned(), style)),
    };
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let (length, style) = if rest.starts_with(comment) {
            (rest.len(), colours.dim())
        } else if matches!(c, '"' | '\'' | '`') {
            (string(rest, c), colours.literal())
        } else if c.is_ascii_digit() {
            (
                rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len()),
                colours.number(),
            )
        } else if c.is_alphabetic() || c == '_' {
            let length =
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let word = rest.get(..length).unwrap_or_default().to_ascii_lowercase();
            let is_keyword = KEYWORDS.contains(&word.as_str());
            (length, if is_keyword { colours.keyword() } else { Style::new() })
        } else {
            (c.len_utf8(), Style::new())
        };
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        push(piece, style);
        rest = after;
    }
    pieces
}

/// The length of a string at the beginning; one that does not end on this line is only its sign, as
/// in `don't`.
fn string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    quote.len_utf8()
}

// === impl Language ===

impl Language {
    fn of(word: &str) -> Self {
        let word = word.split([' ', ',']).next().unwrap_or_default().to_ascii_lowercase();
        match word.as_str() {
            "diff" | "patch" => Self::Diff,
            "rust" | "rs" | "js" | "javascript" | "jsx" | "ts" | "typescript" | "tsx" | "c"
            | "h" | "cpp" | "c++" | "cs" | "csharp" | "java" | "kotlin" | "kt" | "go" | "swift"
            | "php" | "scala" | "dart" | "zig" | "json" | "jsonc" | "css" | "proto" => {
                Self::Code("//")
            }
            "py" | "python" | "sh" | "bash" | "zsh" | "fish" | "shell" | "console" | "toml"
            | "yaml" | "yml" | "rb" | "ruby" | "perl" | "r" | "make" | "makefile"
            | "dockerfile" | "nix" | "elixir" => Self::Code("#"),
            "sql" | "lua" | "haskell" | "hs" | "elm" | "ada" => Self::Code("--"),
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces with a sign for each style.
    fn shown(line: &str, language: &str) -> String {
        let colours = Colours::OfTerminal;
        let sign = |style: Style| match style {
            style if style == colours.keyword() => 'k',
            style if style == colours.literal() => 's',
            style if style == colours.number() => 'n',
            style if style == colours.dim() => 'c',
            style if style == colours.error() => '-',
            _ => '.',
        };
        let pieces = highlight(line, language, colours);
        let shown = pieces.iter().map(|(text, style)| format!("{}<{text}>", sign(*style)));
        shown.collect::<Vec<_>>().concat()
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        for (language, line, expected) in [
            ("rust", "let x = \"a\\\"b\"; // é", "k<let>.< x = >s<\"a\\\"b\">.<; >c<// é>"),
            ("py", "x = 1.5 # don't", ".<x = >n<1.5>.< >c<# don't>"),
            ("text", "let x", ".<let x>"),
            ("js", "don't", ".<don>s<'>.<t>"),
            ("diff", "-gone", "-<-gone>"),
        ] {
            assert_eq!(shown(line, language), expected, "{line}");
        }
    }

    #[test]
    fn nothing_is_lost() {
        for line in ["", "\"", "'é", "1é2", "\\", "世界 \"世", "//", "a\u{301}\""] {
            for language in ["rust", "sql", "diff", "x"] {
                let pieces = highlight(line, language, Colours::None);
                let text: String = pieces.into_iter().map(|(text, _)| text).collect();
                assert_eq!(text, line, "{language}");
            }
        }
    }
}
