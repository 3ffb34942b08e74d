//! Splits a usage line into words, optional parts, groups, alternatives and dots.

/// Maximum nesting of brackets; deeper ones are parsed as words.
const MAX_DEPTH: usize = 12;

/// Maximum number of parts of one line.
const MAX_PARTS: usize = 2000;

/// A part of a usage line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A word as written: `file`, `<file>`, `--all`, `TYPE[.VERSION]`.
    Word(String),
    /// `[…]`
    Optional(Vec<Part>),
    /// `(…)` or `{…}`
    Group(Vec<Part>),
    /// `|`
    Or,
    /// `...`
    Dots,
}

/// Splits a usage line into parts.
pub(super) fn parse(text: &str) -> Vec<Part> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { chars: &chars, at: 0, left: MAX_PARTS };
    parser.parts(None, 0)
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
    /// Number of parts that may still be created.
    left: usize,
}

// === impl Parser ===

impl Parser<'_> {
    fn parts(&mut self, close: Option<char>, depth: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek(0) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            match c {
                c if Some(c) == close => {
                    self.at += 1;
                    break;
                }
                c if c.is_whitespace() || c == ',' || c == ';' => self.at += 1,
                '|' => {
                    self.at += 1;
                    parts.push(Part::Or);
                }
                '.' if self.starts("...") => {
                    self.at += 3;
                    parts.push(Part::Dots);
                }
                '…' => {
                    self.at += 1;
                    parts.push(Part::Dots);
                }
                '[' if depth < MAX_DEPTH => {
                    self.at += 1;
                    parts.push(Part::Optional(self.parts(Some(']'), depth + 1)));
                }
                '(' if depth < MAX_DEPTH => {
                    self.at += 1;
                    parts.push(Part::Group(self.parts(Some(')'), depth + 1)));
                }
                '{' if depth < MAX_DEPTH && !self.is_list() => {
                    self.at += 1;
                    parts.push(Part::Group(self.parts(Some('}'), depth + 1)));
                }
                ']' | ')' | '}' => self.at += 1,
                _ => parts.push(Part::Word(self.word())),
            }
        }
        parts
    }

    /// Parses a word up to white space or a bracket that it did not open.
    fn word(&mut self) -> String {
        let (mut word, mut angles, mut brackets) = (String::new(), 0_usize, Vec::new());
        while let Some(c) = self.peek(0) {
            let inside = angles > 0 || !brackets.is_empty();
            let ends =
                c.is_whitespace() || c == '|' || c == ';' || (c == ',' && brackets.is_empty());
            if !inside
                && (ends
                    || matches!(c, ']' | ')' | '}')
                    || self.starts("...") && !word.ends_with('='))
            {
                break;
            }
            match c {
                '<' => angles += 1,
                '>' => angles = angles.saturating_sub(1),
                '[' if angles == 0 => brackets.push(']'),
                '(' if angles == 0 => brackets.push(')'),
                '{' if angles == 0 => brackets.push('}'),
                c if brackets.last() == Some(&c) => {
                    brackets.pop();
                }
                _ => {}
            }
            word.push(c);
            self.at += 1;
        }
        if word.is_empty() {
            // Consumes any other character, so that the loop ends.
            word.extend(self.peek(0));
            self.at += 1;
        }
        word
    }

    /// True if a brace starts a list of choices: `{a,b}` without white space.
    fn is_list(&self) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let inner = rest.iter().take_while(|c| **c != '}');
        inner.clone().any(|c| *c == ',') && !inner.clone().any(|c| c.is_whitespace() || *c == '|')
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(offset, c)| self.peek(offset) == Some(c))
    }

    fn peek(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Part {
        Part::Word(text.to_owned())
    }

    #[test]
    fn brackets_alternatives_and_dots_are_told_apart() {
        let parts = parse("[-q | --quiet] <a b>... (X | TYPE[.V]/NAME) --m=<x|y> {a,b} ...");
        let expected = [
            Part::Optional(vec![word("-q"), Part::Or, word("--quiet")]),
            word("<a b>"),
            Part::Dots,
            Part::Group(vec![word("X"), Part::Or, word("TYPE[.V]/NAME")]),
            word("--m=<x|y>"),
            word("{a,b}"),
            Part::Dots,
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_never_closes_has_an_end() {
        for text in ["[[[[", "<a", "]]]", "a [b (c {d", "(|", "[".repeat(100_000).as_str()] {
            parse(text);
        }
    }
}
