//! Parses help texts into commands, flags and positionals.
//!
//! Read in this order: `clean` converts output to plain lines, `flag` parses one flag, `flags`
//! finds all of them, `commands` finds subcommands, `synopsis` finds usage lines, `tokens` splits
//! them into parts, `usage` interprets one and `walk` all of them, and `read` combines the results.
//!
//! **Invariant:** pure and total. For any output, the result is a [`Program`], with time and size
//! bounded by the input.

mod clean;
mod value;
mod flag;
mod flags;
mod commands;
mod tokens;
mod synopsis;
mod usage;
mod walk;

use serde::{Deserialize, Serialize};

pub(crate) use clean::MAX_TEXT;
pub use clean::{Line, clean};
pub use value::{Kind, Value, ValueType};

use self::synopsis::Synopsis;

/// Maximum number of flags, subcommands or positionals from one text.
pub(crate) const MAX_FOUND: usize = 1000;

/// Maximum length of a summary, in bytes.
pub(crate) const MAX_SUMMARY: usize = 400;

/// The content of a help text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Program {
    /// Its purpose, in one line.
    pub summary: String,
    /// Its subcommands.
    pub subcommands: Vec<Subcommand>,
    /// Its flags.
    pub flags: Vec<Flag>,
    /// Its positional arguments.
    pub positionals: Vec<Positional>,
    /// The first positional that may come after `--`, if that is known to work.
    pub separator: Option<usize>,
    /// True if a usage line was found.
    pub has_usage: bool,
    /// True if it can run without a subcommand, although it has some.
    pub runs_alone: bool,
    /// True if `@FILE` stands for arguments in a file.
    pub response_files: bool,
    /// True if it parses arguments like most programs, so that `--` ends the flags.
    pub conventional: bool,
}

/// A subcommand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subcommand {
    /// Its name.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Its summary.
    pub summary: String,
    /// The content of its usage line, if the text has one.
    pub usage: Option<Box<Program>>,
}

/// One flag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// Its names as typed, dashes included.
    pub names: Vec<String>,
    /// The name that switches it off, if it has one.
    pub negation: Option<String>,
    /// Its value.
    pub value: Value,
    /// True if it may be given more than once.
    pub repeatable: bool,
    /// True if all subcommands have it.
    pub shared: bool,
    /// Its summary.
    pub summary: String,
}

/// A positional argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positional {
    /// Its name in the usage line.
    pub name: String,
    /// True if it is required.
    pub required: bool,
    /// True if it may have several values.
    pub repeated: bool,
    /// The only values that it may have, if the usage line lists them.
    #[serde(default)]
    pub choices: Vec<String>,
    /// Its summary.
    pub summary: String,
}

/// Parses a help text. `words` are the program and the words typed before the help flag.
pub fn read(text: &[u8], words: &[&str]) -> Program {
    let lines = clean(text);
    let plain: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let Synopsis { usages, used } = synopsis::find(&lines, words);
    let mut program = Program {
        summary: summary(&lines, &used),
        flags: flags::find(&lines, &used),
        subcommands: commands::find(&lines, &used),
        has_usage: !usages.is_empty(),
        response_files: plain.iter().any(|text| names_response_file(text)),
        ..Program::default()
    };
    program.conventional = is_conventional(&plain) && !program.flags.iter().any(is_one_dash_word);
    walk::apply(&mut program, &usages);
    if program.separator.is_none() && program.conventional {
        program.separator = Some(0);
    }
    program.subcommands.truncate(MAX_FOUND);
    program.flags.truncate(MAX_FOUND);
    program
}

// === impl Program ===

impl Program {
    /// True if any content was recognised.
    pub fn is_understood(&self) -> bool {
        self.has_usage || !self.flags.is_empty() || !self.subcommands.is_empty()
    }

    /// The flag with this name.
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|flag| flag.names.iter().any(|own| own == name))
    }
}

// === impl Flag ===

impl Flag {
    /// The preferred name: the first long one, else the first.
    pub fn name(&self) -> &str {
        let long = self.names.iter().find(|name| name.starts_with("--"));
        long.or_else(|| self.names.first()).map(String::as_str).unwrap_or_default()
    }

    /// Its long name without dashes.
    pub fn long(&self) -> Option<&str> {
        self.names.iter().find_map(|name| name.strip_prefix("--"))
    }

    /// Its short name without the dash.
    pub fn short(&self) -> Option<&str> {
        let one = |name: &&String| !name.starts_with("--") && name.chars().count() == 2;
        self.names.iter().find(one)?.strip_prefix('-')
    }

    /// Adds the facts of `other`, which has a name in common.
    pub(crate) fn merge(&mut self, other: Self) {
        // A flag with a short and a long name gets no further names.
        let whole = self.long().is_some() && self.short().is_some();
        for name in other.names {
            if !whole && !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        self.negation = self.negation.take().or(other.negation);
        self.repeatable |= other.repeatable;
        if self.value == Value::None {
            self.value = other.value;
        }
        if self.summary.is_empty() {
            self.summary = other.summary;
        }
    }
}

/// Adds a flag, or merges it into the flag that has one of its names.
pub(crate) fn add_flag(flags: &mut Vec<Flag>, flag: Flag) {
    let room = flags.len() < MAX_FOUND;
    let shares = |known: &&mut Flag| known.names.iter().any(|name| flag.names.contains(name));
    match flags.iter_mut().find(shares) {
        Some(known) => known.merge(flag),
        None if room => flags.push(flag),
        None => {}
    }
}

/// `text`, shortened to the maximum length.
pub(crate) fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.split_at_checked(text.floor_char_boundary(MAX_SUMMARY)) {
        Some((begin, rest)) if !rest.is_empty() => format!("{}…", begin.trim_end()),
        Some(_) | None => text.to_owned(),
    }
}

/// The first sentence of prose.
fn summary(lines: &[Line], used: &[bool]) -> String {
    let free =
        || lines.iter().zip(used).take(40).skip_while(|(line, used)| **used || !is_prose(line));
    let indent = free().next().map_or(0, |(line, _)| line.indent);
    let mut text = String::new();
    for (line, _) in
        free().take_while(|(line, used)| !**used && is_prose(line) && line.indent == indent)
    {
        text.push_str(&line.text);
        if line.text.ends_with('.') || text.len() > MAX_SUMMARY {
            break;
        }
        text.push(' ');
    }
    // A line of a manual's NAME section starts with the name.
    shorten(text.split_once(" - ").map_or(text.as_str(), |(_, what)| what))
}

/// True if a line is prose: not a heading, a version or an error message.
fn is_prose(line: &Line) -> bool {
    let text = line.text.as_str();
    let second = text.split_whitespace().nth(1).unwrap_or_default();
    let number = |c: char| c.is_ascii_digit() || c == '(';
    let version = second.trim_start_matches('v').starts_with(number);
    let complaint =
        ["unknown option", "invalid option", "unrecognized option", "Copyright", "License"];
    let first = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let failure = ["error", "fatal", "warning", "usage error"].contains(&first.as_str());
    !second.is_empty()
        && line.indent < 8
        && !version
        && !text.contains("   ")
        && !text.starts_with(['-', '[', '<', '*'])
        && !is_heading(text)
        && !failure
        && !complaint.iter().any(|words| text.contains(words))
}

/// True if a line is a heading.
pub(crate) fn is_heading(text: &str) -> bool {
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    text.ends_with(':') || (letters().next().is_some() && letters().all(char::is_uppercase))
}

/// Phrases that only programs with one of the common argument parsers print.
const CONVENTIONAL: &[&str] = &[
    "Print help",
    "print help",
    "show this help message and exit",
    "display this help and exit",
    "display this help",
    "give this help list",
    "for more information about a command",
    "for more information about a given command",
    "for more information on a command",
];

fn is_conventional(lines: &[&str]) -> bool {
    lines.iter().any(|line| CONVENTIONAL.iter().any(|phrase| line.contains(phrase)))
}

/// True if all names are words after a single dash: such programs have their own rules.
fn is_one_dash_word(flag: &Flag) -> bool {
    let word = |name: &String| !name.starts_with("--") && name.chars().count() > 3;
    flag.names.iter().all(word)
}

fn names_response_file(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + 1..).unwrap_or_default().trim_start_matches(['<', '[']);
        let free = before.is_none_or(|c| c.is_whitespace() || "[<('`\"".contains(c));
        let words = ["file", "path", "response", "argfile"];
        free && words.iter().any(|word| after.to_ascii_lowercase().starts_with(word))
    })
}
