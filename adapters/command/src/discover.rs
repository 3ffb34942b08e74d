//! Runs a program to discover its commands.
//!
//! Only the program itself and words from its own help, or from the configuration, are run, always
//! followed by a help flag.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capstan_model::Secret;
use capstan_process::SpawnError;
use capstan_process::once::{End, Limits, Program as Runnable};
use futures::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};

use crate::allowed::Allowed;
use crate::help::{self, Flag, Program, Subcommand};
use crate::settings::{CommandSettings, DEFAULT_HELP};

/// Timeout for one help text.
const HELP_TIME: Duration = Duration::from_secs(5);

/// Number of concurrent requests for help.
const AT_ONCE: usize = 4;

/// Maximum number of commands.
const MAX_COMMANDS: usize = 600;

/// Maximum number of levels, also if the configuration allows more.
const MAX_DEPTH: usize = 6;

/// Programs whose subcommands open a manual for `--help` and print their usage for another flag.
const OTHER_FLAG: &[(&str, &str)] = &[("git", "-h")];

/// Subcommands whose usage omits most of their flags, so that the manual is read too.
const MANUALS: &[(&str, &[&str])] = &[("git", &["diff", "log", "show"])];

/// Variables that make programs print plain English text without paging.
const PLAIN: &[(&str, &str)] = &[
    ("COLUMNS", "120"),
    ("GIT_PAGER", "cat"),
    ("LANGUAGE", "C"),
    ("LC_ALL", "C.UTF-8"),
    ("MANPAGER", "cat"),
    ("MANWIDTH", "120"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
];

/// The result of a discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// The commands.
    pub commands: Vec<Command>,
    /// Subcommands that the configuration names and the program does not have.
    pub unknown: Vec<String>,
}

/// One command of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The subcommand words; none for the program itself.
    pub path: Vec<String>,
    /// Its summary.
    pub summary: String,
    /// Its parsed help; `None` if it could not be parsed.
    pub help: Option<Program>,
}

/// Discovers the commands of a program.
pub async fn discover(settings: &CommandSettings) -> Result<Found, SpawnError> {
    Explorer::new(settings).explore().await
}

struct Explorer<'a> {
    settings: &'a CommandSettings,
    program: Arc<Runnable>,
    allowed: Allowed,
}

/// A help text and its parsed form.
#[derive(Clone, Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    program: Program,
    /// True if the program exited successfully.
    fine: bool,
}

/// A subcommand to examine next.
#[derive(Clone, Debug)]
struct Candidate {
    path: Vec<String>,
    entry: Subcommand,
    /// True if only the configuration names it.
    unlisted: bool,
}

// === impl Explorer ===

impl<'a> Explorer<'a> {
    fn new(settings: &'a CommandSettings) -> Self {
        let mut program = settings.program.clone();
        let plain = PLAIN
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new((*value).to_owned())));
        program.environment.extend(plain.collect::<BTreeMap<_, _>>());
        let allowed = Allowed::new(settings.only.as_deref());
        Self { settings, program: Arc::new(program), allowed }
    }

    async fn explore(&self) -> Result<Found, SpawnError> {
        let root = self.root().await?;
        let shared = self.shared(&root).await?;
        let mut found = Found::default();
        let mut level = self.below(&[], &root.program);
        if level.is_empty() && self.settings.only.is_none() {
            let summary = root.program.summary.clone();
            let help = root.program.is_understood().then_some(root.program);
            found.commands.push(Command { path: Vec::new(), summary, help });
            return Ok(found);
        }
        let first: Vec<String> =
            level.iter().filter_map(|candidate| candidate.path.first().cloned()).collect();
        let depth = usize::try_from(self.settings.depth).unwrap_or(MAX_DEPTH).min(MAX_DEPTH);
        while !level.is_empty() {
            let (unread, read): (Vec<_>, Vec<_>) = level.into_iter().partition(|candidate| {
                candidate.path.len() >= depth && !self.allowed.names(&candidate.path)
            });
            for candidate in unread {
                found.add(&self.allowed, candidate.unread());
            }
            let texts = self.texts(&read).await?;
            let any_read = texts.iter().any(|text| text.program.is_understood());
            level = Vec::new();
            for (candidate, text) in read.into_iter().zip(texts) {
                if candidate.unlisted && !self.knows(&candidate, &text) {
                    found.unknown.push(candidate.path.join(" "));
                    continue;
                }
                // A listed word that is not a subcommand.
                if !text.fine && !text.program.is_understood() && any_read && !candidate.unlisted {
                    continue;
                }
                let below = self.take(&mut found, candidate, text, &root);
                level.extend(below);
            }
            level.truncate(MAX_COMMANDS.saturating_sub(found.commands.len()));
        }
        // In the order of the help text, with related commands together.
        found.commands.sort_by_key(|command| {
            first.iter().position(|word| Some(word) == command.path.first())
        });
        for help in found.commands.iter_mut().filter_map(|command| command.help.as_mut()) {
            for flag in &shared {
                help::add_flag(&mut help.flags, flag.clone());
            }
        }
        Ok(found)
    }

    /// Adds a subcommand with its help; returns the subcommands below it.
    fn take(
        &self,
        found: &mut Found,
        candidate: Candidate,
        text: Text,
        root: &Text,
    ) -> Vec<Candidate> {
        let Candidate { path, entry, .. } = candidate;
        // Many programs answer any request for help with the same text.
        if text.bytes == root.bytes {
            let own = entry.usage.map(|usage| *usage).unwrap_or_default();
            let (flags, conventional) = (root.program.flags.clone(), root.program.conventional);
            let help = Program { flags, conventional, ..own };
            found.add(&self.allowed, Command { path, summary: entry.summary, help: Some(help) });
            return Vec::new();
        }
        let mut help = text.program;
        if root.program.conventional && !help.conventional && help.separator.is_none() {
            (help.conventional, help.separator) = (true, Some(0));
        }
        let below = self.below(&path, &help);
        let summary = if entry.summary.is_empty() { help.summary.clone() } else { entry.summary };
        if below.is_empty() || help.runs_alone {
            let help =
                if help.is_understood() { Some(help) } else { entry.usage.map(|usage| *usage) };
            found.add(&self.allowed, Command { path, summary, help });
        }
        below
    }

    /// The usable subcommands below `path`, in the order of the help text.
    fn below(&self, path: &[String], help: &Program) -> Vec<Candidate> {
        let to = |word: &str| [path, &[word.to_owned()]].concat();
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut wanted = self.allowed.next(path);
        for entry in help.subcommands.iter().take(MAX_COMMANDS) {
            let names = || std::iter::once(&entry.name).chain(&entry.aliases);
            wanted.retain(|word| !names().any(|name| name == word));
            // If `cli_only` lists another name of it, that name is typed.
            let typed = names().find(|name| self.allowed.leads_on(&to(name)));
            if let (true, Some(name)) = (path.len() < MAX_DEPTH, typed) {
                let (path, entry) = (to(name), entry.clone());
                candidates.push(Candidate { path, entry, unlisted: false });
            }
        }
        for word in wanted {
            let entry = Subcommand { name: word.clone(), ..Subcommand::default() };
            candidates.push(Candidate { path: to(&word), entry, unlisted: true });
        }
        candidates
    }

    /// True if the program has a subcommand that its help does not list.
    fn knows(&self, candidate: &Candidate, text: &Text) -> bool {
        let words = format!("{} {}", self.settings.binary(), candidate.path.join(" "));
        let named = String::from_utf8_lossy(&text.bytes).contains(&words);
        text.program.is_understood() && (text.fine || named)
    }

    /// Reads the help texts of these subcommands, in their order.
    async fn texts(&self, candidates: &[Candidate]) -> Result<Vec<Text>, SpawnError> {
        let mut asked = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            asked.push(self.text_of(&candidate.path).boxed());
        }
        let texts: Vec<_> = futures::stream::iter(asked).buffered(AT_ONCE).collect().await;
        texts.into_iter().collect()
    }

    async fn text_of(&self, path: &[String]) -> Result<Text, SpawnError> {
        let binary = self.settings.binary();
        let by_default = self.settings.help == DEFAULT_HELP;
        let other = OTHER_FLAG.iter().find(|(name, _)| *name == binary && by_default);
        let flag = other.map_or(self.settings.help.as_str(), |(_, flag)| flag);
        let mut text = self.ask(path, &[flag]).await?;
        if !text.program.is_understood() && !text.fine && flag != DEFAULT_HELP && by_default {
            text = self.ask(path, &[DEFAULT_HELP]).await?;
        }
        let manual = MANUALS.iter().any(|(name, words)| {
            let word = path.first().map(String::as_str).unwrap_or_default();
            *name == binary && by_default && path.len() == 1 && words.contains(&word)
        });
        if manual {
            let manual = self.ask(path, &[DEFAULT_HELP]).await?;
            for flag in manual.program.flags {
                help::add_flag(&mut text.program.flags, flag);
            }
        }
        Ok(text)
    }

    /// Reads the help of the program itself, with the parts that must be requested separately.
    async fn root(&self) -> Result<Text, SpawnError> {
        let flag = self.settings.help.as_str();
        let mut text = self.ask(&[], &[flag]).await?;
        for other in ["-h", "help"] {
            // Only after an error: `-h` means something else to many programs.
            if text.program.is_understood() || text.fine || flag != DEFAULT_HELP {
                break;
            }
            text = self.ask(&[], &[other]).await?;
        }
        let said = String::from_utf8_lossy(&text.bytes).into_owned();
        let binary = self.settings.binary();
        if said.contains(&format!("{binary} help -a")) {
            let more = self.ask(&[], &["help", "-a"]).await?;
            text.program.add_subcommands(more.program.subcommands);
        }
        let lists = text.program.flag("--list").is_some_and(|f| f.summary.contains("commands"));
        if lists && !text.program.subcommands.is_empty() {
            let mut more = self.ask(&[], &["--list"]).await?.program.subcommands;
            // Its own commands have a summary; other programs, which it found in `PATH`, have only
            // a name.
            if more.iter().any(|entry| !entry.summary.is_empty()) {
                more.retain(|entry| !entry.summary.is_empty());
            }
            text.program.add_subcommands(more);
        }
        if said.contains("\"--help all\"") && flag == DEFAULT_HELP {
            let more = self.ask(&[], &[flag, "all"]).await?;
            for flag in more.program.flags {
                help::add_flag(&mut text.program.flags, flag);
            }
        }
        Ok(text)
    }

    /// The flags of all subcommands, if the program lists them separately.
    async fn shared(&self, root: &Text) -> Result<Vec<Flag>, SpawnError> {
        let said = String::from_utf8_lossy(&root.bytes);
        if !said.contains(&format!("\"{} options\"", self.settings.binary())) {
            return Ok(Vec::new());
        }
        let options = self.ask(&[], &["options"]).await?;
        let share = |flag| Flag { shared: true, ..flag };
        Ok(options.program.flags.into_iter().map(share).collect())
    }

    /// Runs the program with `path` and `words`, and parses its output.
    async fn ask(&self, path: &[String], words: &[&str]) -> Result<Text, SpawnError> {
        let own = words.iter().map(|word| (*word).to_owned());
        let args: Vec<String> = self.settings.args.iter().chain(path).cloned().chain(own).collect();
        let limits = Limits { time: HELP_TIME, output: help::MAX_TEXT };
        let output = self.program.run(&args, limits, &mut |_| {}).await?;
        let typed = std::iter::once(self.settings.binary())
            .chain(self.settings.args.iter().map(String::as_str))
            .chain(path.iter().map(String::as_str));
        let typed: Vec<&str> = typed.collect();
        let fine = output.end == End::Code(0);
        let text = |bytes: Vec<u8>| {
            let mut program = help::read(&bytes, &typed);
            if !fine && !program.is_understood() {
                // The output of a failed run that is not help is an error message.
                program = Program::default();
            }
            Text { bytes, program, fine }
        };
        let stdout = text(output.stdout.bytes);
        if stdout.program.is_understood() || output.stderr.bytes.is_empty() {
            return Ok(stdout);
        }
        let stderr = text(output.stderr.bytes);
        Ok(if stderr.program.is_understood() || stdout.bytes.is_empty() { stderr } else { stdout })
    }
}

// === impl Candidate ===

impl Candidate {
    /// The command as far as it is known without its help.
    fn unread(self) -> Command {
        let Self { path, entry, .. } = self;
        Command { path, summary: entry.summary, help: entry.usage.map(|usage| *usage) }
    }
}

// === impl Found ===

impl Found {
    fn add(&mut self, allowed: &Allowed, command: Command) {
        let known = self.commands.iter().any(|known| known.path == command.path);
        if !known && allowed.runs(&command.path) && self.commands.len() < MAX_COMMANDS {
            self.commands.push(command);
        }
    }
}

// === impl Program ===

impl Program {
    fn add_subcommands(&mut self, more: Vec<Subcommand>) {
        for entry in more {
            match self.subcommands.iter_mut().find(|known| known.name == entry.name) {
                Some(known) if known.summary.is_empty() => known.summary = entry.summary,
                Some(_) => {}
                None => self.subcommands.push(entry),
            }
        }
    }
}
