//! Logs that are full make room, and the chain goes on.

use std::fs;

use capstan_audit::{JsonLines, Limits, Position, Reason};
use capstan_hub::ports::AuditLog;

use crate::world::{World, entry, lines_of, whole};

/// A log of about ten entries a file, with room for so many older files.
fn small(world: &World, keep: u32) -> JsonLines {
    let limits =
        Limits { max_size: 5000, max_total: 5000 * u64::from(keep + 1), ..Limits::default() };
    JsonLines::open(&world.log(), limits).unwrap()
}

fn fill(world: &World, keep: u32, count: u64) {
    let log = small(world, keep);
    for number in 1..=count {
        log.record(entry(number));
    }
    assert_eq!(log.failures(), 0);
}

#[test]
fn the_chain_goes_on_from_file_to_file() {
    let world = World::new();
    fill(&world, 9, 40);
    let older = lines_of(&world.file("audit.1.jsonl"));
    let last: serde_json::Value = serde_json::from_str(older.last().unwrap()).unwrap();
    let first: serde_json::Value = serde_json::from_str(&world.lines()[0]).unwrap();
    assert_eq!(first["prev"], last["hash"]);
    assert_eq!(world.verified(), whole(40, 0));
    let seqs: Vec<u64> = world.rows().iter().map(|row| row.seq).collect();
    assert_eq!(seqs, (1..=40).collect::<Vec<_>>());
    for number in 1..=3 {
        let len = fs::metadata(world.file(&format!("audit.{number}.jsonl"))).unwrap().len();
        assert!(len <= 5000, "{len}");
    }
}

#[test]
fn only_so_many_files_are_kept_and_what_is_left_is_whole() {
    for keep in [0, 1, 3] {
        let world = World::new();
        fill(&world, keep, 100);
        let next = keep + 1;
        assert!(!world.file(&format!("audit.{next}.jsonl")).exists());
        assert_eq!(keep > 0, world.file(&format!("audit.{keep}.jsonl")).exists());
        let rows = world.rows();
        assert_eq!(rows.last().unwrap().seq, 100);
        assert_eq!(world.verified().entries, rows.len() as u64);
    }
}

#[test]
fn a_missing_older_file_is_found() {
    let world = World::new();
    fill(&world, 9, 60);
    fs::remove_file(world.file("audit.2.jsonl")).unwrap();
    let broken = world.broken();
    let words = broken.to_string();
    assert!(
        words.ends_with("are missing: lines were removed, or the file that held them"),
        "{words}"
    );
    assert_eq!((broken.file, broken.line), (world.file("audit.1.jsonl"), 1));
    assert!(matches!(broken.reason, Reason::OutOfPlace { .. }));
}

#[test]
fn a_missing_oldest_file_is_found() {
    let world = World::new();
    fill(&world, 2, 100);
    fs::remove_file(world.file("audit.2.jsonl")).unwrap();
    assert!(matches!(world.broken().reason, Reason::OutOfPlace { .. }));
}

#[test]
fn a_line_changed_in_an_older_file_is_found() {
    let world = World::new();
    fill(&world, 9, 40);
    let path = world.file("audit.2.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("asked", "asket", 1)).unwrap();
    let broken = world.broken();
    assert_eq!((broken.file, broken.line, broken.reason), (path, 1, Reason::Changed));
}

#[test]
fn a_process_that_died_between_two_renames_leaves_a_log_that_goes_on() {
    let world = World::new();
    fill(&world, 9, 24);
    // Everything moved up, the log itself renamed, and no new one begun.
    for number in (1..=2).rev() {
        let to = world.file(&format!("audit.{}.jsonl", number + 1));
        fs::rename(world.file(&format!("audit.{number}.jsonl")), to).unwrap();
    }
    assert_eq!(world.verified(), whole(24, 0));
    fs::rename(world.log(), world.file("audit.1.jsonl")).unwrap();
    assert_eq!(world.verified(), whole(24, 0));
    world.record(25..=26);
    assert_eq!(world.verified(), whole(26, 0));
}

#[test]
fn a_process_that_died_before_it_dropped_a_file_leaves_a_log_that_is_whole() {
    let world = World::new();
    fill(&world, 1, 15);
    let oldest = fs::read(world.file("audit.1.jsonl")).unwrap();
    let log = small(&world, 1);
    let mut number = 15;
    while fs::read(world.file("audit.1.jsonl")).unwrap() == oldest {
        number += 1;
        log.record(entry(number));
    }
    assert!(world.verified().entries < number);
    fs::write(world.file("audit.2.jsonl"), oldest).unwrap();
    assert_eq!(world.verified().entries, number);
}

#[test]
fn two_writers_see_each_others_rotations() {
    let world = World::new();
    let (one, two) = (small(&world, 20), small(&world, 20));
    for number in 1..=60 {
        one.record(entry(number));
        two.record(entry(number));
    }
    assert_eq!(world.verified(), whole(120, 0));
}

#[test]
fn whoever_follows_a_log_misses_nothing_when_it_is_put_aside() {
    let world = World::new();
    let log = small(&world, 20);
    let reader = world.reader();
    let mut position = Position::default();
    let mut seen = Vec::new();
    for number in 1..=60 {
        log.record(entry(number));
        if number % 7 == 0 {
            let (rows, reached) = reader.rows_since(position).unwrap();
            seen.extend(rows.iter().map(|row| row.seq));
            position = reached;
        }
    }
    seen.extend(reader.rows_since(position).unwrap().0.iter().map(|row| row.seq));
    assert_eq!(seen, (1..=60).collect::<Vec<_>>());
}
