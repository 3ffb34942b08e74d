//! A log that cannot be written: calls are refused, or go on and are counted; never in silence.

use std::fs;

use capstan_audit::{Background, Durability, JsonLines, OnFull};
use capstan_hub::ports::{AuditLog, Settling, Unwritten};

use crate::world::{World, block_on, entry, whole};

/// Puts a folder in the place of the log: not even root can write to it.
fn block(world: &World) {
    fs::rename(world.log(), world.file("aside")).unwrap();
    fs::create_dir(world.log()).unwrap();
}

fn unblock(world: &World) {
    fs::remove_dir(world.log()).unwrap();
    fs::rename(world.file("aside"), world.log()).unwrap();
}

fn refusing(world: &World) -> JsonLines {
    world.open().with_on_full(OnFull::Refuse)
}

/// True if the answer of this call may be delivered.
fn settle(log: &impl AuditLog, number: u64) -> Result<(), Unwritten> {
    match log.settle(entry(number)) {
        Settling::Done => Ok(()),
        Settling::Waits(kept) => block_on(kept),
    }
}

fn items(world: &World) -> Vec<String> {
    world.rows().into_iter().map(|row| row.item).collect()
}

#[test]
fn a_log_that_can_be_written_is_ready_and_looking_leaves_no_trace() {
    let world = World::with_entries(1);
    let before = fs::read(world.log()).unwrap();
    assert_eq!(refusing(&world).ready(), Ok(()));
    assert_eq!(fs::read(world.log()).unwrap(), before);
    // A process that died while it looked leaves blanks.
    fs::write(world.log(), [before.as_slice(), &[b' '; 100]].concat()).unwrap();
    assert_eq!(world.verified(), whole(1, 0));
    world.record(2..=2);
    assert_eq!(world.verified(), whole(2, 0));
    assert!(!world.file("audit.torn").exists());
}

#[test]
fn who_wants_no_call_unwritten_refuses_the_first_one_already() {
    let world = World::with_entries(1);
    let log = refusing(&world);
    block(&world);
    let Err(Unwritten(reason)) = log.ready() else { panic!("it is ready") };
    assert!(reason.contains("audit.jsonl") && reason.contains("irectory"), "{reason}");
    assert_eq!(log.lost(), 0);
}

#[test]
fn a_log_that_works_again_takes_calls_again_and_tells_what_is_missing() {
    let world = World::with_entries(1);
    let log = refusing(&world);
    assert_eq!(log.ready(), Ok(()));
    block(&world);
    // The first failure cannot be foreseen; later calls are refused.
    assert_eq!(settle(&log, 2), Ok(()));
    assert!(log.ready().is_err());
    // Refusals are recorded as well, as soon as the log can be written.
    log.record(entry(3));
    assert!(log.ready().is_err());
    unblock(&world);
    assert!(log.ready().is_err(), "nothing was tried since");
    log.record(entry(4));
    assert_eq!(log.ready(), Ok(()));
    assert_eq!(log.lost(), 2);
    assert_eq!(items(&world), ["tool_1", "2 entries could not be written", "tool_4"]);
    assert_eq!(world.verified(), whole(3, 1));
}

#[test]
fn an_answer_that_waits_for_its_entry_is_withheld_when_there_is_none_and_calls_are_refused_then() {
    for (on_full, withheld) in [(OnFull::Refuse, true), (OnFull::Degrade, false)] {
        let world = World::with_entries(1);
        let log = world.open().with_on_full(on_full).with_durability(Durability::Sync);
        assert_eq!(settle(&log, 2), Ok(()));
        block(&world);
        assert_eq!(settle(&log, 3).is_err(), withheld, "{on_full:?}");
        assert_eq!(log.ready().is_err(), withheld, "{on_full:?}");
        unblock(&world);
        let log = Background::start(log).unwrap();
        assert_eq!(settle(&log, 4), Ok(()));
        block(&world);
        assert_eq!(settle(&log, 5).is_err(), withheld, "{on_full:?}");
        assert_eq!(log.lost(), 2);
        unblock(&world);
    }
}

#[test]
fn what_was_lost_is_written_down_as_soon_as_that_is_possible_without_any_further_call() {
    let world = World::with_entries(1);
    let log = Background::start(world.open()).unwrap();
    block(&world);
    log.record(entry(2));
    log.record(entry(3));
    while log.lost() < 2 {
        std::thread::yield_now();
    }
    unblock(&world);
    while world.rows().len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(items(&world), ["tool_1", "2 entries could not be written"]);
    assert_eq!((log.lost(), world.verified()), (2, whole(2, 1)));
}

#[test]
fn what_was_lost_is_written_down_at_the_end_at_the_latest() {
    let world = World::with_entries(1);
    let log = Background::start(world.open()).unwrap();
    block(&world);
    log.record(entry(2));
    while log.lost() < 1 {
        std::thread::yield_now();
    }
    unblock(&world);
    log.close();
    assert_eq!(items(&world), ["tool_1", "1 entries could not be written"]);
}
