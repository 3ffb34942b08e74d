//! What documents and scripts keep to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use capstan_tidy::markdown::{anchors, headings, inline_code, links};
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
fn every_link_into_the_repository_leads_to_a_file_and_to_a_heading_of_it() {
    for document in files_ending(".md").unwrap() {
        let folder = Path::new(&document.path).parent().map(|p| root().join(p)).unwrap();
        for link in links(&document.text) {
            let target = match link.file() {
                Some(file) => match file.strip_prefix('/') {
                    Some(from_root) => root().join(from_root),
                    None => folder.join(file),
                },
                None => root().join(&document.path),
            };
            let place = format!("{}:{}: `{}`", document.path, link.line, link.target);
            assert!(target.exists(), "{place} does not exist");
            let Some(anchor) = link.anchor() else { continue };
            let text = fs::read_to_string(target).unwrap();
            assert!(anchors(&text).iter().any(|a| a == anchor), "{place}: no such heading");
        }
    }
}

#[test]
fn the_book_has_every_page_and_its_links_stay_within_it() {
    let documents = files_ending(".md").unwrap();
    let summary = documents.iter().find(|file| file.path == "docs/SUMMARY.md").unwrap();
    let listed: Vec<String> = links(&summary.text)
        .iter()
        .filter_map(|link| Some(format!("docs/{}", link.file()?)))
        .collect();
    let pages = documents.iter().filter(|file| file.path.starts_with("docs/"));
    for page in pages.filter(|page| page.path != summary.path) {
        let path = &page.path;
        assert!(listed.contains(path), "{path} is not in docs/SUMMARY.md");
        let depth = path.matches('/').count() - 1;
        for link in links(&page.text) {
            let up = link.file().map_or(0, |file| file.matches("../").count());
            assert!(up <= depth, "{path}:{}: `{}` leads out of the book", link.line, link.target);
        }
    }
}

#[test]
fn every_test_that_the_page_on_migration_names_exists() {
    let sources = files_ending(".rs").unwrap();
    let migrate = fs::read_to_string(root().join("docs/guide/migrate.md")).unwrap();
    // The last column of each table has the tests.
    let last_column =
        |line: &str| line.trim_end_matches(" |").rsplit(" | ").next().map(str::to_owned);
    let rows = migrate.lines().zip(1..).filter(|(line, _)| line.starts_with("| "));
    let named: Vec<(usize, String)> = rows
        .filter_map(|(line, number)| Some((number, last_column(line)?)))
        .flat_map(|(number, cell)| {
            let names: Vec<String> =
                inline_code(&cell).iter().map(|(_, n)| (*n).to_owned()).collect();
            names.into_iter().map(move |name| (number, name))
        })
        .collect();
    assert!(named.len() > 50, "the page names only {} tests", named.len());
    for (line, name) in named {
        let defined = format!("fn {name}(");
        let found = sources.iter().any(|source| source.text.contains(&defined));
        assert!(found, "docs/guide/migrate.md:{line}: there is no test `{name}`");
    }
}

#[test]
fn guides_name_their_subject() {
    let avoided = ["whoever", "nobody", "somebody", "anybody"];
    for guide in files_ending(".md").unwrap() {
        if !(guide.path == "README.md" || guide.path.starts_with("docs/guide/")) {
            continue;
        }
        for (line, number) in guide.text.lines().zip(1..) {
            let prose: String = line.to_lowercase().split('`').step_by(2).collect();
            let words: Vec<&str> = prose.split(|c: char| !c.is_alphanumeric()).collect();
            for word in avoided {
                assert!(!words.contains(&word), "{}:{number}: `{word}`", guide.path);
            }
            assert!(!line.starts_with("What "), "{}:{number}: begins with \"What\"", guide.path);
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
        "dev/book",
        "dev/screenshot",
        "dev/attacks",
        "dev/servers",
        "dev/conformance",
        "dev/compare",
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
