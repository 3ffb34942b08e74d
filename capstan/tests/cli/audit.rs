//! `capstan audit`: every call is there once, can be found, and cannot be changed unnoticed.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use capstan_testkit::World;
use serde_json::Value;

use crate::stage::{column, ends_with, failure, fixture, json, ok_json, read, run, says, with};

/// A world in which five calls were made, to two servers, two of them failed.
#[track_caller]
fn busy() -> World {
    let rules = "[permissions]\ndeny = [\"count\"]\n";
    let world = with(&[rules, &fixture("a", &[]), &fixture("b", &[])].join("\n"));
    for (words, code) in [
        ("call a__echo x=1", 0),
        ("call b__add a=1 b=2", 0),
        ("call a__count", 6),
        ("call a__fail", 1),
        ("call b__echo", 0),
    ] {
        ends_with(run(&world, words), code);
    }
    world
}

#[track_caller]
fn items(world: &World, filter: &str) -> Vec<String> {
    column(&ok_json(world, &format!("audit {filter}")), "item")
}

#[test]
fn every_call_is_written_down_once() {
    let world = busy();
    let rows = ok_json(&world, "audit");
    assert_eq!(column(&rows, "item"), ["echo", "add", "count", "fail", "echo"]);
    let outcomes = ["answered", "answered", "failed", "tool_error", "answered"];
    assert_eq!(column(&rows, "outcome"), outcomes);
    let numbers: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["seq"]).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(column(&rows, "caller"), ["operator"; 5]);
    assert_eq!(column(&rows, "front"), ["cli"; 5]);
    let keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let documented = "seq time caller caller_id front server item kind effect verdict rule \
                      approval outcome code duration_ms request_bytes answer_bytes prev hash";
    assert_eq!(keys, documented.split_whitespace().collect::<Vec<_>>());
}

#[test]
fn a_filter_that_fits_nothing_is_no_empty_log() {
    let world = busy();
    let ended = ends_with(run(&world, "audit --server nobody"), 0);
    says(&ended.stderr, "no call in the log matches");
    says(&ends_with(run(&with(""), "audit"), 0).stderr, "no calls so far");
    ends_with(run(&world, "audit --front nowhere"), 2);
}

#[test]
fn a_log_that_is_gone_is_told_of() {
    let world = busy();
    std::fs::remove_file(world.state().join("capstan/audit.jsonl")).unwrap();
    says(&ends_with(run(&world, "audit"), 0).stderr, "entries up to 5 were written");
    let ended = ends_with(run(&world, "call a__echo"), 0);
    says(&ended.stderr, "lacks entries at its end, or was deleted");
}

#[test]
fn a_person_reads_a_table() {
    let world = busy();
    let ended = ends_with(run(&world, "audit --server a"), 0);
    let mut settings = world.snapshots();
    settings.add_filter(r"( |-)+\d+\n", " [MS]\n");
    settings.bind(|| {
        insta::assert_snapshot!(ended.stdout, @"
    TIME                  CALLER    FRONT  ITEM      VERDICT        RESULT          MS
    [TIME]  operator  cli    a__echo   ask (by_hand)  answered [MS]
    [TIME]  operator  cli    a__count  deny           policy_blocked [MS]
    [TIME]  operator  cli    a__fail   ask (by_hand)  tool_error [MS]
    ");
    });
    let ended = ends_with(run(&World::new(), "audit"), 0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", "no calls so far\n"));
    assert_eq!(ok_json(&World::new(), "audit"), serde_json::json!([]));
}

#[test]
fn filters_find_what_is_looked_for_and_nothing_else() {
    let world = busy();
    let all = &["echo", "add", "count", "fail", "echo"][..];
    for (filter, expected) in [
        ("--server b", &["add", "echo"][..]),
        ("--tool echo", &["echo", "echo"]),
        ("--tool a__echo", &["echo"]),
        ("--tool a:echo", &["echo"]),
        ("--errors", &["count", "fail"]),
        ("--caller operator --limit 2", &["fail", "echo"]),
        ("--since 1h", all),
        ("--until 2999-01-01T00:00:00Z", all),
        ("--front cli --kind tool", all),
        ("--caller nobody", &[]),
        ("--since 2999-01-01T00:00:00Z", &[]),
        ("--until 1h", &[]),
        ("--front gateway", &[]),
        ("--kind break", &[]),
    ] {
        assert_eq!(items(&world, filter), expected, "{filter}");
    }
    let ended = ends_with(run(&world, "audit --since yesterday --json"), 2);
    says(&failure(&ended).2, "write `2h`");
    for words in [
        "--verify --errors",
        "--verify --csv",
        "--follow --since 1h",
        "--follow --until 1h",
        "--follow --limit 5",
        "--kind door",
        "--csv --json",
    ] {
        ends_with(run(&world, &format!("audit {words}")), 2);
    }
}

#[test]
fn a_log_that_is_whole_says_so() {
    let world = busy();
    let ended = ends_with(run(&world, "audit --verify"), 0);
    says(&ended.stderr, "5 entries, none changed, removed or reordered");
    let told = ok_json(&world, "audit --verify");
    let whole = serde_json::json!({
        "entries": 5, "whole": true, "first": 1, "breaks": 0, "unclosed": 0,
    });
    assert_eq!(told, whole);
}

#[test]
fn whatever_is_done_to_the_log_is_found() {
    let world = busy();
    let path = world.state().join("capstan/audit.jsonl");
    let whole = read(&path);
    let lines: Vec<&str> = whole.lines().collect();
    let join = |lines: &[&str]| lines.join("\n") + "\n";
    for (what, text) in [
        ("changed", whole.replace("\"item\":\"count\"", "\"item\":\"echo!\"")),
        ("removed", join(&[lines[0], lines[1], lines[3], lines[4]])),
        ("reordered", join(&[lines[0], lines[2], lines[1], lines[3], lines[4]])),
        ("cut", join(&lines[..4])),
        ("emptied", String::new()),
    ] {
        assert_ne!(text, whole);
        std::fs::write(&path, text).unwrap();
        let ended = ends_with(run(&world, "audit --verify --json"), 1);
        says(&failure(&ended).1, "the audit log is damaged");
        let checks = json(&run(&world, "doctor --json"));
        let row = crate::stage::row(&checks, "check", "audit log");
        assert_eq!(row["status"], "error", "{what}");
    }
}

#[test]
fn a_follower_sees_calls_as_they_come() {
    let world = busy();
    let mut command =
        world.capstan(["audit", "--follow", "--json", "--server", "b"]).into_command();
    let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(lines.next()));
    let limit = std::time::Duration::from_mins(1);
    let end = std::time::Instant::now() + limit;
    // The follower begins at the end of the log, whenever it gets there; so calls go on.
    let line = loop {
        ends_with(run(&world, "call a__echo"), 0);
        ends_with(run(&world, "call b__echo"), 0);
        match receiver.try_recv() {
            Ok(line) => break line.unwrap().unwrap(),
            Err(_) => assert!(std::time::Instant::now() < end, "nothing was followed"),
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let row: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(row["server"], "b");
    assert!(row["seq"].as_u64().unwrap() > 5, "{line}");
}

#[test]
fn the_log_can_be_elsewhere_or_off() {
    let at = |line: &str| with(&format!("[audit]\n{line}\n\n{}", fixture("f", &[])));
    let world = at("path = \"calls.jsonl\"");
    ends_with(run(&world, "call f__echo"), 0);
    assert_eq!(read(world.project().join("calls.jsonl")).lines().count(), 1);
    assert_eq!(items(&world, ""), ["echo"]);
    let world = at("enabled = false");
    ends_with(run(&world, "call f__echo"), 0);
    assert!(!world.state().join("capstan/audit.jsonl").exists());
}

#[test]
fn a_spreadsheet_gets_cells_and_no_formulas() {
    let world = with(&fixture("a", &[]));
    ends_with(run(&world, "call a__echo"), 0);
    ends_with(run(&world, "call =cmd,1"), 4);
    let ended = ends_with(run(&world, "audit --csv"), 0);
    let lines: Vec<&str> = ended.stdout.split("\r\n").collect();
    assert_eq!(lines.len(), 4, "{}", ended.stdout);
    assert!(lines[0].starts_with("seq,time,caller,caller_id,client,front,server,item,"));
    assert!(lines[1].contains(",operator,,,cli,a,echo,tool,"), "{}", lines[1]);
    assert!(lines[2].contains(",\"'=cmd,1\",tool,"), "{}", lines[2]);
    let ended = ends_with(run(&World::new(), "audit --csv"), 0);
    assert_eq!(ended.stdout.lines().count(), 1);
}

#[test]
fn damage_is_told_with_its_file_its_line_and_its_entry() {
    let world = busy();
    let path = world.state().join("capstan/audit.jsonl");
    let changed = read(&path).replace("\"item\":\"count\"", "\"item\":\"echo!\"");
    std::fs::write(&path, changed).unwrap();
    let ended = ends_with(run(&world, "audit --verify"), 1);
    says(&ended.stderr, "audit.jsonl` line 3: the entry was changed (entry 3 belongs here)");
}

#[test]
fn an_operator_who_was_not_there_is_in_the_table() {
    let rules = "[permissions]\nask = [\"echo\"]\n\n[gateway]\napproval_wait = \"0s\"\n\n";
    let world = with(&format!("{rules}{}", fixture("a", &[])));
    let mut command = world.capstan(["serve"]).into_command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__echo","arguments":{}}}"#;
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{hello}\n{call}").unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap()).lines().take(2);
    assert_eq!(answers.filter_map(Result::ok).count(), 2);
    drop(stdin);
    child.wait().unwrap();
    let ended = ends_with(run(&world, "audit"), 0);
    says(&ended.stdout, "ask (nobody)");
}
