//! Finds the usage lines of a help text.

use super::Line;
use super::flag::{begins, is_placeholder};

/// Maximum number of usage lines.
const MAX_USAGES: usize = 64;

/// Maximum number of lines that one usage is wrapped into.
const MAX_WRAPPED: usize = 60;

/// The usage lines of a text.
pub(super) struct Synopsis {
    /// The text after the program's name and the typed words, each usage on one line.
    pub(super) usages: Vec<String>,
    /// Marks the lines of the text that they occupy.
    pub(super) used: Vec<bool>,
}

/// Finds the usage lines. `words` are the program and the words typed before the help flag.
pub(super) fn find(lines: &[Line], words: &[&str]) -> Synopsis {
    let name = words.first().copied().unwrap_or_default();
    let mut finder = Finder { lines, name, whole: Vec::new(), used: vec![false; lines.len()] };
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        match opening(&line.text) {
            Some(rest) if finder.whole.len() < MAX_USAGES => at = finder.block(at, rest),
            Some(_) | None => at += 1,
        }
    }
    if finder.whole.is_empty() {
        finder.unmarked();
    }
    finder.mark_grammar();
    let usages = finder.whole.iter().map(|usage| after_words(usage, words)).collect();
    Synopsis { usages, used: finder.used }
}

struct Finder<'a> {
    lines: &'a [Line],
    /// The program's name.
    name: &'a str,
    whole: Vec<String>,
    used: Vec<bool>,
}

// === impl Finder ===

impl Finder<'_> {
    /// Parses the block that starts at the line `at`; returns the line after it.
    fn block(&mut self, at: usize, rest: &str) -> usize {
        let opener = self.lines.get(at).map_or(0, |line| line.indent);
        self.mark(at);
        let before = self.whole.len();
        // The first word is the program's name, whatever name it was started with.
        let mut prog = rest.split_whitespace().next().unwrap_or(self.name).to_owned();
        if !rest.is_empty() {
            self.whole.push(rest.to_owned());
        }
        let end = at + 1 + MAX_WRAPPED;
        for (at, line) in self.lines.iter().enumerate().take(end).skip(at + 1) {
            let begun = self.whole.len() > before;
            let first = line.text.split_whitespace().next().unwrap_or_default();
            let plain = line.text.strip_prefix("or:").map(str::trim_start);
            match plain {
                None if first.is_empty() && begun => return at,
                None if first.is_empty() => {}
                None if describes_flag(&line.text) => return at,
                Some(another) => self.whole.push(another.to_owned()),
                // Descriptions may be next to usages.
                None if first == prog || first == self.name => {
                    let usage = line.text.split("  ").next().unwrap_or_default();
                    self.whole.push(usage.to_owned());
                }
                None if begun && line.indent > opener => self.append(&line.text),
                None if !begun && (line.indent > opener || is_placeholder(first)) => {
                    first.clone_into(&mut prog);
                    self.whole.push(line.text.clone());
                }
                None => return at,
            }
            self.mark(at);
            if self.whole.len() >= MAX_USAGES {
                return at + 1;
            }
        }
        end.min(self.lines.len())
    }

    /// Marks lines such as `OPTIONS := { -a | -b }`, which describe no flag reliably.
    fn mark_grammar(&mut self) {
        let mut open = false;
        for (at, line) in self.lines.iter().enumerate() {
            open = (open && !line.text.is_empty()) || line.text.contains(":= {");
            if open {
                self.mark(at);
            }
        }
    }

    fn append(&mut self, text: &str) {
        if let Some(last) = self.whole.last_mut() {
            last.push(' ');
            last.push_str(text);
        }
    }

    fn mark(&mut self, at: usize) {
        if let Some(used) = self.used.get_mut(at) {
            *used = true;
        }
    }

    /// Parses a usage on the first line without a heading: `systemctl [OPTIONS...] COMMAND`.
    fn unmarked(&mut self) -> Option<()> {
        let first = self.lines.iter().enumerate().find(|(_, line)| !line.text.is_empty());
        let (at, line) = first?;
        let rest = line.text.strip_prefix(self.name)?.strip_prefix(' ')?;
        let first = rest.split_whitespace().next()?;
        if is_placeholder(first) || first.starts_with(['-', '<']) {
            self.whole.push(line.text.clone());
            self.mark(at);
        }
        Some(())
    }
}

/// The text after `usage:` in a line that starts a block of usages.
fn opening(text: &str) -> Option<&str> {
    let word = text.split([':', ' ']).next()?;
    let rest = text.get(word.len()..)?.trim_start_matches(':').trim_start();
    match word.to_ascii_lowercase().as_str() {
        "usage" | "syntax" if text.get(word.len()..)?.starts_with(':') || rest.is_empty() => {
            Some(rest)
        }
        "synopsis" if rest.is_empty() => Some(rest),
        _ => None,
    }
}

/// True if a line describes a flag, and is not a wrapped usage that begins with one.
fn describes_flag(text: &str) -> bool {
    text.starts_with('-') && begins(text) && (text.contains("  ") || text.contains(", -"))
}

/// The usage without the program's name and the typed words after it.
fn after_words(usage: &str, words: &[&str]) -> String {
    let first = usage.split_whitespace().next().unwrap_or_default();
    let is_name = !first.starts_with(['[', '<', '-', '{', '(']);
    let mut rest =
        if is_name { usage.trim_start().get(first.len()..).unwrap_or_default() } else { usage };
    for word in words.iter().skip(1) {
        let next = rest.trim_start();
        if let Some(after) = next.strip_prefix(word)
            && after.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-')
        {
            rest = after;
        }
    }
    rest.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::clean;
    use super::*;

    #[track_caller]
    fn check(text: &str, words: &[&str], expected: &[&str]) {
        assert_eq!(find(&clean(text.as_bytes()), words).usages, expected);
    }

    #[test]
    fn usage_lines_are_found_however_they_are_announced() {
        check("Usage: x [OPTIONS] FILE\n\nText", &["x"], &["[OPTIONS] FILE"]);
        check("usage: x a <b>\n   or: x c [d]\n          [e]\n\n", &["x"], &["a <b>", "c [d] [e]"]);
        check("Usage:\n  k get [flags]\n\nk get does", &["k", "get"], &["[flags]"]);
        check("Usage:\nnpm install [<p> ...]\n\nOptions:", &["npm", "install"], &["[<p> ...]"]);
        check(
            "NAME\n   g-a - add\n\nSYNOPSIS\n       g a [-v]\n           <p>\n\nDESC",
            &["g", "a"],
            &["[-v] <p>"],
        );
        check("s [OPTIONS...] COMMAND ...\n\nQuery", &["s"], &["[OPTIONS...] COMMAND ..."]);
        check(
            "usage: venv [-h] DIR\n            [DIR ...]\n\nCreates",
            &["python3", "-m", "venv"],
            &["[-h] DIR [DIR ...]"],
        );
        check("usage: python -m json.tool [-h]", &["python3", "-m", "json.tool"], &["[-h]"]);
        check("No use here.\nUsage notes are elsewhere.", &["x"], &[]);
    }
}
