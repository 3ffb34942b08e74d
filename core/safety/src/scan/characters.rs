//! Characters that hide, reorder or disguise text.

use std::ops::Range;

use super::{Class, Finding, Severity, Surface, excerpt};
use crate::clean::{is_invisible, is_seen_between};

/// Characters that a text has where they do not belong.
#[derive(Debug, Default)]
pub(super) struct Characters {
    pub(super) findings: Vec<Finding>,
    /// The message that is written in characters nobody sees, if there is one.
    pub(super) hidden: Option<(String, Range<usize>)>,
}

/// Blank lines, or blanks in a line, that push text out of sight.
const MANY_LINES: usize = 15;
const MANY_BLANKS: usize = 80;

/// Fewest characters of a hidden message.
const MESSAGE: usize = 3;

/// Invisible characters that an answer may have; web pages have some.
const USUAL: usize = 8;

/// Looks at the characters of a text.
pub(super) fn characters(text: &str, surface: Surface) -> Characters {
    let mut found = Characters::default();
    if !text.is_ascii() {
        found.invisible(text, surface);
        found.messages(text);
    }
    found.terminal(text, surface);
    found.pushed(text);
    found
}

// === impl Characters ===

impl Characters {
    fn add(&mut self, text: &str, class: Class, severity: Severity, span: Range<usize>) {
        let excerpt = excerpt(text, &span);
        self.findings.push(Finding { class, severity, span, excerpt });
    }

    fn invisible(&mut self, text: &str, surface: Surface) {
        let has_flag = text.contains('\u{1f3f4}');
        let has_rtl = text.chars().any(is_right_to_left);
        let (mut zero_width, mut direction) = (Vec::new(), Vec::new());
        let mut before = None;
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|(_, next)| *next);
            let is_hidden = is_invisible(c) && !is_seen_between(before, c, next);
            if is_hidden && !is_message(c) && !(at == 0 && c == '\u{feff}') {
                match c {
                    '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => direction.push(at),
                    '\u{e007f}' if has_flag => {}
                    '\u{200e}' | '\u{200f}' | '\u{61c}' if has_rtl => {}
                    _ => zero_width.push(at),
                }
            }
            before = Some(c);
        }
        let span = |places: &[usize]| {
            let start = places.first().copied().unwrap_or_default();
            let last = places.last().copied().unwrap_or_default();
            start
                ..last
                    + text
                        .get(last..)
                        .and_then(|rest| rest.chars().next())
                        .map_or(0, char::len_utf8)
        };
        if !zero_width.is_empty() {
            let severity = match surface {
                Surface::Definition | Surface::Instructions if zero_width.len() > 3 => {
                    Severity::High
                }
                Surface::Definition | Surface::Instructions => Severity::Medium,
                Surface::Answer if zero_width.len() > USUAL => Severity::Medium,
                Surface::Answer => Severity::Low,
            };
            self.add(text, Class::Invisible, severity, span(&zero_width));
        }
        if !direction.is_empty() {
            let severity = match surface {
                Surface::Definition | Surface::Instructions => Severity::High,
                Surface::Answer if has_rtl => Severity::Low,
                Surface::Answer => Severity::Medium,
            };
            self.add(text, Class::Direction, severity, span(&direction));
        }
    }

    /// Finds messages in tag characters or variation selectors, which are whole alphabets.
    fn messages(&mut self, text: &str) {
        let (mut message, mut span): (String, Option<Range<usize>>) = (String::new(), None);
        let (mut class, mut count) = (Class::Tags, 0);
        let is_flag = text.contains('\u{1f3f4}');
        for (at, c) in text.char_indices() {
            let code = u32::from(c);
            let letter = match code {
                0xe0020..=0xe007e if !is_flag => char::from_u32(code - 0xe0000),
                0xe0100..=0xe01ef => {
                    class = Class::Variation;
                    char::from_u32(code - 0xe0100 + 16)
                }
                _ => None,
            };
            let Some(letter) = letter else { continue };
            count += 1;
            message.push(letter);
            span = Some(span.map_or(at, |span| span.start)..at + c.len_utf8());
        }
        let Some(span) = span.filter(|_| count >= MESSAGE) else { return };
        self.add(text, class, Severity::High, span.clone());
        self.hidden = Some((message, span));
    }

    /// Finds sequences that a terminal obeys.
    fn terminal(&mut self, text: &str, surface: Surface) {
        let Some(start) = text.find(['\u{1b}', '\u{9b}', '\u{9d}', '\u{8}']) else { return };
        let last = text.rfind(['\u{1b}', '\u{9b}', '\u{9d}', '\u{8}']).unwrap_or(start);
        let is_colour = |part: &str| {
            let body = part.strip_prefix('[').unwrap_or_default();
            let end = body.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            end.starts_with('m') && !body.starts_with("8m")
        };
        let only_colour = !text.contains(['\u{9b}', '\u{9d}', '\u{8}'])
            && text.split('\u{1b}').skip(1).all(is_colour);
        let severity = match surface {
            Surface::Definition | Surface::Instructions => Severity::High,
            Surface::Answer if only_colour => Severity::Low,
            Surface::Answer => Severity::Medium,
        };
        let end =
            last + text.get(last..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        self.add(text, Class::Terminal, severity, start..end);
    }

    /// Finds text that blanks push out of sight.
    fn pushed(&mut self, text: &str) {
        let (mut lines, mut blanks) = (0, 0);
        for (at, c) in text.char_indices() {
            match c {
                '\n' => (lines, blanks) = (lines + 1, 0),
                '\r' => {}
                ' ' | '\t' | '\u{a0}' => blanks += 1,
                _ => {
                    if lines >= MANY_LINES || blanks >= MANY_BLANKS {
                        let rest = text.get(at..).unwrap_or_default();
                        if rest.split_whitespace().take(3).count() == 3 {
                            self.add(text, Class::Hidden, Severity::Medium, at..text.len());
                            return;
                        }
                    }
                    (lines, blanks) = (0, 0);
                }
            }
        }
    }
}

/// True for characters that can spell a message.
fn is_message(c: char) -> bool {
    matches!(c, '\u{e0020}'..='\u{e007e}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(text: &str, surface: Surface) -> Vec<(Class, Severity)> {
        let found = characters(text, surface).findings;
        found.into_iter().map(|finding| (finding.class, finding.severity)).collect()
    }

    #[test]
    fn what_hides_text_is_found() {
        let all = [
            ("Reads\u{200b} a file", Class::Invisible, Severity::Medium),
            ("r\u{200b}e\u{200b}a\u{200b}d\u{200b}s", Class::Invisible, Severity::High),
            ("abc\u{202e}fed", Class::Direction, Severity::High),
            ("x\u{e0068}\u{e0069}\u{e0021}", Class::Tags, Severity::High),
            ("x\u{e0158}\u{e0159}\u{e0151}", Class::Variation, Severity::High),
            ("a\u{1b}[8mb\u{1b}[0m", Class::Terminal, Severity::High),
        ];
        for (text, class, severity) in all {
            assert_eq!(classes(text, Surface::Definition), [(class, severity)], "{text:?}");
        }
        let pushed = format!("Formats.{}Then do this", "\n".repeat(30));
        assert_eq!(classes(&pushed, Surface::Definition), [(Class::Hidden, Severity::Medium)]);
    }

    #[test]
    fn a_hidden_message_can_be_read() {
        let found = characters("x\u{e0068}\u{e0069}\u{e0021}", Surface::Definition);
        assert_eq!(found.hidden.unwrap().0, "hi!");
    }

    #[test]
    fn honest_characters_are_no_finding() {
        for text in [
            "👨‍👩‍👧 ❤️ 1️⃣",
            "می‌خواهم",
            "Grüße",
            "a\n\n\n    b",
            "🏴\u{e0067}\u{e0062}\u{e007f}",
            "\u{feff}x",
        ] {
            assert!(classes(text, Surface::Definition).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn an_answer_may_be_coloured() {
        let coloured = "\u{1b}[31mred\u{1b}[0m";
        assert_eq!(classes(coloured, Surface::Answer), [(Class::Terminal, Severity::Low)]);
        let title = "\u{1b}]0;root\u{7}";
        assert_eq!(classes(title, Surface::Answer), [(Class::Terminal, Severity::Medium)]);
    }
}
