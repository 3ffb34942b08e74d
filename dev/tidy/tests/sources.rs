//! What every source file keeps to.

use capstan_tidy::source::{mentions, shipped};
use capstan_tidy::tree::files_ending;

/// Longest source file, tests included. A backstop: files are split by ideas, not by length.
const MAX_LINES: usize = 500;

/// The world, which the core knows only through its ports. Types for addresses are in `core::net`.
const WORLD: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::net",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::time",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
];

#[test]
fn the_core_touches_the_world_only_through_its_ports() {
    let mut seen = 0;
    for file in files_ending(".rs").unwrap() {
        if !file.path.starts_with("core/") || only_for_tests(&file.path) {
            continue;
        }
        seen += 1;
        let found = mentions(&shipped(&file.text), WORLD);
        assert!(found.is_empty(), "{}: {found:?}; take it as an argument or a port", file.path);
    }
    assert!(seen > 0);
}

#[test]
fn every_file_says_first_what_it_is_for_and_stays_short() {
    for file in files_ending(".rs").unwrap() {
        let (path, lines) = (&file.path, file.text.lines().count());
        let opening = file.text.lines().next().unwrap_or_default();
        assert!(opening.starts_with("//! "), "{path}: say in one `//!` line what the file is for");
        assert!(lines <= MAX_LINES, "{path}: {lines} lines; split it (limit {MAX_LINES})");
    }
}

#[test]
fn nothing_is_left_unfinished_or_switched_off() {
    let marks = ["todo", "unimplemented", "dbg"].map(|word| format!("{word}!("));
    let ignored = ["]", " ="].map(|rest| format!("#[{}{rest}", "ignore"));
    for file in files_ending(".rs").unwrap() {
        for (line, number) in file.text.lines().zip(1..) {
            let comment = line.trim_start().starts_with("//");
            let found = marks.iter().chain(&ignored).find(|mark| line.contains(*mark));
            assert!(comment || found.is_none(), "{}:{number}: `{line}`", file.path);
        }
    }
}

/// Whether a file of a crate is compiled for tests alone.
fn only_for_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}
