//! How long entries are kept, and what is said of those that are gone.

use std::fs;
use std::time::Duration;

use capstan_audit::{JsonLines, Limits, Reason, Verified};
use capstan_hub::Entry;
use capstan_hub::ports::AuditLog;
use jiff::Timestamp;

use crate::world::{World, entry, whole};

const DAY: u64 = 24 * 3600;

/// A log that keeps its entries for nine days, and so begins a new file every day.
fn nine_days(world: &World) -> JsonLines {
    let retention = Duration::from_secs(9 * DAY);
    JsonLines::open(&world.log(), Limits { retention, ..Limits::default() }).unwrap()
}

/// A call on this day.
fn on(day: u64, number: u64) -> Entry {
    let second = i64::try_from(1000 * DAY + day * DAY).unwrap();
    Entry { time: Timestamp::from_second(second).unwrap(), ..entry(number) }
}

fn items(world: &World) -> Vec<String> {
    world.rows().into_iter().map(|row| row.item).collect()
}

#[test]
fn entries_are_dropped_when_they_are_too_old_and_the_rest_is_whole() {
    let world = World::new();
    let log = nine_days(&world);
    for day in 0..30 {
        log.record(on(day, day));
        let first = world.verified().first;
        // The oldest entry is of nine days ago at the most, and never younger than eight.
        let expected = if day < 9 { 1 } else { day - 7 };
        assert_eq!(first, expected, "day {day}");
    }
    assert_eq!(log.failures(), 0);
    assert_eq!(world.verified(), Verified { first: 22, entries: 9, breaks: 0 });
    assert_eq!(items(&world)[0], "tool_21");
}

#[test]
fn a_log_that_was_left_alone_for_long_begins_anew() {
    let world = World::new();
    nine_days(&world).record(on(0, 1));
    nine_days(&world).record(on(400, 2));
    assert_eq!(items(&world), ["tool_2"]);
    assert_eq!(world.verified(), Verified { first: 2, entries: 1, breaks: 0 });
}

#[test]
fn what_is_old_is_found_also_when_no_new_file_is_begun() {
    let world = World::new();
    let log = nine_days(&world);
    log.record(on(0, 1));
    log.record(on(8, 2));
    // Half a day later the file that is written to is young, and the other one too old.
    let mut late = on(9, 3);
    late.time -= Duration::from_secs(DAY / 2);
    log.record(late);
    assert_eq!(items(&world), ["tool_1", "tool_2", "tool_3"]);
    let mut later = on(9, 4);
    later.time += Duration::from_mins(1);
    nine_days(&world).record(later);
    assert_eq!(items(&world), ["tool_2", "tool_3", "tool_4"]);
    assert_eq!(world.verified(), Verified { first: 2, entries: 3, breaks: 0 });
}

#[test]
fn a_clock_that_is_set_back_drops_nothing() {
    let world = World::new();
    let log = nine_days(&world);
    log.record(on(8, 1));
    log.record(on(0, 2));
    log.record(on(8, 3));
    assert_eq!(world.verified(), whole(3, 0));
}

#[test]
fn all_files_together_stay_below_their_bound() {
    let world = World::new();
    let limits = Limits { max_size: 4000, max_total: 20_000, ..Limits::default() };
    let log = JsonLines::open(&world.log(), limits).unwrap();
    for number in 1..=300 {
        log.record(entry(number));
        let files = fs::read_dir(world.file("")).unwrap().map(|file| file.unwrap());
        let logs = files.filter(|file| file.file_name().to_string_lossy().ends_with(".jsonl"));
        let total: u64 = logs.map(|file| file.metadata().unwrap().len()).sum();
        assert!(total <= 20_000, "{total} after {number}");
    }
    let verified = world.verified();
    assert_eq!(verified.first + verified.entries - 1, 300);
    assert!(verified.first > 200 && verified.entries > 20, "{verified:?}");
}

#[test]
fn removing_more_than_retention_did_is_found() {
    let world = World::new();
    let log = nine_days(&world);
    (0..20).for_each(|day| log.record(on(day, day)));
    let oldest = (1..100).rev().map(|number| world.file(&format!("audit.{number}.jsonl")));
    let oldest = oldest.into_iter().find(|path| path.exists()).unwrap();
    fs::remove_file(oldest).unwrap();
    assert!(matches!(world.broken().reason, Reason::OutOfPlace { .. }));
}

#[test]
fn a_log_of_an_earlier_version_is_still_whole_and_goes_on() {
    let world = World::new();
    // Two lines as they were written before clients and methods were noted.
    fs::write(world.log(), include_str!("earlier.jsonl")).unwrap();
    fs::write(world.file("audit.head"), include_str!("earlier.head")).unwrap();
    assert_eq!(world.verified(), whole(2, 0));
    world.record(3..=3);
    assert_eq!(world.verified(), whole(3, 0));
    assert_eq!(world.rows()[0].caller_id.as_deref(), Some("some-client/1.0"));
}
