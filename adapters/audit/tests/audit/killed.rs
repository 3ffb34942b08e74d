//! Processes that write beside their calls and are killed leave a visible break. Holes 11.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use capstan_audit::{Background, JsonLines, Limits};
use capstan_hub::ports::AuditLog;

use crate::world::{World, entry, whole};

/// The variable by which a child learns its log.
const LOG: &str = "CAPSTAN_TEST_OPEN_LOG";

/// The child's part: it records an entry, and waits until it is ended.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_writes_beside_its_calls() {
    let Ok(path) = std::env::var(LOG) else { return };
    let log = JsonLines::open(Path::new(&path), Limits::default()).unwrap();
    let log = Background::start(log).unwrap();
    log.record(entry(1));
    writeln!(std::io::stderr(), "ready").unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    log.close();
}

/// A process that writes to the log beside its calls, and runs.
#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn child(world: &World) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child_writes_beside_its_calls", "--nocapture"])
        .env(LOG, world.log())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    child
}

fn markers(world: &World) -> usize {
    fs::read_dir(world.file("audit.open")).map_or(0, Iterator::count)
}

/// The entries about killed processes.
fn told(world: &World) -> Vec<String> {
    let rows = world.rows().into_iter().filter(|row| row.outcome == "unclosed");
    rows.map(|row| format!("{} {}", row.kind, row.item)).collect()
}

#[test]
fn a_process_that_is_killed_leaves_a_break_that_the_next_writer_notes_once() {
    let world = World::with_entries(1);
    let mut killed = child(&world);
    assert_eq!((world.verified().unclosed, markers(&world)), (0, 1));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Before the next write, and on every read.
    for _ in 0..2 {
        assert_eq!(world.verified().unclosed, 1);
    }
    world.record(2..=3);
    world.record(4..=4);
    let number = killed.id();
    let expected = format!(
        "break process {number} ended without closing the log; entries of its last calls may be missing"
    );
    assert_eq!(told(&world), [expected]);
    let verified = world.verified();
    assert_eq!((verified.breaks, verified.unclosed, markers(&world)), (1, 0, 0));
}

#[test]
fn a_process_that_ends_well_leaves_no_break() {
    let world = World::new();
    let mut ended = child(&world);
    writeln!(ended.stdin.take().unwrap(), "end").unwrap();
    assert!(ended.wait().unwrap().success());
    world.record(2..=2);
    assert_eq!((world.verified(), markers(&world)), (whole(2, 0), 0));
}

#[test]
fn a_process_that_runs_is_not_taken_for_one_that_was_killed() {
    let world = World::new();
    let (mut one, mut other) = (child(&world), child(&world));
    world.record(3..=3);
    assert_eq!((world.verified().unclosed, told(&world).len(), markers(&world)), (0, 0, 2));
    one.kill().unwrap();
    one.wait().unwrap();
    world.record(4..=4);
    assert_eq!((told(&world).len(), markers(&world)), (1, 1));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(world.verified().unclosed, 1);
}

#[test]
fn another_process_of_the_same_number_does_not_hide_it() {
    let world = World::with_entries(1);
    // As if this very process had been killed before, and its number were used again.
    fs::create_dir(world.file("audit.open")).unwrap();
    fs::write(world.file(&format!("audit.open/{}-0", std::process::id())), "").unwrap();
    let log = Background::start(world.open()).unwrap();
    assert_eq!((world.verified().unclosed, markers(&world)), (1, 2));
    log.record(entry(2));
    log.close();
    assert_eq!((told(&world).len(), markers(&world)), (1, 0));
    assert_eq!(world.verified().unclosed, 0);
}

#[test]
fn a_marker_stays_until_the_log_tells_of_it() {
    let world = World::with_entries(1);
    let mut killed = child(&world);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let log = world.open();
    // A folder in the place of the log cannot be written to, not even by root.
    let aside = world.file("aside");
    fs::rename(world.log(), &aside).unwrap();
    fs::create_dir(world.log()).unwrap();
    log.record(entry(2));
    assert_eq!((log.failures(), markers(&world)), (1, 1));
    fs::remove_dir(world.log()).unwrap();
    fs::rename(&aside, world.log()).unwrap();
    log.record(entry(3));
    assert_eq!((told(&world).len(), markers(&world)), (1, 0));
}

#[test]
fn a_process_that_ends_without_telling_of_lost_entries_leaves_its_marker_behind() {
    let world = World::with_entries(1);
    let log = Background::start(world.open()).unwrap();
    // A folder in the place of the log cannot be written to, not even by root.
    let aside = world.file("aside");
    fs::rename(world.log(), &aside).unwrap();
    fs::create_dir(world.log()).unwrap();
    log.record(entry(2));
    log.close();
    assert!(log.failures() > 0);
    drop(log);
    fs::remove_dir(world.log()).unwrap();
    fs::rename(&aside, world.log()).unwrap();
    assert_eq!((world.verified().unclosed, markers(&world)), (1, 1));
    world.record(3..=3);
    assert_eq!((told(&world).len(), markers(&world)), (1, 0));
}

#[test]
fn a_process_that_tells_of_lost_entries_after_closing_leaves_no_marker() {
    let world = World::with_entries(1);
    let log = Background::start(world.open()).unwrap();
    let aside = world.file("aside");
    fs::rename(world.log(), &aside).unwrap();
    fs::create_dir(world.log()).unwrap();
    log.record(entry(2));
    log.close();
    fs::remove_dir(world.log()).unwrap();
    fs::rename(&aside, world.log()).unwrap();
    log.record(entry(3));
    drop(log);
    assert_eq!((world.verified(), markers(&world)), (whole(3, 1), 0));
}

#[test]
fn markers_of_killed_processes_are_found_among_many_other_files() {
    let world = World::with_entries(1);
    let folder = world.file("audit.open");
    fs::create_dir(&folder).unwrap();
    for number in 0..400 {
        fs::write(folder.join(format!("stray-{number}")), "").unwrap();
    }
    for number in 0..70 {
        fs::write(folder.join(format!("{}-0", 5_000_000 + number)), "").unwrap();
    }
    assert_eq!(world.verified().unclosed, 64);
    // The others are told of by the next writer.
    world.record(2..=2);
    assert_eq!((told(&world).len(), markers(&world)), (64, 406));
    world.record(3..=3);
    assert_eq!((told(&world).len(), markers(&world)), (70, 400));
}
