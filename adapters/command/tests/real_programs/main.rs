//! Real programs: how much of what they document is found. What is not installed is named, and too
//! few make the test fail.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use capstan_command::help::Flag;
use capstan_command::{Command, CommandSettings, discover, tools};
use capstan_model::Secret;
use capstan_process::once::Program;
use futures::StreamExt;

/// The documented commands: `= PROGRAM ARGS…` starts a program, `subcommands:` and `flags PATH:` list.
const DOCUMENTED: &str = include_str!("documented.txt");

/// Number of programs that are examined at a time.
const AT_ONCE: usize = 4;

/// Minimum number of installed programs for the test to be meaningful.
const LEAST: usize = 30;

/// Minimum share of the documented items that must be found, in percent.
const ENOUGH: usize = 90;

/// A program and what it documents.
#[derive(Default)]
struct Documented {
    command: String,
    /// The words before all others.
    args: Vec<String>,
    subcommands: Vec<String>,
    /// Flags, by the words of the subcommand.
    flags: BTreeMap<String, Vec<String>>,
}

fn documented() -> Vec<Documented> {
    let mut programs: Vec<Documented> = Vec::new();
    let own = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for line in DOCUMENTED.lines().filter(|line| !line.starts_with('#')) {
        if let Some(words) = line.strip_prefix("= ") {
            let mut words = own(words).into_iter();
            let command = words.next().unwrap();
            programs.push(Documented { command, args: words.collect(), ..Documented::default() });
            continue;
        }
        let (kind, words) = line.split_once(": ").unwrap();
        let program = programs.last_mut().unwrap();
        match kind.split_once(' ').unwrap_or((kind, "")) {
            ("subcommands", _) => program.subcommands.extend(own(words)),
            (_, path) => program.flags.entry(path.to_owned()).or_default().extend(own(words)),
        }
    }
    programs
}

fn settings(documented: &Documented, only: Option<&str>, depth: u32) -> CommandSettings {
    // Variables that a program needs to find its own files.
    let names = ["PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"];
    let ours = names.into_iter().filter_map(|name| {
        let value = std::env::var_os(name)?.into_string().ok()?;
        Some((name.to_owned(), Secret::new(value)))
    });
    let program = Program {
        command: documented.command.clone(),
        environment: ours.collect(),
        secrets: Vec::new(),
        cwd: Some(std::env::temp_dir()),
        keeper: PathBuf::from(env!("CARGO_BIN_EXE_capstan-command-keeper")),
        sandbox: None,
    };
    CommandSettings {
        name: "s".parse().unwrap(),
        program,
        args: documented.args.clone(),
        help: "--help".to_owned(),
        depth,
        only: only.map(|only| vec![only.to_owned()]),
        presets: Vec::new(),
        startup_timeout: Duration::from_mins(1),
        timeout: Duration::from_mins(1),
        output: 1 << 20,
        cache: None,
    }
}

/// The commands of a program; `None` if it is not installed.
async fn commands(documented: &Documented, only: Option<&str>, depth: u32) -> Option<Vec<Command>> {
    let settings = settings(documented, only, depth);
    settings.program.find().ok()?;
    let found = discover(&settings).await.unwrap();
    tools(&settings, &found).unwrap();
    Some(found.commands)
}

struct Score {
    found: usize,
    missed: Vec<String>,
}

async fn score(documented: &Documented) -> Option<Score> {
    let mut score = Score { found: 0, missed: Vec::new() };
    let mut count = |there: bool, what: String| {
        if there {
            score.found += 1;
        } else {
            score.missed.push(what);
        }
    };
    if !documented.subcommands.is_empty() {
        let found = commands(documented, None, 1).await?;
        for name in &documented.subcommands {
            let there = found.iter().any(|command| command.path.first().is_some_and(|w| w == name));
            count(there, name.clone());
        }
    }
    for (path, flags) in &documented.flags {
        let only = (!path.is_empty()).then_some(path.as_str());
        let found = commands(documented, only, 2).await?;
        let own: Vec<&Flag> = found
            .iter()
            .filter(|command| command.path.join(" ") == *path)
            .filter_map(|command| command.help.as_ref())
            .flat_map(|help| &help.flags)
            .collect();
        for name in flags {
            let is = |flag: &&&Flag| {
                flag.names.iter().any(|own| own == name) || flag.negation.as_ref() == Some(name)
            };
            count(own.iter().any(|flag| is(&flag)), format!("{path} {name}"));
        }
    }
    Some(score)
}

#[tokio::test]
async fn nine_of_ten_documented_subcommands_and_flags_are_found() {
    let programs = documented();
    assert!(programs.len() >= 30);
    let (mut ran, mut found, mut documented) = (0, 0, 0);
    let (mut poor, mut missing) = (Vec::new(), Vec::new());
    // Several at a time: most of the time is spent starting programs.
    let scored = programs.iter().map(|program| async move { (program, score(program).await) });
    let scored: Vec<_> = futures::stream::iter(scored).buffered(AT_ONCE).collect().await;
    for (program, score) in scored {
        let words = [program.command.as_str()].into_iter().chain(program.args.iter().map(|w| &**w));
        let name = words.collect::<Vec<_>>().join(" ");
        let Some(score) = score else {
            missing.push(name);
            continue;
        };
        let all = score.found + score.missed.len();
        (ran, found, documented) = (ran + 1, found + score.found, documented + all);
        let line = format!("{name}: {} of {all}, without {:?}", score.found, score.missed);
        println!("{line}");
        if score.found * 100 < all * ENOUGH {
            poor.push(line);
        }
    }
    println!("{ran} of {} programs, {found} of {documented}; {poor:#?}", programs.len());
    println!("not installed: {missing:?}");
    assert!(ran >= LEAST, "{ran} programs were looked at; not installed: {missing:?}");
    assert!(found * 100 >= documented * ENOUGH, "{found} of {documented}\n{poor:#?}");
    // One program in ten may be told apart by its version.
    assert!(poor.len() * 10 <= ran, "{poor:#?}");
}
