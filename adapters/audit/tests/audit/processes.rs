//! Several processes, and processes that are killed: one whole chain.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use capstan_audit::{JsonLines, Limits};
use capstan_hub::ports::AuditLog;

use crate::world::{World, entry};

/// The variables by which a child learns its log and how many entries to write.
const LOG: &str = "CAPSTAN_TEST_AUDIT_LOG";
const COUNT: &str = "CAPSTAN_TEST_AUDIT_COUNT";

const KILLS: u64 = 100;

/// Small enough that children put logs aside all the time.
const LIMITS: Limits =
    Limits { max_size: 20_000, max_total: Limits::MAX_TOTAL, retention: Limits::RETENTION };

/// The child's part; in an ordinary run there is nothing to do.
#[test]
#[expect(clippy::disallowed_methods, reason = "the only way to tell a child of the test harness")]
fn child_writes_entries() {
    let (Ok(path), Ok(count)) = (std::env::var(LOG), std::env::var(COUNT)) else { return };
    let log = JsonLines::open(Path::new(&path), LIMITS).unwrap();
    for number in 1..=count.parse().unwrap() {
        let mut entry = entry(number);
        entry.item = format!("{}.{number}", std::process::id());
        log.record(entry);
        assert_eq!(log.failures(), 0);
        writeln!(std::io::stderr(), "written {}.{number}", std::process::id()).unwrap();
    }
}

#[expect(clippy::disallowed_methods, reason = "the child is this very test")]
fn child(world: &World, count: u64, stderr: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_writes_entries", "--nocapture"])
        .env(LOG, world.log())
        .env(COUNT, count.to_string())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap()
}

#[test]
fn two_processes_make_one_whole_chain() {
    let world = World::new();
    let mut children = [(); 2].map(|()| child(&world, 200, Stdio::null()));
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let verified = world.verified();
    assert_eq!((verified.entries, verified.breaks), (400, 0));
}

#[test]
fn threads_make_one_whole_chain_with_one_log_or_many() {
    let world = World::new();
    let shared = world.open();
    thread::scope(|scope| {
        for own in [true, false, true, false] {
            let (world, shared) = (&world, &shared);
            scope.spawn(move || {
                let opened = own.then(|| world.open());
                let log = opened.as_ref().unwrap_or(shared);
                (1..=200).for_each(|number| log.record(entry(number)));
            });
        }
    });
    assert_eq!(shared.failures(), 0);
    let verified = world.verified();
    assert_eq!((verified.entries, verified.breaks), (800, 0));
}

#[test]
fn a_kill_at_any_moment_loses_no_entry_that_was_acknowledged() {
    let world = World::new();
    let mut acknowledged = BTreeSet::new();
    for round in 0..KILLS {
        let mut child = child(&world, 1_000_000, Stdio::piped());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        acknowledged.extend(lines.next().map(Result::unwrap));
        // A prime stride visits many moments in an order that is the same every time.
        for _ in 0..(round * 7919) % 1009 {
            thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines.map_while(Result::ok));
    }
    world.verified();
    let written: BTreeSet<String> =
        world.rows().into_iter().map(|row| format!("written {}", row.item)).collect();
    // The last line of a child may be cut short; then its beginning is a whole entry's, or none.
    let lost: Vec<&String> = acknowledged.difference(&written).collect();
    assert!(lost.iter().all(|line| is_cut_short(line, &written)), "{lost:?}");
}

fn is_cut_short(line: &str, written: &BTreeSet<String>) -> bool {
    written.iter().any(|whole| whole.starts_with(line))
}
