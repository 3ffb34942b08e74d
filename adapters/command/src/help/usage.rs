//! Interprets the parts of one usage line.

use super::commands::is_name;
use super::flag::is_placeholder;
use super::flags::alternatives;
use super::tokens::{Part, parse};
use super::value::{Kind, Value};
use super::{Flag, Positional, add_flag};

/// Maximum number of positionals of one usage.
const MAX_POSITIONALS: usize = 24;

/// Placeholders for flags and for subcommands.
const FLAG_WORDS: &[&str] = &["option", "options", "flag", "flags", "opts", "opt"];
const COMMAND_WORDS: &[&str] = &["command", "subcommand", "commands", "verb", "object", "applet"];

/// Words for values, which are never subcommands.
const NOUNS: &[&str] = &[
    "file",
    "files",
    "filename",
    "path",
    "paths",
    "dir",
    "directory",
    "url",
    "name",
    "pattern",
    "host",
    "hostname",
    "script",
    "arg",
    "args",
    "arguments",
    "source",
    "dest",
    "target",
    "infile",
    "outfile",
    "input",
    "output",
    "expression",
    "pid",
    "user",
    "package",
    "pkg",
];

/// The name of an argument of which only the values are known.
const CHOICE: &str = "choice";

/// Words for several values.
const PLURALS: &[&str] = &["files", "args", "arguments", "paths", "urls", "packages", "hosts"];

/// The content of one usage line.
#[derive(Debug, Default)]
pub(super) struct Usage {
    pub(super) flags: Vec<Flag>,
    pub(super) positionals: Vec<Positional>,
    pub(super) separator: Option<usize>,
    /// A literal word at the beginning, as in `git stash drop`.
    pub(super) literal: Option<String>,
    literal_need: Need,
    /// True if a required flag came first.
    led_by_flag: bool,
    /// The subcommands of `{a,b} ...`.
    pub(super) choices: Vec<String>,
    /// True if a subcommand must or may follow.
    pub(super) wants_command: bool,
}

// === impl Usage ===

impl Usage {
    pub(super) fn read(text: &str) -> Self {
        let mut usage = Self::default();
        usage.walk(&parse(text), Need::Required);
        usage.positionals.truncate(MAX_POSITIONALS);
        usage
    }

    /// Treats a word that looked like a subcommand as the name of the first argument.
    pub(super) fn put_first(&mut self, name: String) {
        let required = self.literal_need == Need::Required;
        if COMMAND_WORDS.contains(&name.as_str()) {
            self.wants_command = required;
        }
        self.positionals.insert(0, Positional { name, required, ..Positional::default() });
        self.separator = self.separator.map(|at| at + 1);
    }

    fn walk(&mut self, parts: &[Part], need: Need) {
        let mut rest = parts;
        while let Some((part, after)) = rest.split_first() {
            rest = match part {
                Part::Word(word) => self.word(word, after, need),
                Part::Optional(inner) => {
                    self.bracket(inner, Need::Optional);
                    after
                }
                Part::Group(inner) => match (flags_only(inner), after.split_first()) {
                    (Some(flags), Some((Part::Word(value), after))) if is_value(value) => {
                        self.flags_with_value(&flags, value);
                        after
                    }
                    _ => {
                        self.bracket(inner, need);
                        after
                    }
                },
                Part::Dots => {
                    if let Some(last) = self.positionals.last_mut() {
                        last.repeated = true;
                    }
                    after
                }
                // `A | B` without brackets: only the first alternative is used.
                Part::Or => after.split_first().map_or(after, |(_, after)| after),
            };
        }
    }

    /// Interprets a part in brackets.
    fn bracket(&mut self, inner: &[Part], need: Need) {
        if let Some(text) = flags_only(inner) {
            for flag in alternatives(&text) {
                add_flag(&mut self.flags, flag);
            }
            return;
        }
        // `[(-o|--output=)json|yaml]`
        if let Some((Part::Group(flags), [Part::Word(_), ..])) = inner.split_first()
            && let Some(flags) = flags_only(flags)
        {
            return self.flags_with_value(&flags, "value");
        }
        let choices: Vec<&[Part]> = inner.split(|part| *part == Part::Or).collect();
        if let (Some((Part::Word(first), _)), true) = (inner.split_first(), choices.len() > 1)
            && first.starts_with('-')
            && self.flag_with_choices(first, inner)
        {
            return;
        }
        let is_flag = |part: &&[Part]| matches!(part.first(), Some(Part::Word(word)) if word.starts_with('-') && word != "--");
        let chosen = choices.iter().find(|choice| !is_flag(choice));
        for choice in choices.iter().filter(|choice| is_flag(choice)) {
            self.walk(choice, need);
        }
        let before = self.positionals.len();
        if let Some(chosen) = chosen {
            self.walk(chosen, need);
        }
        let dots = choices.iter().any(|choice| choice.contains(&Part::Dots));
        if let Some(last) = self.positionals.get_mut(before..).and_then(|new| new.last_mut()) {
            last.repeated |= dots;
        }
    }

    /// Adds `(-m | --message) <message>`: names of one flag, and its value.
    fn flags_with_value(&mut self, flags: &str, value: &str) {
        for mut flag in alternatives(flags) {
            flag.value = Value::Required(Kind::of(value));
            add_flag(&mut self.flags, flag);
        }
    }

    /// Adds `[-t dsa | rsa]`: a flag with enumerated values.
    fn flag_with_choices(&mut self, first: &str, inner: &[Part]) -> bool {
        let words: Option<Vec<&String>> = inner
            .iter()
            .skip(1)
            .filter(|part| **part != Part::Or)
            .map(|part| match part {
                Part::Word(word) if is_name(word) => Some(word),
                Part::Word(_) | Part::Optional(_) | Part::Group(_) | Part::Or | Part::Dots => None,
            })
            .collect();
        let Some(words) = words.filter(|words| words.len() > 1) else { return false };
        let kind = Kind {
            name: "value".to_owned(),
            choices: words.into_iter().cloned().collect(),
            ..Kind::default()
        };
        let flag =
            Flag { names: vec![first.to_owned()], value: Value::Required(kind), ..Flag::default() };
        add_flag(&mut self.flags, flag);
        true
    }

    /// Interprets a word; returns the parts after it.
    fn word<'p>(&mut self, word: &str, after: &'p [Part], need: Need) -> &'p [Part] {
        if word == "--" {
            self.separator = self.separator.or(Some(self.positionals.len()));
            return after;
        }
        if word.starts_with('-') && word.len() > 1 {
            self.led_by_flag |= need == Need::Required;
            return self.flag(word, after, need);
        }
        let plain = normal(word);
        let skipped = FLAG_WORDS.iter().any(|w| plain == *w || plain.ends_with(&format!("_{w}")));
        if skipped || plain.is_empty() || word.starts_with('+') {
            // The dots after it belong to it.
            return after.strip_prefix(&[Part::Dots]).unwrap_or(after);
        }
        if let Some(inner) = word.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            let words = inner.split(',').map(|name| name.trim().to_owned());
            // The arguments of a subcommand follow as dots: `{get,delete} ...`. Without them, and in
            // brackets, the words are values of an argument.
            if let (Some(after), Need::Required) = (after.strip_prefix(&[Part::Dots]), need) {
                self.choices.extend(words);
                self.wants_command = true;
                return after;
            }
            self.chosen(words.collect(), need);
            return after;
        }
        let first = self.positionals.is_empty();
        if first && COMMAND_WORDS.contains(&plain.as_str()) && need == Need::Required {
            self.wants_command = true;
        }
        if first && self.is_literal(word, after, need) {
            (self.literal, self.literal_need) = (Some(word.to_owned()), need);
            return after;
        }
        self.positional(plain, need);
        after
    }

    /// True if a word is literal, not a placeholder.
    fn is_literal(&self, word: &str, after: &[Part], need: Need) -> bool {
        let more = after.first().is_some_and(|part| !matches!(part, Part::Dots | Part::Or));
        let alone = after.is_empty() && need == Need::Required;
        let taken = self.literal.is_some() || self.led_by_flag || is_placeholder(word);
        let plain = is_name(word) && !word.contains(['.', '_']) && !NOUNS.contains(&word);
        !taken && plain && (more || alone) && !COMMAND_WORDS.contains(&word)
    }

    /// Adds an argument with listed values. The usage line has no name for it.
    fn chosen(&mut self, choices: Vec<String>, need: Need) {
        if let Some(known) = self.positionals.iter_mut().find(|known| known.choices == choices) {
            known.repeated = true;
            return;
        }
        let number = self.positionals.iter().filter(|known| !known.choices.is_empty()).count() + 1;
        let name = if number == 1 { CHOICE.to_owned() } else { format!("{CHOICE}_{number}") };
        if self.positionals.len() < MAX_POSITIONALS {
            let required = need == Need::Required;
            self.positionals.push(Positional { name, required, choices, ..Positional::default() });
        }
    }

    fn positional(&mut self, name: String, need: Need) {
        // `FILE [FILE ...]` is one repeated argument.
        if let Some(known) = self.positionals.iter_mut().find(|known| known.name == name) {
            known.repeated = true;
            return;
        }
        if self.positionals.len() < MAX_POSITIONALS {
            let required = need == Need::Required;
            let repeated = PLURALS.contains(&name.as_str());
            self.positionals.push(Positional { name, required, repeated, ..Positional::default() });
        }
    }

    /// Adds a flag, and its value if the next word is one; returns the parts after it.
    fn flag<'p>(&mut self, word: &str, after: &'p [Part], need: Need) -> &'p [Part] {
        if let Some(bundle) = bundle(word) {
            for name in bundle {
                let flag = Flag { names: vec![name], ..Flag::default() };
                add_flag(&mut self.flags, flag);
            }
            return after;
        }
        let (value, after) = match after.split_first() {
            // Outside of brackets, a list of words is a list of subcommands.
            Some((Part::Word(value), _)) if value.starts_with('{') && need == Need::Required => {
                (None, after)
            }
            Some((Part::Word(value), after)) if is_value(value) && !word.contains('=') => {
                (Some(value), after)
            }
            _ => (None, after),
        };
        for mut flag in alternatives(word) {
            if let (Some(value), Value::None) = (value, &flag.value) {
                flag.value = Value::Required(Kind::of(value));
            }
            add_flag(&mut self.flags, flag);
        }
        after
    }
}

/// Tells if a part is required.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Need {
    #[default]
    Required,
    Optional,
}

/// The text of a bracket that contains only alternatives of one flag: `-q | --quiet`.
fn flags_only(inner: &[Part]) -> Option<String> {
    let mut text = String::new();
    for part in inner {
        match part {
            Part::Word(word) if word.starts_with('-') && word != "--" && bundle(word).is_none() => {
                text.push_str(word);
            }
            Part::Or => text.push('|'),
            Part::Word(_) | Part::Optional(_) | Part::Group(_) | Part::Dots => return None,
        }
    }
    text.contains('|').then_some(text)
}

/// The flags of a bundle such as `-lv`.
fn bundle(word: &str) -> Option<Vec<String>> {
    let letters = word.strip_prefix('-')?;
    let plain = letters.chars().all(|c| c.is_ascii_alphanumeric());
    let count = letters.chars().count();
    let mixed = letters.chars().any(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    let together = count == 2 || (count > 2 && mixed);
    (plain && together).then(|| letters.chars().map(|c| format!("-{c}")).collect())
}

/// True if a word after a flag is its value.
fn is_value(word: &str) -> bool {
    !word.starts_with('-')
}

/// The name of a placeholder: `<file name>` → `file_name`, `TYPE[.VERSION]` → `type`.
fn normal(word: &str) -> String {
    let inner = word.trim_matches(['<', '>', '\'', '"', ':']);
    let cut = inner.split(['[', '<', '(', '=', '{']).next().unwrap_or(inner);
    let cut = if cut.is_empty() { inner } else { cut };
    let mut name = String::new();
    for c in cut.chars().take(40) {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.ends_with('_') && !name.is_empty() {
            name.push('_');
        }
    }
    name.trim_end_matches('_').to_owned()
}
