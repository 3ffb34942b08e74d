//! What documents and scripts keep to.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use capstan_tidy::markdown::{headings, links};
use capstan_tidy::tree::{files, files_ending, root};

/// What a newcomer looks for.
const DOORS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
];

/// Longest decision record: a page.
const MAX_ADR_LINES: usize = 60;

#[test]
fn the_documents_a_newcomer_looks_for_are_there() {
    for door in DOORS {
        assert!(root().join(door).is_file(), "{door} is missing");
    }
}

#[test]
fn the_readme_says_how_to_test() {
    for readme in files_ending("README.md").unwrap().iter().filter(|f| f.path == "README.md") {
        assert!(readme.text.contains("./dev/test"));
    }
}

#[test]
fn every_link_into_the_repository_leads_somewhere() {
    for document in files_ending(".md").unwrap() {
        let folder = Path::new(&document.path).parent().map(|p| root().join(p)).unwrap();
        for link in links(&document.text) {
            let Some(file) = link.file() else { continue };
            let target = match file.strip_prefix('/') {
                Some(from_root) => root().join(from_root),
                None => folder.join(file),
            };
            let (path, line) = (&document.path, link.line);
            assert!(target.exists(), "{path}:{line}: `{file}` does not exist");
        }
    }
}

#[test]
fn every_decision_record_has_its_number_its_four_parts_and_at_most_a_page() {
    let documents = files_ending(".md").unwrap();
    let records = documents.iter().filter(|file| file.path.starts_with("docs/adr/"));
    for (record, number) in records.zip(1..) {
        let (path, lines) = (&record.path, record.text.lines().count());
        let prefix = format!("docs/adr/{number:04}-");
        assert!(path.starts_with(&prefix), "{path}: the next number is {prefix}");
        let parts = ["Context", "Decision", "Consequences", "Revisit if"];
        assert_eq!(headings(&record.text), parts, "{path}");
        assert!(lines <= MAX_ADR_LINES, "{path}: {lines} lines");
    }
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    // In pieces, so that this file does not name them either.
    let homes = [("/wo", "rk/"), ("/ro", "ot/"), ("/tmp", "/h/")].map(|(a, b)| format!("{a}{b}"));
    for file in files().unwrap() {
        for (line, number) in file.text.lines().zip(1..) {
            for home in &homes {
                assert!(!names_home(line, home), "{}:{number}: {home}", file.path);
            }
        }
    }
}

#[test]
fn a_home_is_found_only_where_a_path_begins() {
    let home = "/home/";
    for named in ["/home/x", "`/home/x`", "file:///home/x", "a:/home/x", "\"/home/\""] {
        assert!(names_home(named, home), "{named}");
    }
    for free in ["at/home/x", "~/home/x", "./home/x", "../home/x", "${DIR}/home/x", "homes"] {
        assert!(!names_home(free, home), "{free}");
    }
}

#[test]
fn every_script_can_be_run_and_stops_at_its_first_error() {
    let scripts: Vec<_> =
        files().unwrap().into_iter().filter(|file| file.text.starts_with("#!/")).collect();
    for door in [
        "dev/test",
        "dev/lint",
        "dev/bless",
        "dev/bench",
        "dev/attacks",
        "dev/servers",
        "dev/conformance",
        ".ci/run",
    ] {
        assert!(scripts.iter().any(|script| script.path == door), "{door} is missing");
    }
    for script in scripts {
        let path = &script.path;
        let mode = root().join(path).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{path} is not executable");
        if script.text.starts_with("#!/usr/bin/env bash\n") {
            assert!(script.text.contains("\nset -euo pipefail\n"), "{path}: `set -euo pipefail`");
        }
    }
}

/// Whether an absolute path begins with this folder in the line.
fn names_home(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}".contains(c))
    })
}
