//! Finds the subcommands of a help text.

use super::flag::{begins, is_placeholder};
use super::walk::arguments;
use super::{Line, MAX_FOUND, Subcommand, is_heading, shorten};

/// Maximum length of a subcommand's name.
const MAX_NAME: usize = 60;

/// Words in a heading above subcommands.
const COMMAND_WORDS: &[&str] =
    &["command", "commands", "subcommand", "subcommands", "functions", "applets", "verbs"];

/// Words in a heading above other lists, which take precedence.
const OTHER_WORDS: &[&str] = &[
    "option",
    "options",
    "flag",
    "flags",
    "alias",
    "aliases",
    "interfaces",
    "formats",
    "guides",
    "topics",
    "examples",
    "example",
    "environment",
    "usage",
    "arguments",
    "variables",
    "learn",
    "configuration",
    // Other programs, found in `PATH` or installed with this one.
    "external",
    "extension",
    "extensions",
    "plugin",
    "plugins",
];

/// File extensions of scripts, which are never subcommands.
const SCRIPTS: &[&str] =
    &[".sh", ".bash", ".py", ".pl", ".rb", ".js", ".exe", ".bat", ".cmd", ".ps1"];

/// Subcommands about the program itself.
const OWN: &[&str] = &["help", "completion", "completions"];

/// Finds the subcommands that the text lists. `used` marks lines with other content.
pub(super) fn find(lines: &[Line], used: &[bool]) -> Vec<Subcommand> {
    let mut finder = Finder::default();
    for (at, line) in lines.iter().enumerate() {
        if used.get(at) == Some(&true) {
            finder.inside = false;
            continue;
        }
        finder.take(line, lines.get(at + 1..).unwrap_or_default());
    }
    finder.add_grammar(lines);
    // If a list shows arguments, entries without any take none.
    let shown = finder.found.iter().filter(|entry| entry.usage.is_some()).count();
    if shown > 2 {
        for entry in finder.found.iter_mut().filter(|entry| entry.usage.is_none()) {
            entry.usage = Some(Box::new(arguments("")));
        }
    }
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Vec<Subcommand>,
    /// True below a heading of subcommands.
    inside: bool,
    /// The indentation of the entries below that heading.
    indent: Option<usize>,
    /// True if the names are in columns without indentation.
    columns: bool,
    /// The only names below `{a,b}`, the choices of a subparser.
    only: Option<Vec<String>>,
}

// === impl Finder ===

impl Finder {
    fn take(&mut self, line: &Line, following: &[Line]) {
        if line.text.is_empty() {
            return;
        }
        if is_command_heading(line, following) {
            (self.inside, self.indent, self.only) = (true, None, None);
            return;
        }
        if let Some(names) = subparser(line, following) {
            (self.inside, self.indent, self.only) = (true, None, Some(names));
            return;
        }
        if !self.inside {
            return;
        }
        if self.take_list(&line.text) {
            self.columns = line.indent == 0;
            return;
        }
        if line.indent == 0 && self.columns && is_name(&line.text) {
            self.add(Subcommand { name: line.text.clone(), ..Subcommand::default() });
            return;
        }
        if line.indent == 0 {
            self.inside = Self::goes_on(line, following);
            self.indent = None;
            return;
        }
        // The choices of a subparser are above their descriptions.
        if line.text.starts_with('{') {
            self.indent = None;
            return;
        }
        let indent = *self.indent.get_or_insert(line.indent);
        if line.indent < indent && self.only.is_some() {
            (self.inside, self.only) = (false, None);
            return;
        }
        if line.indent < indent {
            self.inside = !is_heading(&line.text);
            self.indent = Some(line.indent);
        }
        if line.indent <= indent
            && let Some(entry) = entry(&line.text)
        {
            self.add(entry);
        }
    }

    /// True if a line without indentation is another heading over subcommands.
    fn goes_on(line: &Line, following: &[Line]) -> bool {
        let words = lower_words(&line.text);
        let other = words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()));
        let next = following.iter().find(|line| !line.text.is_empty());
        let above_entries = next.is_some_and(|next| next.indent > 0 && entry(&next.text).is_some());
        above_entries && !other && !line.text.ends_with('.')
    }

    /// Reads a line that consists of names: `access, adduser, audit`, or columns of names.
    fn take_list(&mut self, text: &str) -> bool {
        let by_comma: Vec<&str> =
            text.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
        let by_gap: Vec<&str> = text.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
        let comma = text.contains(',') && by_comma.len() > 1 || text.ends_with(',');
        let names = if comma { by_comma } else { by_gap };
        let all = names
            .iter()
            .all(|name| is_name(name) && !name.contains('.') || *name == "[" || *name == "[[");
        if !all || names.len() < if comma { 1 } else { 3 } {
            return false;
        }
        for name in names.into_iter().filter(|name| is_name(name)) {
            self.add(Subcommand { name: name.to_owned(), ..Subcommand::default() });
        }
        true
    }

    fn add(&mut self, entry: Subcommand) {
        if self.only.as_ref().is_some_and(|only| !only.contains(&entry.name)) {
            return;
        }
        let alias = entry.summary.to_ascii_lowercase().starts_with("alias:");
        if alias || OWN.contains(&entry.name.as_str()) || self.found.len() >= MAX_FOUND {
            return;
        }
        match self.found.iter_mut().find(|known| known.name == entry.name) {
            Some(known) if known.summary.is_empty() => known.summary = entry.summary,
            Some(_) => {}
            None => self.found.push(entry),
        }
    }

    /// Reads the words of `OBJECT := { address | link }`.
    fn add_grammar(&mut self, lines: &[Line]) {
        let mut rest = lines.iter();
        while let Some(line) = rest.next() {
            let Some((left, right)) = line.text.split_once(":=") else { continue };
            let name = left.split_whitespace().next_back().unwrap_or_default();
            if !["OBJECT", "COMMAND", "SUBCOMMAND"].contains(&name) {
                continue;
            }
            let mut text = right.to_owned();
            for line in rest.by_ref().take(40) {
                if text.contains('}') {
                    break;
                }
                text.push(' ');
                text.push_str(&line.text);
            }
            let inner = text.split('}').next().unwrap_or_default();
            let words = inner.split(['{', '|']).map(str::trim).filter(|word| is_name(word));
            for name in words {
                self.add(Subcommand { name: name.to_owned(), ..Subcommand::default() });
            }
        }
    }
}

/// The choices of a subparser, if the first of them is described below them.
fn subparser(line: &Line, following: &[Line]) -> Option<Vec<String>> {
    let inner = line.text.strip_prefix('{')?.strip_suffix('}')?;
    let names: Vec<String> = inner.split(',').map(|name| name.trim().to_owned()).collect();
    let next = following.first().filter(|next| next.indent > line.indent)?;
    let described = entry(&next.text)?;
    names.contains(&described.name).then_some(names)
}

/// True if a line is a heading above subcommands.
fn is_command_heading(line: &Line, following: &[Line]) -> bool {
    let text = line.text.as_str();
    if line.indent > 2 || text.len() > 120 || text.ends_with(['.', ',']) || begins(text) {
        return false;
    }
    let words = lower_words(text);
    let commands = words.iter().any(|word| COMMAND_WORDS.contains(&word.as_str()));
    let other = words.iter().any(|word| OTHER_WORDS.contains(&word.as_str()));
    let bare = text.trim_start_matches(['[', '<']);
    let next = following.iter().find(|line| !line.text.is_empty());
    let above = next.is_some_and(|next| next.indent > line.indent || is_columns(&next.text));
    commands
        && !other
        && bare.len() == text.len()
        && (above || text.ends_with(':'))
        && (is_heading(text) || entry(text).is_none_or(|entry| entry.summary.is_empty()))
}

fn is_columns(text: &str) -> bool {
    let names: Vec<&str> = text.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
    names.len() > 1 && names.iter().all(|name| is_name(name))
}

fn lower_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect()
}

/// Parses `name, alias <args>   what it does`.
pub(super) fn entry(text: &str) -> Option<Subcommand> {
    let (left, summary) = columns(text);
    let (first, mut rest) = left.split_once(' ').unwrap_or((left, ""));
    let name = first.trim_end_matches([',', ':', '*']);
    if !is_name(name) {
        return None;
    }
    let (mut aliases, mut shown) = (Vec::new(), String::new());
    let mut listed = first.ends_with(',');
    while let (word, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim(), ""))
        && !word.is_empty()
    {
        if listed || word.starts_with('(') {
            let alias = word.trim_matches(['(', ')', ',']);
            if !is_name(alias) {
                return None;
            }
            aliases.push(alias.to_owned());
            listed = word.ends_with(',');
        } else if is_placeholder(word.trim_end_matches("...")) || word == "..." || word == "|" {
            shown.push(' ');
            shown.push_str(word);
        } else {
            break;
        }
        rest = after;
    }
    let summary = match (rest.trim(), summary, shown.is_empty()) {
        ("", summary, _) => summary.unwrap_or_default(),
        // The arguments leave no room for a gap.
        (rest, None, false) => rest,
        // Prose, not an entry of a list.
        _ => return None,
    };
    let usage = (!shown.is_empty()).then(|| Box::new(arguments(&shown)));
    Some(Subcommand { name: name.to_owned(), aliases, summary: shorten(summary), usage })
}

/// Splits an entry from its description, at a gap or at a dash.
fn columns(text: &str) -> (&str, Option<&str>) {
    let gap = text
        .split_once("  ")
        .map(|(left, right)| (left, right.trim_start().trim_start_matches("- ")));
    let dash = text.split_once(" - ");
    match (gap, dash) {
        (Some((left, _)), Some((shorter, right))) if shorter.len() < left.len() => {
            (shorter, Some(right))
        }
        (Some((left, right)), _) | (None, Some((left, right))) => (left, Some(right)),
        (None, None) => (text, None),
    }
}

/// True if a word can be the name of a subcommand.
pub(super) fn is_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
    let begins = word.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let shouts = word.chars().any(|c| c.is_ascii_uppercase())
        && !word.chars().any(|c| c.is_ascii_lowercase());
    begins
        && !shouts
        && word.len() <= MAX_NAME
        && word.chars().all(fits)
        && !word.ends_with(['.', ':', '-'])
        && !SCRIPTS.iter().any(|end| word.ends_with(end))
}
