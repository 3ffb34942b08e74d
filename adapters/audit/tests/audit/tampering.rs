//! Every later change of the log is found, and its line is named.

use std::fs;

use capstan_audit::Reason;

use crate::world::{World, whole};

/// Changes a log of five entries and expects the damage to be found.
#[track_caller]
fn check(tamper: impl FnOnce(&mut Vec<String>), line: u64, reason: Reason) {
    let world = World::with_entries(5);
    let mut lines = world.lines();
    tamper(&mut lines);
    world.set_lines(&lines);
    let broken = world.broken();
    assert_eq!((broken.line, broken.seq, broken.reason), (line, line, reason));
    assert_eq!(broken.file, world.log());
}

#[test]
fn an_untouched_log_is_whole() {
    assert_eq!(World::with_entries(5).verified(), whole(5, 0));
    assert_eq!(World::new().verified(), whole(0, 0));
}

#[test]
fn a_changed_byte_is_found() {
    check(|lines| lines[2] = lines[2].replace("tool_3", "tool_8"), 3, Reason::Changed);
    check(|lines| lines[0] = lines[0].replace("\"ci\"", "\"me\""), 1, Reason::Changed);
    check(|lines| lines[4] = lines[4].replace("asked", "by_hand"), 5, Reason::Changed);
    check(|lines| lines[1] = lines[1].replace("\"seq\":2", "\"seq\": 2"), 2, Reason::Changed);
}

#[test]
fn every_single_byte_counts() {
    let world = World::with_entries(2);
    let bytes = fs::read(world.log()).unwrap();
    for index in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[index] ^= 1;
        fs::write(world.log(), &changed).unwrap();
        assert!(world.reader().verify().is_err(), "byte {index}");
    }
}

#[test]
fn a_removed_line_is_found() {
    check(|lines| drop(lines.remove(2)), 3, Reason::OutOfPlace { found: 4 });
    check(|lines| drop(lines.remove(0)), 1, Reason::OutOfPlace { found: 2 });
}

#[test]
fn two_swapped_lines_are_found() {
    check(|lines| lines.swap(1, 2), 2, Reason::OutOfPlace { found: 3 });
}

#[test]
fn a_line_written_twice_is_found() {
    check(|lines| lines.insert(1, lines[0].clone()), 2, Reason::OutOfPlace { found: 1 });
}

#[test]
fn an_empty_line_and_a_foreign_one_are_found() {
    check(|lines| lines.insert(3, String::new()), 4, Reason::NotARow);
    check(|lines| lines.insert(3, "{}".to_owned()), 4, Reason::NotARow);
    check(|lines| lines[3].push(' '), 4, Reason::NotARow);
    check(|lines| lines[3] = "x".repeat(100_000), 4, Reason::NotARow);
}

#[test]
fn a_log_cut_short_is_found() {
    check(|lines| lines.truncate(4), 5, Reason::Cut { last: 5 });
    check(Vec::clear, 1, Reason::Cut { last: 5 });
}

#[test]
fn a_log_cut_within_a_line_is_found() {
    let world = World::with_entries(5);
    let bytes = fs::read(world.log()).unwrap();
    fs::write(world.log(), &bytes[..bytes.len() - 1]).unwrap();
    let broken = world.broken();
    assert_eq!((broken.line, broken.reason), (5, Reason::Torn));
}

#[test]
fn a_missing_log_is_found() {
    let world = World::with_entries(5);
    assert_eq!(world.reader().gone().unwrap(), None);
    fs::remove_file(world.log()).unwrap();
    assert_eq!(world.reader().gone().unwrap(), Some(5));
    assert_eq!(world.broken().reason, Reason::Cut { last: 5 });
    assert_eq!(World::new().reader().gone().unwrap(), None);
}

#[test]
fn lines_of_another_log_are_found() {
    let (world, other) = (World::with_entries(5), World::new());
    other.record([7, 7, 3, 4, 5]);
    let mut lines = world.lines();
    lines[2..].clone_from_slice(&other.lines()[2..]);
    world.set_lines(&lines);
    let broken = world.broken();
    assert_eq!((broken.line, broken.reason), (3, Reason::NotContinued));
}

#[test]
fn a_whole_log_in_the_place_of_another_is_found() {
    let (world, other) = (World::with_entries(5), World::new());
    other.record([1, 2, 3, 4, 7]);
    fs::copy(other.log(), world.log()).unwrap();
    let broken = world.broken();
    assert_eq!((broken.line, broken.reason), (5, Reason::Changed));
}

#[test]
fn a_log_without_a_head_cannot_be_called_whole() {
    for head in [None, Some(""), Some("{}")] {
        let world = World::with_entries(5);
        fs::remove_file(world.file("audit.head")).unwrap();
        if let Some(text) = head {
            fs::write(world.file("audit.head"), text).unwrap();
        }
        assert_eq!(world.broken().reason, Reason::Unanchored);
    }
}

#[test]
fn damage_stays_visible_after_the_log_has_gone_on() {
    let cuts: [fn(&mut Vec<String>); 3] = [
        |lines| lines.truncate(4),
        |lines| lines[4] = lines[4].replace("tool_5", "tool_9"),
        Vec::clear,
    ];
    for cut in cuts {
        let world = World::with_entries(5);
        let mut lines = world.lines();
        cut(&mut lines);
        world.set_lines(&lines);
        world.record(6..=8);
        world.broken();
        assert!(world.rows().iter().any(capstan_audit::Row::is_break));
    }
}
