//! Entries that are written beside the calls.

use std::fs::{self, File};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use capstan_audit::MAX_WAITING;
use capstan_audit::{Background, JsonLines, Limits};
use capstan_hub::ports::AuditLog;

use crate::world::{World, entry, whole};

fn background(world: &World) -> Background {
    Background::start(world.open()).unwrap()
}

#[test]
fn entries_arrive_in_order_and_the_chain_is_whole() {
    let world = World::new();
    let log = background(&world);
    (1..=3000).for_each(|number| log.record(entry(number)));
    log.close();
    let items: Vec<String> = world.rows().into_iter().map(|row| row.item).collect();
    let expected: Vec<String> = (1..=3000).map(|number| format!("tool_{number}")).collect();
    assert_eq!(items, expected);
    assert_eq!(world.verified(), whole(3000, 0));
}

#[test]
fn dropping_it_writes_what_waits() {
    let world = World::new();
    let log = background(&world);
    log.record(entry(1));
    drop(log);
    assert_eq!(world.verified().entries, 1);
}

#[test]
fn what_comes_after_the_end_is_written_too() {
    let world = World::new();
    let log = background(&world);
    log.record(entry(1));
    log.close();
    log.record(entry(2));
    assert_eq!(world.verified().entries, 2);
    log.close();
}

#[test]
fn who_records_more_than_can_be_written_waits_and_nothing_is_lost() {
    let world = World::new();
    let log = Arc::new(background(&world));
    // Nothing can be written while another process holds the lock of the log.
    let head = File::open(world.file("audit.head")).unwrap();
    head.lock().unwrap();
    let count = MAX_WAITING as u64 * 3;
    let recorded = Arc::new(AtomicU64::new(0));
    let thread = {
        let (log, recorded) = (Arc::clone(&log), Arc::clone(&recorded));
        thread::spawn(move || {
            for number in 1..=count {
                log.record(entry(number));
                recorded.store(number, Ordering::Release);
            }
        })
    };
    while recorded.load(Ordering::Acquire) < MAX_WAITING as u64 {
        thread::yield_now();
    }
    assert!(!thread.is_finished());
    head.unlock().unwrap();
    thread.join().unwrap();
    log.close();
    assert_eq!(log.failures(), 0);
    assert_eq!(world.verified(), whole(count, 0));
}

#[test]
fn entries_of_a_batch_that_cannot_be_written_are_counted_and_told() {
    let world = World::with_entries(1);
    let log = world.open();
    // A folder in the place of the log cannot be written to, not even by root.
    let aside = world.file("aside");
    fs::rename(world.log(), &aside).unwrap();
    fs::create_dir(world.log()).unwrap();
    log.record_all(&[entry(2), entry(3), entry(4)]).unwrap();
    fs::remove_dir(world.log()).unwrap();
    fs::rename(&aside, world.log()).unwrap();
    log.record_all(&[entry(5), entry(6)]).unwrap();
    let items: Vec<String> = world.rows().into_iter().map(|row| row.item).collect();
    assert_eq!(items, ["tool_1", "3 entries could not be written", "tool_5", "tool_6"]);
    assert_eq!(world.verified(), whole(4, 1));
}

#[test]
fn a_batch_puts_a_full_log_aside_and_goes_on_in_a_new_one() {
    let world = World::new();
    let log =
        JsonLines::open(&world.log(), Limits { max_size: 4096, ..Limits::default() }).unwrap();
    for first in (1..=40).step_by(4) {
        let batch: Vec<_> = (first..first + 4).map(entry).collect();
        log.record_all(&batch).unwrap();
    }
    assert!(world.file("audit.1.jsonl").exists());
    assert_eq!(world.verified(), whole(40, 0));
    log.record_all(&[]).unwrap();
    assert_eq!(world.verified().entries, 40);
}
