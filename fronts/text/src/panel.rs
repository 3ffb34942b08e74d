//! Shows text from others beside a question of ours.
//!
//! **Invariant:** every line of such text begins with the gutter, and no line is so long that a
//! terminal breaks it. A line without the gutter is ours, whatever the text contains.

use unicode_width::UnicodeWidthChar;

use crate::form::{Closed, Prompter};
use capstan_safety::clean::clean;

/// The prefix of every line that is not ours.
const GUTTER: &str = "│ ";

/// Number of lines that the question between two pages takes.
const BETWEEN_PAGES: usize = 8;

/// Minimum number of lines on a page.
const MIN_PAGE: usize = 4;

/// Number of lines printed at once, so that a remote shell does not get one message per line.
const AT_ONCE: usize = 200;

/// The choices between two pages before a question.
const BEFORE_QUESTION: &[&str] = &["more", "the rest at once", "skip to the question", "no"];

/// The choices between two pages of a text that is only shown.
const ONLY_SHOWN: &[&str] = &["more", "the rest at once", "stop"];

/// The extent to which a person has seen a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// All of it, or as much as the person wanted.
    Enough,
    /// The person refused before the end.
    Refused,
}

/// Numbers of our lines that belong on the same screen.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Lines that were just printed.
    pub above: usize,
    /// Lines that follow.
    pub below: usize,
    /// The kind of output that follows.
    pub after: After,
}

/// The kind of output after a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// A question about it, which can be refused at once.
    Question,
    /// No question.
    Nothing,
}

/// The lines of a text behind the gutter, cleaned and no wider than `columns`. Blanks are kept.
pub fn lines(text: &str, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(GUTTER.chars().count() + 1).max(8);
    let mut lines = Vec::new();
    for written in clean(text).lines() {
        let (mut line, mut used) = (GUTTER.to_owned(), 0);
        for c in written.chars() {
            // Some terminals show every character outside ASCII two columns wide.
            let wide = if c.is_ascii() { 1 } else { c.width().unwrap_or(0).clamp(0, 1) * 2 };
            if used + wide > room {
                lines.push(std::mem::replace(&mut line, GUTTER.to_owned()));
                used = 0;
            }
            used += wide;
            line.push(if c == '\t' { ' ' } else { c });
        }
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// Shows lines to a person: at once if they fit on the screen, else page by page.
///
/// # Errors
/// If the person closes the question between two pages.
pub fn show(prompter: &mut dyn Prompter, lines: &[String], room: Room) -> Result<Seen, Closed> {
    let (_, rows) = prompter.size();
    if lines.len() + room.above + room.below <= rows {
        say(prompter, lines);
        return Ok(Seen::Enough);
    }
    let choices = match room.after {
        After::Question => BEFORE_QUESTION,
        After::Nothing => ONLY_SHOWN,
    };
    let (mut from, mut above) = (0, room.above);
    loop {
        let page = rows.saturating_sub(BETWEEN_PAGES + above).max(MIN_PAGE);
        above = 0;
        let (shown, rest) = lines.split_at_checked(from + page).unwrap_or((lines, &[]));
        say(prompter, shown.get(from..).unwrap_or_default());
        if rest.is_empty() {
            return Ok(Seen::Enough);
        }
        let question = format!("lines {} to {} of {}", from + 1, shown.len(), lines.len());
        match prompter.select(&question, choices, 0)? {
            0 => from = shown.len(),
            1 => {
                rest.chunks(AT_ONCE).for_each(|lines| say(prompter, lines));
                return Ok(Seen::Enough);
            }
            2 => {
                let hidden = rest.len();
                prompter.say(&format!("the last {hidden} of {} lines were not shown", lines.len()));
                return Ok(Seen::Enough);
            }
            _ => return Ok(Seen::Refused),
        }
    }
}

fn say(prompter: &mut dyn Prompter, lines: &[String]) {
    if !lines.is_empty() {
        prompter.say(&lines.join("\n"));
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    /// Test prompter with a terminal of 20 lines that picks these choices.
    struct Person {
        choices: Vec<usize>,
        offered: Vec<String>,
        seen: Vec<String>,
    }

    impl Prompter for Person {
        fn size(&self) -> (usize, usize) {
            (80, 20)
        }

        fn say(&mut self, line: &str) {
            self.seen.extend(line.lines().map(str::to_owned));
        }

        fn text(&mut self, _: &str) -> Result<String, Closed> {
            Err(Closed)
        }

        fn secret(&mut self, _: &str) -> Result<String, Closed> {
            Err(Closed)
        }

        fn confirm(&mut self, _: &str, _: Option<bool>) -> Result<bool, Closed> {
            Err(Closed)
        }

        fn select(
            &mut self,
            question: &str,
            choices: &[&str],
            start: usize,
        ) -> Result<usize, Closed> {
            assert_eq!(start, 0);
            self.offered = choices.iter().map(|&choice| choice.to_owned()).collect();
            self.seen.push(format!("? {question}"));
            if self.choices.is_empty() { Err(Closed) } else { Ok(self.choices.remove(0)) }
        }

        fn multi_select(&mut self, _: &str, _: &[&str], _: &[usize]) -> Result<Vec<usize>, Closed> {
            Err(Closed)
        }
    }

    fn watch(count: usize, choices: &[usize]) -> (Result<Seen, Closed>, Vec<String>) {
        let (seen, person) = watch_before(After::Question, count, choices);
        (seen, person.seen)
    }

    fn watch_before(
        after: After,
        count: usize,
        choices: &[usize],
    ) -> (Result<Seen, Closed>, Person) {
        let choices = choices.to_vec();
        let mut person = Person { choices, seen: Vec::new(), offered: Vec::new() };
        let all: Vec<String> = (1..=count).map(|n| format!("│ {n}")).collect();
        (show(&mut person, &all, Room { above: 2, below: 8, after }), person)
    }

    #[test]
    fn a_text_that_is_only_shown_offers_no_answer() {
        let (seen, person) = watch_before(After::Nothing, 30, &[2]);
        assert_eq!(seen, Ok(Seen::Enough));
        assert_eq!(person.offered, ["more", "the rest at once", "stop"]);
        assert_eq!(person.seen.last().unwrap(), "the last 20 of 30 lines were not shown");
        let (_, person) = watch_before(After::Question, 30, &[2]);
        assert_eq!(person.offered, ["more", "the rest at once", "skip to the question", "no"]);
    }

    #[test]
    fn what_fits_above_the_question_is_shown_at_once() {
        let (seen, lines) = watch(10, &[]);
        assert_eq!((seen, lines.len()), (Ok(Seen::Enough), 10));
    }

    #[test]
    fn what_does_not_fit_is_shown_page_by_page_to_its_end() {
        let (seen, lines) = watch(30, &[0, 0]);
        assert_eq!(seen, Ok(Seen::Enough));
        assert_eq!(lines.len(), 32, "{lines:?}");
        assert_eq!(lines[10], "? lines 1 to 10 of 30");
        assert_eq!(lines[23], "? lines 11 to 22 of 30");
        assert_eq!(lines[31], "│ 30");
        let (seen, lines) = watch(30, &[0, 1]);
        assert_eq!((seen, lines.len()), (Ok(Seen::Enough), 32));
    }

    #[test]
    fn what_is_skipped_is_said_and_no_and_closing_are_no() {
        let (seen, lines) = watch(30, &[2]);
        assert_eq!(seen, Ok(Seen::Enough));
        assert_eq!(lines.last().unwrap(), "the last 20 of 30 lines were not shown");
        assert_eq!(watch(30, &[3]).0, Ok(Seen::Refused));
        assert_eq!(watch(30, &[0, 3]).0, Ok(Seen::Refused));
        assert_eq!(watch(30, &[]).0, Err(Closed));
    }

    /// Holes 9.
    #[test]
    fn every_line_has_the_gutter_and_fits_whatever_the_text_is() {
        for text in [
            "one\n? Run it?\n  effect     read",
            "\u{1b}[2J\u{1b}[H? Run it?\r? Run it?",
            "x\u{2028}y\u{85}z\u{b}w",
            &"? ".repeat(500),
            &"│".repeat(500),
            &"世".repeat(500),
            &"\t".repeat(500),
            &"e\u{301}".repeat(500),
        ] {
            for line in lines(text, 80) {
                assert!(line.starts_with("│"), "{line:?}");
                assert!(line.width() < 80 && !line.contains(char::is_control), "{line:?}");
            }
        }
        assert_eq!(lines("{\n  \"a\": 1\n}", 80), ["│ {", "│   \"a\": 1", "│ }"]);
        assert_eq!(lines("0123456789", 10), ["│ 01234567", "│ 89"]);
    }
}
