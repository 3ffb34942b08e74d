//! Kill -9 at any moment of an edit leaves the old text or the new one, whole.
//!
//! Each round starts this very program as a child that edits one file over and over, numbering
//! the texts and telling on stderr which numbers are safely written, and kills it.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::thread;

use capstan_files::edit;

/// The variable by which the child learns its file.
const FILE: &str = "CAPSTAN_TEST_KILL_FILE";

const ROUNDS: u64 = 500;

/// Lines of a text: enough that writing it takes several system calls' time.
const LINES: usize = 2000;

/// The prefix of the child's reports about written numbers.
const WRITTEN: &str = "written ";

#[test]
fn every_kill_leaves_the_old_text_or_the_new_one_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let (mut last, mut ahead, mut litter) = (0, 0, 0);
    for round in 0..ROUNDS {
        let acknowledged = kill_one(&path, round).unwrap_or(last);
        let found = number_of(&fs::read_to_string(&path).unwrap());
        assert!(
            found == acknowledged || found == acknowledged + 1,
            "round {round}: {acknowledged} was acknowledged, {found} is there"
        );
        ahead += found - acknowledged;
        litter += fs::read_dir(folder.path()).unwrap().count() - 1;
        last = found;
    }
    // The kills did hit: some between rename and acknowledgement, some before the rename.
    assert!(ahead > 0 && litter > 0, "ahead {ahead}, litter {litter}");
    edit(&path, |_| Ok::<_, Infallible>("end".to_owned())).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_edits_until_it_is_killed() {
    let Ok(path) = std::env::var(FILE) else { return };
    loop {
        let mut number = 0;
        let next = |old: &str| {
            number = number_of(old) + 1;
            Ok::<_, Infallible>(text_of(number))
        };
        edit(Path::new(&path), next).unwrap();
        writeln!(std::io::stderr(), "{WRITTEN}{number}").unwrap();
    }
}

/// Starts a child, kills it at a moment that differs from round to round, and gives the last
/// number it reported.
fn kill_one(path: &Path, round: u64) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "the child is this very test")]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_edits_until_it_is_killed", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reports = Reports(BufReader::new(child.stderr.take().unwrap()));
    let mut last = reports.next();
    // A prime stride visits all moments of an edit in an order that is the same every time.
    for _ in 0..(round * 7919) % 3001 {
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    while let Some(number) = reports.next() {
        last = Some(number);
    }
    last
}

/// The numbers a child reports.
struct Reports(BufReader<ChildStderr>);

impl Reports {
    fn next(&mut self) -> Option<u64> {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        // A report that the kill cut short was not made.
        line.strip_suffix('\n')?.strip_prefix(WRITTEN)?.parse().ok()
    }
}

/// A text that carries its number in every line.
fn text_of(number: u64) -> String {
    format!("entry = {number}\n").repeat(LINES)
}

/// The number of a whole text, 0 for the first; anything else fails the test.
#[track_caller]
fn number_of(text: &str) -> u64 {
    let Some(first) = text.lines().next() else { return 0 };
    let number = first.strip_prefix("entry = ").unwrap().parse().unwrap();
    assert!(text == text_of(number), "the text of {number} is not whole");
    number
}
