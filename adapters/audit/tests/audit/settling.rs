//! Answers that wait for the disk: every acknowledged entry survives a kill at any time, and
//! concurrent answers share one write.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;

use capstan_audit::{Background, Durability, JsonLines, Limits};
use capstan_hub::ports::{AuditLog, Settling};
use futures::future::join_all;

use crate::world::{World, block_on, entry, whole};

/// The variable by which a child learns its log.
const LOG: &str = "CAPSTAN_TEST_DURABLE_LOG";

const KILLS: u64 = 200;

/// Rounds on one log, so that looking at it all stays cheap.
const ROUNDS: u64 = 20;

/// Calls at the same time.
const THREADS: u64 = 4;

/// Calls one after the other; more than are waited for before the kill.
const ENTRIES: u64 = 24;

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_writes_entries_that_are_waited_for() {
    let Ok(path) = std::env::var(LOG) else { return };
    let limits = Limits { max_size: 20_000, ..Limits::default() };
    let log = JsonLines::open(Path::new(&path), limits).unwrap();
    let log = Arc::new(Background::start(log.with_durability(Durability::Sync)).unwrap());
    let threads = (0..THREADS).map(|thread| {
        let log = Arc::clone(&log);
        thread::spawn(move || (1..=ENTRIES).for_each(|number| write(&log, thread, number)))
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// Records a call and says so once its answer may be delivered.
fn write(log: &Background, thread: u64, number: u64) {
    let mut entry = entry(number);
    entry.item = format!("{}.{thread}.{number}", std::process::id());
    let told = format!("kept {}\n", entry.item);
    let Settling::Waits(kept) = log.settle(entry) else { return };
    block_on(kept).unwrap();
    std::io::stderr().write_all(told.as_bytes()).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn child(world: &World) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settling::child_writes_entries_that_are_waited_for", "--nocapture"])
        .env(LOG, world.log())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_kill_at_any_moment_loses_no_entry_whose_answer_was_delivered() {
    let mut world = World::new();
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for round in 0..KILLS {
        if round % ROUNDS == 0 {
            world = World::new();
            kept.clear();
        }
        let mut child = child(&world);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).split(b'\n');
        // Another moment each time: while later entries are on their way.
        let before = usize::try_from(round % 20).unwrap() + 1;
        let first = lines.by_ref().take(before).map(Result::unwrap);
        kept.extend(first.map(|line| String::from_utf8(line).unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        let rest: Vec<Vec<u8>> = lines.map_while(Result::ok).collect();
        // The last line may be cut short by the kill; a whole one was written in one piece.
        let whole = rest.split_last().map_or(&[][..], |(_, whole)| whole);
        kept.extend(whole.iter().map(|line| String::from_utf8(line.clone()).unwrap()));
        // The next writer repairs an incomplete line.
        world.open().record(entry(round + 1_000_000));
        world.verified();
        let written: BTreeSet<String> =
            world.rows().into_iter().map(|row| format!("kept {}", row.item)).collect();
        let lost: Vec<&String> = kept.difference(&written).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?}");
    }
}

#[test]
fn many_who_wait_at_the_same_time_all_get_their_entries() {
    let world = World::new();
    let log = Background::start(world.open().with_durability(Durability::Sync)).unwrap();
    let waiting = (1..=500).map(|number| match log.settle(entry(number)) {
        Settling::Waits(kept) => kept,
        Settling::Done => panic!("nothing was waited for"),
    });
    let waiting: Vec<_> = waiting.collect();
    assert!(block_on(join_all(waiting)).into_iter().all(|kept| kept.is_ok()));
    assert_eq!(world.verified(), whole(500, 0));
}

#[test]
fn who_does_not_wait_has_an_entry_all_the_same() {
    let world = World::new();
    let log = Background::start(world.open().with_durability(Durability::Sync)).unwrap();
    drop(log.settle(entry(1)));
    log.close();
    assert!(matches!(log.settle(entry(2)), Settling::Done), "it is written at once");
    assert_eq!(world.verified(), whole(2, 0));
}

#[test]
fn where_nobody_asks_for_it_nobody_waits() {
    let world = World::new();
    let log = Background::start(world.open()).unwrap();
    assert!(matches!(log.settle(entry(1)), Settling::Done));
}
