//! Finds the flags of a help text, each with its description.

use super::flag::{self, Written};
use super::{Flag, Line, add_flag, is_heading};

/// Maximum number of lines of one description.
const MAX_DESCRIPTION: usize = 30;

/// Finds the flags that have their own lines. `used` marks lines with other content.
pub(super) fn find(lines: &[Line], used: &[bool]) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut open: Option<Open> = None;
    let (mut examples, mut shared) = (false, false);
    let mut prose = Prose::default();
    for (line, used) in lines.iter().zip(used) {
        if *used {
            close(&mut flags, open.take());
            continue;
        }
        if line.indent < 2 && !line.text.is_empty() && !flag::begins(&line.text) {
            let heading = line.text.to_ascii_lowercase();
            examples = is_heading(&line.text) && heading.contains("example");
            shared = is_heading(&line.text)
                && (heading.contains("global") || heading.contains("inherited"));
        }
        if examples {
            close(&mut flags, open.take());
            continue;
        }
        if let Some(entry) = &mut open
            && entry.takes(line)
        {
            prose = Prose::default();
            continue;
        }
        close(&mut flags, open.take());
        if prose.goes_on(line) {
            continue;
        }
        let several = beside(&line.text);
        open = if several.is_empty() { begin(line) } else { None };
        if let Some(open) = &mut open {
            open.flag.shared = shared;
        }
        for flag in several {
            add_flag(&mut flags, flag);
        }
    }
    close(&mut flags, open);
    flags
}

/// A paragraph, in which a line may happen to begin with a flag.
#[derive(Default)]
struct Prose {
    indent: Option<usize>,
}

/// A flag whose description may continue.
struct Open {
    flag: Flag,
    indent: usize,
    /// The column of its description, once it is known.
    column: Option<usize>,
    description: String,
    lines: usize,
    /// True after an empty line.
    parted: bool,
}

fn begin(line: &Line) -> Option<Open> {
    if !flag::begins(&line.text) || line.text.starts_with('[') {
        return None;
    }
    let Written { flag, rest, column } = flag::read(&line.text)?;
    let column = column.map(|column| line.indent + column);
    let description = rest.to_owned();
    Some(Open { flag, indent: line.indent, column, description, lines: 1, parted: false })
}

fn close(flags: &mut Vec<Flag>, open: Option<Open>) {
    if let Some(Open { flag, description, .. }) = open {
        add_flag(flags, flag::describe(flag, &description));
    }
}

// === impl Prose ===

impl Prose {
    /// True if a line belongs to the paragraph above it.
    fn goes_on(&mut self, line: &Line) -> bool {
        let is_flag = flag::begins(&line.text);
        let same = self.indent == Some(line.indent) && !line.text.contains("  ");
        if is_flag && same {
            return true;
        }
        let words = line.text.split_whitespace().count();
        let begins = !is_flag && words > 3 && !is_heading(&line.text);
        self.indent = begins.then_some(line.indent);
        false
    }
}

// === impl Open ===

impl Open {
    /// Adds a line if it belongs to the description.
    fn takes(&mut self, line: &Line) -> bool {
        if line.text.is_empty() {
            self.parted = true;
            return true;
        }
        let deeper = match self.column {
            // Wrapped lines may start slightly left of the first.
            Some(column) => line.indent + 2 >= column && line.indent > self.indent,
            None => line.indent > self.indent + 1,
        };
        let is_flag = flag::begins(&line.text);
        // A deeper line that looks like a flag is one, unless the description has its own column.
        let free = self.column.is_none() && is_flag;
        if !deeper || free || self.lines >= MAX_DESCRIPTION {
            return false;
        }
        if self.parted && (is_flag || self.column.is_none()) {
            return false;
        }
        self.column = self.column.or(Some(line.indent));
        self.lines += 1;
        if !self.parted && self.description.len() < 2 * super::MAX_SUMMARY {
            if !self.description.is_empty() {
                self.description.push(' ');
            }
            self.description.push_str(&line.text);
        }
        true
    }
}

/// Parses flags that share one line without descriptions.
///
/// For example `-depth -maxdepth LEVELS -mount`, and alternatives in brackets:
/// `[-S|--save|--no-save] [--omit <dev|optional>]`.
fn beside(text: &str) -> Vec<Flag> {
    let mut flags = Vec::new();
    if text.starts_with('[') && flag::begins(text) {
        for group in text.split(['[', ']']) {
            flags.extend(alternatives(group));
        }
        return flags;
    }
    let words = || text.split_whitespace();
    // `-h --help` is one flag.
    if let [first, second, ..] = *words().collect::<Vec<_>>()
        && first.len() == 2
        && second.starts_with("--")
    {
        return flags;
    }
    let dashed = words().filter(|word| flag::begins(word)).count();
    if !flag::begins(text)
        || dashed < 2
        || 2 * dashed < words().count()
        || text.contains("  ")
        || text.contains([',', '|'])
    {
        return flags;
    }
    let mut rest = text;
    while let Some((found, after)) = flag::specs_one(rest) {
        flags.push(found);
        rest = after.trim_start();
        while !rest.is_empty() && !flag::begins(rest) {
            rest = rest.split_once(' ').map_or("", |(_, after)| after.trim_start());
        }
    }
    flags
}

/// The flags of `-q|--quiet` or `--a|--b <x>`: a short and a long name are one flag.
pub(super) fn alternatives(group: &str) -> Vec<Flag> {
    let group = group.trim();
    if !flag::begins(group) {
        return Vec::new();
    }
    let mut flags: Vec<Flag> = Vec::new();
    let mut rest = group;
    while let Some((found, after)) = flag::specs_one(rest) {
        match flags.last_mut() {
            Some(last) if is_short(last) && found.long().is_some() => {
                last.merge(found);
            }
            _ => flags.push(found),
        }
        rest = after.trim_start().trim_start_matches('|').trim_start();
    }
    flags
}

/// True if a flag has only a short name.
fn is_short(flag: &Flag) -> bool {
    flag.names.len() == 1 && flag.short().is_some()
}
