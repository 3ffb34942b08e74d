//! Every block of commands with their output in the documents is run, in an empty home.
//!
//! A block marked `console` has lines that begin with `$ `, each followed by its output. The blocks of
//! one document run in order, in one folder. A line `…` stands for any number of lines, and `…` within
//! a line for any text. `CAPSTAN_BLESS=1` replaces output that does not fit.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::env;
use std::fs;

use capstan_testkit::{World, binary};
use capstan_tidy::markdown::blocks;
use capstan_tidy::tree::{File, files_ending, root};

/// A command with the output that its document shows.
struct Shown {
    line: usize,
    typed: String,
    output: Vec<String>,
}

fn documents() -> Vec<File> {
    let is_ours = |file: &File| file.path == "README.md" || file.path.starts_with("docs/");
    files_ending(".md").unwrap().into_iter().filter(is_ours).collect()
}

fn shown(document: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for block in blocks(document).iter().filter(|block| block.language == "console") {
        let first = block.lines.first().is_some_and(|line| line.starts_with("$ "));
        assert!(first, "line {}: output without a command", block.line);
        for (text, line) in block.lines.iter().zip(block.line + 1..) {
            if let Some(typed) = text.strip_prefix("$ ") {
                found.push(Shown { line, typed: typed.to_owned(), output: Vec::new() });
            } else if let Some(last) = found.last_mut() {
                last.output.push(text.clone());
            }
        }
    }
    found
}

/// Types a line into a shell that finds `capstan` in its PATH: what a terminal would show.
fn typed(world: &World, line: &str) -> Vec<String> {
    let program = binary("capstan");
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap());
    let ended = world.program("sh", ["-c", &format!("exec 2>&1; {line}")]).env("PATH", path).run();
    ended.stdout.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// Whether output is as shown.
fn fits(shown: &[String], output: &[String]) -> bool {
    match (shown.split_first(), output.split_first()) {
        (None, None) => true,
        (Some((gap, rest)), _) if gap == "…" => {
            (0..=output.len()).any(|at| output.get(at..).is_some_and(|left| fits(rest, left)))
        }
        (Some((one, rest)), Some((other, left))) => line_fits(one, other) && fits(rest, left),
        _ => false,
    }
}

fn line_fits(shown: &str, line: &str) -> bool {
    let Some((before, after)) = shown.split_once('…') else { return shown == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    rest.char_indices()
        .map(|(at, _)| at)
        .chain([rest.len()])
        .any(|at| rest.get(at..).is_some_and(|left| line_fits(after, left)))
}

#[test]
fn every_command_that_is_shown_with_its_output_prints_it() {
    let bless = env::var_os("CAPSTAN_BLESS").is_some_and(|value| value == "1");
    let mut count = 0;
    for document in documents() {
        let world = World::new();
        let mut lines: Vec<String> = document.text.lines().map(ToOwned::to_owned).collect();
        let mut moved = 0_isize;
        for command in shown(&document.text) {
            count += 1;
            let output = typed(&world, &command.typed);
            if fits(&command.output, &output) {
                continue;
            }
            let (path, line, shown) = (&document.path, command.line, command.output.join("\n"));
            let printed = output.join("\n");
            assert!(
                bless,
                "{path}:{line}: {}\nshown:\n{shown}\n\nprinted:\n{printed}",
                command.typed
            );
            let at = line.strict_add_signed(moved);
            moved += output.len().cast_signed() - command.output.len().cast_signed();
            lines.splice(at..at + command.output.len(), output);
        }
        let text = lines.join("\n") + "\n";
        if bless && text != document.text {
            fs::write(root().join(&document.path), text).unwrap();
        }
    }
    assert!(count >= 8, "only {count} commands are shown with their output");
}

#[test]
fn the_readme_begins_with_two_commands_for_a_fresh_machine() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let first_screen: Vec<&str> = readme.lines().take(30).collect();
    for command in ["cargo run --release -- serve --http --demo", "./dev/test"] {
        assert!(first_screen.iter().any(|line| line.starts_with(command)), "{command}");
    }
}

#[test]
fn output_fits_where_only_the_gaps_differ() {
    let lines = |text: &str| text.lines().map(ToOwned::to_owned).collect::<Vec<_>>();
    for (shown, output) in
        [("a\nb", "a\nb"), ("…", ""), ("…\nb", "a\na\nb"), ("a…c", "abc"), ("a…", "a")]
    {
        assert!(fits(&lines(shown), &lines(output)), "{shown:?} {output:?}");
    }
    for (shown, output) in [("a", "b"), ("a", "a\nb"), ("a\nb", "a"), ("…\nb", "a"), ("a…c", "ab")]
    {
        assert!(!fits(&lines(shown), &lines(output)), "{shown:?} {output:?}");
    }
}
