//! Retention: how long entries are kept, and the record of their removal. Holes 4.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_audit::{BootClock, BootTime, JsonLines, Limits, Reason};
use capstan_hub::Entry;
use capstan_hub::ports::AuditLog;
use jiff::Timestamp;

use crate::world::{World, entry, whole};

const DAY: u64 = 24 * 3600;

/// Calls a day: the newest thousand entries are those of five days.
const CALLS: u64 = 200;

/// A system: how often it was started, and the days since then.
#[derive(Clone, Default)]
struct System(Arc<Mutex<(u64, u64)>>);

impl System {
    fn set(&self, boot: u64, days: u64) {
        *self.0.lock().unwrap() = (boot, days);
    }

    fn clock(&self) -> BootClock {
        let state = Arc::clone(&self.0);
        BootClock::new(move || {
            let (boot, days) = *state.lock().unwrap();
            let elapsed = Duration::from_secs(days * DAY);
            Some(BootTime { boot: boot.to_string(), elapsed })
        })
    }

    /// A log that keeps its entries for nine days, and so begins a new file every day.
    fn nine_days(&self, world: &World) -> JsonLines {
        let retention = Duration::from_secs(9 * DAY);
        let log = JsonLines::open(&world.log(), Limits { retention, ..Limits::default() });
        log.unwrap().with_boot_clock(self.clock())
    }

    /// Makes the calls of a day on which the clock shows another one.
    fn live(&self, log: &JsonLines, day: u64, shown: u64) {
        let (boot, _) = *self.0.lock().unwrap();
        self.set(boot, day);
        let calls: Vec<Entry> = (0..CALLS).map(|_| on(shown, day)).collect();
        log.record_all(&calls).unwrap();
        assert_eq!(log.failures(), 0);
    }
}

/// A call on this day.
fn on(day: u64, number: u64) -> Entry {
    let second = i64::try_from(1000 * DAY + day * DAY).unwrap();
    Entry { time: Timestamp::from_second(second).unwrap(), ..entry(number) }
}

/// The days whose calls are in the log, and how many notes of retention there are.
fn days(world: &World) -> (Vec<u64>, usize) {
    world.verified();
    let rows = world.rows();
    let mut days: Vec<u64> =
        rows.iter().filter_map(|row| row.item.strip_prefix("tool_")?.parse().ok()).collect();
    days.dedup();
    (days, rows.iter().filter(|row| row.kind == "retention").count())
}

#[test]
fn entries_are_removed_when_they_are_provably_too_old_and_the_log_says_so() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    for day in 0..30 {
        system.live(&log, day, day);
        // The oldest entries are of nine days ago, and not younger than eight.
        let oldest = day.saturating_sub(8);
        assert_eq!(days(&world).0, (oldest..=day).collect::<Vec<_>>(), "day {day}");
    }
    let verified = world.verified();
    assert_eq!((verified.first, verified.breaks), (21 * CALLS + 12 + 1, 0));
    let told = world.rows().into_iter().find(|row| row.kind == "retention").unwrap();
    assert_eq!(told.outcome, "removed");
    assert!(told.item.starts_with("retention removes the entries "), "{}", told.item);
}

#[test]
fn a_forward_jump_of_the_clock_removes_nothing() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    (0..9).for_each(|day| system.live(&log, day, day));
    // Years later by the clock, and by another clock each time, in other processes as well.
    for (number, shown) in [400, 4000, 40, 5000, 100_000].into_iter().enumerate() {
        system.live(&system.nine_days(&world), 8, shown);
        system.live(&log, 8, shown + 20);
        assert_eq!(days(&world), ((0..9).collect(), 0), "jump {number}");
    }
    // A system that is started again and again with a wrong clock counts for a day each time.
    for boot in 1..=5 {
        system.set(boot, 0);
        system.live(&system.nine_days(&world), 0, 200_000 + 500 * boot);
    }
    // Files that are provably four days old are removed now, one for each new file.
    assert_eq!(days(&world).0.first(), Some(&5));
    assert!(world.verified().entries > 15 * CALLS);
}

#[test]
fn the_newest_thousand_entries_stay_however_old_they_are() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    for day in [0, 100, 200, 300, 400] {
        system.live(&log, day, day);
        assert_eq!(days(&world).0.first(), Some(&0), "{day}");
    }
    assert_eq!(world.verified(), whole(5 * CALLS, 0));
    system.live(&log, 500, 500);
    // One step for each new file.
    assert_eq!(days(&world), (vec![100, 200, 300, 400, 500], 1));
}

#[test]
fn a_log_that_was_left_alone_for_long_goes_in_steps() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    (0..20).for_each(|day| system.live(&log, day, day));
    let (before, notes) = days(&world);
    assert_eq!((before.first(), notes), (Some(&11), 9));
    // In the same boot, so the time has passed.
    system.live(&log, 400, 400);
    assert_eq!(days(&world).0.first(), Some(&12));
    // Other processes do not hurry it.
    for _ in 0..5 {
        system.live(&system.nine_days(&world), 400, 400);
    }
    assert_eq!(days(&world).0.first(), Some(&12));
    // A day later, independent of the wall clock, and on the next day.
    system.live(&system.nine_days(&world), 401, 400);
    assert_eq!(days(&world).0.first(), Some(&13));
    system.live(&system.nine_days(&world), 402, 402);
    assert_eq!(days(&world).0.first(), Some(&14));
}

#[test]
fn a_clock_that_is_set_back_removes_nothing_early_and_keeps_nothing_for_ever() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    (0..3).for_each(|day| system.live(&log, day, 5000 + day));
    // The clock was years ahead, and is right again.
    (3..9).for_each(|day| system.live(&system.nine_days(&world), day, day));
    assert_eq!(days(&world), ((0..9).collect(), 0));
    (9..15).for_each(|day| system.live(&system.nine_days(&world), day, day));
    assert_eq!(days(&world).0.first(), Some(&6));
}

#[test]
fn a_lost_record_of_time_begins_to_count_anew() {
    let (world, system) = (World::new(), System::default());
    let log = system.nine_days(&world);
    (0..9).for_each(|day| system.live(&log, day, day));
    for damage in ["", "{", "{\"proven\":{\"secs\":99999999999,\"nanos\":0}}"] {
        fs::write(world.file("audit.clock"), damage).unwrap();
        system.live(&log, 9, 9);
        system.live(&system.nine_days(&world), 9, 500);
        assert_eq!(days(&world).0.first(), Some(&0), "{damage}");
    }
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
    let system = System::default();
    let log = system.nine_days(&world);
    (0..20).for_each(|day| system.live(&log, day, day));
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
