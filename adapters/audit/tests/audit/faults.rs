//! Crashes and failures: nothing is dropped in silence.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};

use capstan_audit::{JsonLines, Limits};
use capstan_hub::ports::AuditLog;

use crate::world::{World, entry, lines_of, whole};

/// Adds bytes to the log without an end of line, as a crash in the middle of a write does.
fn tear(world: &World, bytes: &[u8]) {
    let mut log = OpenOptions::new().append(true).open(world.log()).unwrap();
    log.write_all(bytes).unwrap();
}

#[test]
fn an_incomplete_line_is_kept_aside_and_told() {
    let world = World::with_entries(2);
    tear(&world, b"{\"seq\":3,\"ti");
    world.record(3..=3);
    assert_eq!(lines_of(&world.file("audit.torn")), ["{\"seq\":3,\"ti"]);
    let rows = world.rows();
    let outcomes: Vec<&str> = rows.iter().map(|row| row.outcome.as_str()).collect();
    assert_eq!(outcomes, ["answered", "answered", "torn", "answered"]);
    assert_eq!(world.verified(), whole(4, 1));
}

#[test]
fn an_incomplete_line_is_found_also_by_a_process_that_wrote_before_it() {
    let world = World::new();
    let log = world.open();
    log.record(entry(1));
    tear(&world, &b"x".repeat(200_000));
    log.record(entry(2));
    assert_eq!(fs::metadata(world.file("audit.torn")).unwrap().len(), 200_001);
    assert_eq!(world.verified(), whole(3, 1));
}

#[test]
fn a_first_line_can_be_incomplete_too() {
    let world = World::with_entries(0);
    tear(&world, b"{");
    world.record(1..=1);
    assert_eq!(world.verified(), whole(2, 1));
}

#[test]
fn a_crash_between_the_log_and_its_head_does_no_harm() {
    let world = World::with_entries(1);
    let behind = fs::read(world.file("audit.head")).unwrap();
    world.record(2..=2);
    fs::write(world.file("audit.head"), behind).unwrap();
    assert_eq!(world.verified().entries, 2);
    world.record(3..=3);
    assert_eq!(world.verified(), whole(3, 0));
}

#[test]
fn entries_that_could_not_be_written_are_counted_and_then_told() {
    let world = World::new();
    let log = world.open();
    log.record(entry(1));
    // A folder in the place of the log cannot be written to, not even by root.
    let aside = world.file("aside");
    fs::rename(world.log(), &aside).unwrap();
    fs::create_dir(world.log()).unwrap();
    log.record(entry(2));
    log.record(entry(3));
    assert_eq!(log.failures(), 2);
    fs::remove_dir(world.log()).unwrap();
    fs::rename(&aside, world.log()).unwrap();
    log.record(entry(4));
    let items: Vec<String> = world.rows().into_iter().map(|row| row.item).collect();
    assert_eq!(items, ["tool_1", "2 entries could not be written", "tool_4"]);
    assert_eq!(log.failures(), 2);
    assert_eq!(world.verified(), whole(3, 1));
}

#[test]
fn a_lock_that_never_ends_costs_entries_but_not_the_hub() {
    let world = World::new();
    let log = world.open();
    let head = File::open(world.file("audit.head")).unwrap();
    head.lock().unwrap();
    log.record(entry(1));
    let start = Instant::now();
    for number in 2..=50 {
        log.record(entry(number));
    }
    // Only the first one waits.
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(log.failures(), 50);
    head.unlock().unwrap();
    log.record(entry(51));
    assert_eq!(world.verified(), whole(2, 1));
}

#[test]
fn a_log_that_cannot_be_made_is_an_error_that_names_it() {
    let world = World::new();
    fs::write(world.file("file"), "").unwrap();
    fs::create_dir(world.file("folder.jsonl")).unwrap();
    for name in ["file/audit.jsonl", "folder.jsonl"] {
        let error = JsonLines::open(&world.file(name), Limits::default()).unwrap_err();
        let first = name.split(['/', '.']).next().unwrap();
        assert!(error.to_string().contains(first), "{error}");
    }
}
