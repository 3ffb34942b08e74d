//! Queries and following.

use std::fs::OpenOptions;
use std::io::Write;

use capstan_audit::{Position, Query};
use capstan_hub::ports::AuditLog;
use capstan_hub::{Entry, Outcome};
use capstan_model::{Caller, ErrorCode, Front};

use crate::world::{World, entry, time};

/// Six calls, of which each differs from the usual in one thing.
fn mixed() -> World {
    let world = World::new();
    let log = world.open();
    log.record(entry(1));
    log.record(Entry { server: Some("github".to_owned()), ..entry(2) });
    log.record(Entry { caller: Caller::operator(Front::Cli).into(), ..entry(3) });
    log.record(Entry { outcome: Outcome::Failed(ErrorCode::PolicyBlocked), ..entry(4) });
    log.record(Entry { outcome: Outcome::ToolError, ..entry(5) });
    log.record(Entry { server: None, ..entry(6) });
    world
}

#[track_caller]
fn check(query: &Query, expected: &[u64]) {
    let rows = mixed().reader().query(query).unwrap();
    let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(seqs, expected, "{query:?}");
}

#[test]
fn a_query_lets_pass_what_fits_all_its_parts() {
    let text = |text: &str| Some(text.to_owned());
    let all = Query::default();
    check(&all, &[1, 2, 3, 4, 5, 6]);
    check(&Query { server: text("linear"), ..all.clone() }, &[1, 3, 4, 5]);
    check(&Query { server: text("Linear"), ..all.clone() }, &[]);
    check(&Query { item: text("tool_2"), ..all.clone() }, &[2]);
    check(&Query { item: text("tool"), ..all.clone() }, &[]);
    check(&Query { caller: text("operator"), ..all.clone() }, &[3]);
    check(&Query { errors_only: true, ..all.clone() }, &[4, 5]);
    check(&Query { since: Some(time(5)), ..all.clone() }, &[5, 6]);
    check(&Query { since: Some(time(7)), ..all.clone() }, &[]);
    check(&Query { until: Some(time(3)), ..all.clone() }, &[1, 2]);
    check(&Query { since: Some(time(3)), until: Some(time(5)), ..all.clone() }, &[3, 4]);
    check(&Query { front: text("cli"), ..all.clone() }, &[3]);
    check(&Query { kind: text("tool"), limit: 1, ..all.clone() }, &[6]);
    check(&Query { kind: text("break"), ..all.clone() }, &[]);
    check(&Query { limit: 2, ..all.clone() }, &[5, 6]);
    check(&Query { limit: 0, ..all.clone() }, &[]);
    check(&Query { server: text("github"), errors_only: true, ..all.clone() }, &[]);
    check(&Query { server: text("linear"), limit: 2, ..all }, &[4, 5]);
}

#[test]
fn where_there_is_no_log_there_are_no_rows() {
    let world = World::new();
    assert!(world.rows().is_empty());
    let elsewhere = capstan_audit::Reader::open(&world.file("no/such/audit.jsonl")).unwrap();
    assert!(elsewhere.query(&Query::default()).unwrap().is_empty());
    assert_eq!(elsewhere.verify().unwrap().entries, 0);
}

#[test]
fn damaged_lines_do_not_hide_the_others() {
    let world = World::with_entries(3);
    let mut lines = world.lines();
    lines[1] = "not an entry".to_owned();
    world.set_lines(&lines);
    assert_eq!(world.rows().iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn following_gives_each_row_once() {
    let world = World::with_entries(2);
    let reader = world.reader();
    let (rows, position) = reader.rows_since(Position::default()).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(reader.rows_since(position).unwrap(), (Vec::new(), position));
    world.record(3..=4);
    let (rows, position) = reader.rows_since(position).unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(reader.end().unwrap(), position);
}

#[test]
fn following_can_begin_at_the_end() {
    let world = World::with_entries(5);
    let reader = world.reader();
    let end = reader.end().unwrap();
    assert!(reader.rows_since(end).unwrap().0.is_empty());
    world.record(6..=6);
    assert_eq!(reader.rows_since(end).unwrap().0[0].seq, 6);
    let nowhere = World::new();
    let start = nowhere.reader().end().unwrap();
    nowhere.record(1..=1);
    assert_eq!(nowhere.reader().rows_since(start).unwrap().0.len(), 1);
}

#[test]
fn a_line_that_is_being_written_is_not_taken_before_its_end() {
    let world = World::with_entries(2);
    let whole = world.lines();
    world.set_lines(&whole[..1]);
    let reader = world.reader();
    let (first, rest) = whole[1].split_at(40);
    let mut log = OpenOptions::new().append(true).open(world.log()).unwrap();
    log.write_all(first.as_bytes()).unwrap();
    let (rows, position) = reader.rows_since(Position::default()).unwrap();
    assert_eq!(rows.len(), 1);
    log.write_all(format!("{rest}\n").as_bytes()).unwrap();
    let (rows, _) = reader.rows_since(position).unwrap();
    assert_eq!(rows[0].seq, 2);
}

#[test]
fn a_long_log_is_followed_in_parts() {
    let world = World::with_entries(1500);
    let reader = world.reader();
    let (rows, position) = reader.rows_since(Position::default()).unwrap();
    assert_eq!(rows.len(), 1000);
    let (rows, _) = reader.rows_since(position).unwrap();
    assert_eq!((rows.len(), rows[0].seq), (500, 1001));
}

#[test]
fn the_newest_rows_are_found_without_reading_the_rest() {
    let world = World::with_entries(300);
    // A reader of the first lines finds nothing readable.
    let mut text = std::fs::read(world.log()).unwrap();
    text[..100_000].fill(b'\xff');
    std::fs::write(world.log(), text).unwrap();
    let rows = world.reader().query(&Query { limit: 3, ..Query::default() }).unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [298, 299, 300]);
}
