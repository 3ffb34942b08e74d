//! Makes text of other programs safe to read.
//!
//! **Invariant:** the output has no control character except newline and tab, and no invisible
//! character. So no server can move the cursor, recolour the screen, set the title, reorder the
//! text, or hide words from the person while a model reads them.
//!
//! Colour (`ESC [ … m`) is dropped, because honest programs use it and it carries no words. Every
//! other such character is shown as `\u{1b}`, because dropped text would be hidden text again.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Maximum number of marks on one letter; more would cover the neighbouring lines.
const MAX_MARKS: usize = 8;

/// Cleans text for a terminal: no control sequence or invisible character remains.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = None;
    let mut marks = 0;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = after_colour(rest) {
            rest = after;
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let next = rest.chars().next();
        marks = if c.width() == Some(0) { marks + 1 } else { 0 };
        if c == '\r' && next == Some('\n') {
            continue;
        }
        if marks <= MAX_MARKS && is_seen(before, c, next) {
            clean.push(c);
        } else {
            clean.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    Cow::Owned(clean)
}

/// Cleans text for one line of a log: line breaks are escaped too.
pub fn visible(text: &str) -> String {
    escape(text, |c| c != '\n', |c, shown| shown.extend(c.escape_default()))
}

/// Cleans text for use between backquotes: it cannot end the quotes or the line.
pub fn quotable(text: &str) -> String {
    escape(text, |c| !matches!(c, '\n' | '\t' | '`'), |c, shown| shown.extend(c.escape_unicode()))
}

/// Escapes each character that is invisible or that `allows` refuses.
fn escape(
    text: &str,
    allows: impl Fn(char) -> bool,
    write_out: impl Fn(char, &mut String),
) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut before, mut chars) = (None, text.chars().peekable());
    while let Some(c) = chars.next() {
        if allows(c) && is_seen(before, c, chars.peek().copied()) {
            shown.push(c);
        } else {
            write_out(c, &mut shown);
        }
        before = Some(c);
    }
    shown
}

/// Selects the coloured form of the character before it.
const EMOJI_STYLE: char = '\u{fe0f}';

/// Joins the characters on both sides.
const JOINER: char = '\u{200d}';

/// Separates the characters on both sides.
const NON_JOINER: char = '\u{200c}';

/// The text after a colour sequence at its beginning.
fn after_colour(text: &str) -> Option<&str> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let after =
        parameters.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':'));
    after.strip_prefix('m')
}

/// True if a character that is [invisible](is_invisible) by itself belongs between its neighbours:
/// the parts of an emoji, and joiners in scripts that need them.
pub(crate) fn is_seen_between(before: Option<char>, c: char, next: Option<char>) -> bool {
    is_seen(before, c, next)
}

/// True if `c` is visible in this context.
fn is_seen(before: Option<char>, c: char, next: Option<char>) -> bool {
    match c {
        '\n' | '\t' => true,
        EMOJI_STYLE => before.is_some_and(|before| is_picture(before) || is_keycap(before)),
        JOINER | NON_JOINER => match (before, next) {
            (Some(before), Some(next)) => joins(before) && joins(next),
            (Some(_) | None, _) => false,
        },
        _ => !c.is_control() && !is_invisible(c),
    }
}

/// True if a joiner beside `c` is correct spelling: pictures, and scripts from Arabic to Sinhala.
fn joins(c: char) -> bool {
    is_picture(c) || c == EMOJI_STYLE || matches!(c, '\u{620}'..='\u{dff}')
}

fn is_picture(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        | '\u{1f000}'..='\u{1faff}')
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// True if a character is invisible, or changes the order in which text is read.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        // Soft hyphen, joiners and invisible fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}'
        // Zero width, direction marks, line and paragraph separators.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        // Variation selectors, interlinear annotations, musical controls.
        | '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{1bca0}'..='\u{1bca3}'
        // Tags and the second set of variation selectors: a complete invisible alphabet.
        | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, shown: &str) {
        assert_eq!(clean(written), shown, "{written:?}");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        check("\u{1b}[2J\u{1b}[Hhello", "\\u{1b}[2J\\u{1b}[Hhello");
        check("a\u{1b}[1A\u{1b}[2Kb", "a\\u{1b}[1A\\u{1b}[2Kb");
        check("\u{1b}]0;root@prod\u{7}", "\\u{1b}]0;root@prod\\u{7}");
        check("\u{1b}]8;;http://evil\u{1b}\\bank\u{1b}]8;;\u{1b}\\", {
            "\\u{1b}]8;;http://evil\\u{1b}\\bank\\u{1b}]8;;\\u{1b}\\"
        });
        check("\u{1b}]52;c;cm0gLXJm\u{7}", "\\u{1b}]52;c;cm0gLXJm\\u{7}");
        check("\u{1b}P1$r\u{1b}\\", "\\u{1b}P1$r\\u{1b}\\");
        check("\u{1b}c", "\\u{1b}c");
        check("\u{9b}31mred\u{9d}0;t\u{9c}", "\\u{9b}31mred\\u{9d}0;t\\u{9c}");
        check("safe\rrm -rf", "safe\\u{d}rm -rf");
        check("good\u{8}\u{8}\u{8}\u{8}evil", "good\\u{8}\\u{8}\\u{8}\\u{8}evil");
        check("\u{0}\u{b}\u{c}\u{7f}", "\\u{0}\\u{b}\\u{c}\\u{7f}");
    }

    #[test]
    fn what_a_reader_cannot_see_is_shown() {
        check("user\u{202e}txt.exe", "user\\u{202e}txt.exe");
        check("\u{2066}a\u{2069}\u{200f}", "\\u{2066}a\\u{2069}\\u{200f}");
        check("pa\u{200b}ss", "pa\\u{200b}ss");
        check("x\u{e0041}\u{e007f}", "x\\u{e0041}\\u{e007f}");
        check("\u{feff}{}", "\\u{feff}{}");
        check("a\u{fe0f}b\u{e0100}", "a\\u{fe0f}b\\u{e0100}");
        check("a\u{200d}b", "a\\u{200d}b");
        check("😀\u{200d}", "😀\\u{200d}");
        check("😀\u{fe0f}\u{fe0f}", "😀\u{fe0f}\\u{fe0f}");
        check("one\u{2028}two", "one\\u{2028}two");
        check("soft\u{ad}hyphen \u{3164}", "soft\\u{ad}hyphen \\u{3164}");
    }

    #[test]
    fn colour_is_dropped_and_cannot_hide_a_sequence_in_another() {
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}[38:2::1:2:3mx\u{1b}[m", "x");
        check("\u{1b}[8mconcealed", "concealed");
        check("\u{1b}\u{1b}[0m[2J", "\\u{1b}[2J");
        check("\u{1b}[0\u{1b}[0mm", "\\u{1b}[0m");
        check("\u{1b}[0;evil", "\\u{1b}[0;evil");
    }

    #[test]
    fn marks_do_not_climb_over_other_lines() {
        let zalgo = format!("z{}", "\u{301}".repeat(30));
        let shown = clean(&zalgo);
        assert_eq!(shown.matches('\u{301}').count(), MAX_MARKS);
        assert_eq!(shown.matches("\\u{301}").count(), 30 - MAX_MARKS);
    }

    #[test]
    fn honest_text_stays_as_it_is() {
        for text in ["", "plain\n\ttext", "Grüße, 世界", "👨‍👩‍👧 ❤️ 1️⃣", "می‌خواهم", "क्‍ष", "e\u{301}"]
        {
            check(text, text);
        }
        check("a\r\nb\r\n", "a\nb\n");
        assert!(matches!(clean("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn nothing_that_comes_out_is_cleaned_further() {
        let all: String = ('\0'..='\u{3000}').chain('\u{e0000}'..='\u{e0200}').collect();
        let once = clean(&all).into_owned();
        assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
        assert_eq!(clean(&once), once);
    }

    #[test]
    fn a_line_of_a_log_stays_one_line() {
        let text = "a\tü \u{1b}[2J\r\u{9b}x\u{202e}y\u{7f}\n";
        let shown = r"ü \u{1b}[2J\r\u{9b}x\u{202e}y\u{7f}\n";
        assert_eq!(visible(text), format!("a\t{shown}"));
    }

    #[test]
    fn a_name_cannot_end_its_quotes_or_its_line() {
        assert_eq!(quotable("a`b\n\t\u{202e}c❤️"), "a\\u{60}b\\u{a}\\u{9}\\u{202e}c❤️");
    }
}
