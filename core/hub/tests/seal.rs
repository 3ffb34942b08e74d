//! The seal, read off the public API: what reaches a server carries its own proof.

#![expect(clippy::expect_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::path::{Path, PathBuf};

/// The types that say what is to be done with an item or a task.
const OPERATIONS: [&str; 3] = ["SideOp", "TaskOp", "SystemMessage"];

/// All source files of this crate.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The name and the parameters of each function in these sources.
fn functions() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in sources(&folder) {
        let text = fs::read_to_string(path).expect("a source can be read");
        let code: Vec<&str> =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for part in code.join("\n").split("fn ").skip(1) {
            let Some((name, rest)) = part.split_once('(') else { continue };
            let mut depth = 1;
            let end = rest.find(|letter| {
                depth += i32::from(letter == '(') - i32::from(letter == ')');
                depth == 0
            });
            let parameters = rest.get(..end.unwrap_or_default()).unwrap_or_default();
            found.push((name.to_owned(), parameters.to_owned()));
        }
    }
    found
}

#[test]
fn no_function_takes_an_admission_and_an_operation_separately() {
    for (name, parameters) in functions() {
        let both = parameters.contains("Admission")
            && OPERATIONS.iter().any(|operation| parameters.contains(operation));
        assert!(!both, "`{name}({parameters})`");
    }
}

#[test]
fn an_admission_can_only_be_run() {
    let all = functions();
    let takers = all.iter().filter(|(_, parameters)| parameters.contains("Admission"));
    let mut takers: Vec<&str> = takers.map(|(name, _)| name.as_str()).collect();
    takers.sort_unstable();
    assert_eq!(takers, ["run_side", "side"], "`side` wraps it for `run_side`");
}

#[test]
fn neither_the_hub_nor_a_proof_has_a_public_field() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let sealed = [
        "Hub",
        "Ticket",
        "Admission",
        "Continuation",
        "ExtensionMethod",
        "ExtensionNotification",
        "TaskHandle",
        "TaskRequest",
        "TaskSubscription",
        "Outgoing<'a>",
        "System",
    ];
    let sources = sources(&folder);
    let texts: Vec<String> =
        sources.iter().map(|path| fs::read_to_string(path).expect("a source")).collect();
    for name in sealed {
        let start = format!("pub struct {name}");
        let mut found = texts.iter().filter_map(|text| {
            let (_, rest) = text.split_once(&start)?;
            rest.starts_with([' ', '(']).then_some(rest)
        });
        let rest = found.next().expect("each is defined in this crate");
        let end = if rest.starts_with('(') { ");" } else { "\n}" };
        let (fields, _) = rest.split_once(end).expect("a struct ends");
        assert!(!fields.contains("pub "), "`{name}` has a public field");
    }
}
