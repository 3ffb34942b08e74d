//! How a gateway ends, and that nothing is left behind.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use capstan_testkit::wait_until;
use rustix::process::Signal;
use serde_json::json;

use crate::leftovers::wait_until_empty;
use crate::stage::{ALL, Gateway, LIMIT, fixture, modern, with};

/// Makes a call, with id 2, that never ends.
fn hang(gateway: &mut Gateway) {
    gateway.initialize("2025-06-18");
    let echo = json!({ "name": "f__echo", "arguments": { "text": "x" } });
    gateway.ask(1, "tools/call", &echo);
    let params = json!({ "name": "f__hang", "arguments": {} });
    let hang = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    gateway.send(&hang.to_string());
    // When what comes behind it is answered, it is under way.
    gateway.ask(3, "tools/call", &echo);
}

#[test]
fn a_signal_ends_it_in_time_although_a_call_never_ends_and_nothing_is_left() {
    for (words, signal) in [("", Signal::TERM), ("--http :0", Signal::TERM), ("", Signal::INT)] {
        let world = with(&format!("{ALL}{}", fixture("f", &["--ignore-term"])));
        let mut gateway = Gateway::start(&world, words);
        if words.is_empty() {
            hang(&mut gateway);
        } else {
            gateway.says("listening on ");
        }
        let start = Instant::now();
        gateway.signal(signal);
        if words.is_empty() {
            gateway.says("stopping when the running calls have ended");
            let told = gateway.hear();
            let error = &told["result"]["_meta"]["capstan/error"];
            assert_eq!((&told["id"], &error["code"]), (&json!(2), &json!("outcome_unknown")));
        }
        assert_eq!(gateway.end(), Some(0), "{words}");
        assert!(start.elapsed() < Duration::from_secs(20), "{words}: {:?}", start.elapsed());
        wait_until_empty(&world);
    }
}

#[test]
fn a_second_signal_does_not_wait_for_calls() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    hang(&mut gateway);
    gateway.signal(Signal::INT);
    gateway.says("repeat to stop now");
    let start = Instant::now();
    gateway.signal(Signal::INT);
    assert_eq!(gateway.hear()["result"]["isError"], json!(true));
    assert_eq!(gateway.end(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    wait_until_empty(&world);
}

#[test]
fn a_call_under_way_is_answered_before_it_ends() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.ask(
        1,
        "tools/call",
        &modern(json!({ "name": "f__echo", "arguments": { "text": "x" } })),
    );
    let params = modern(json!({ "name": "f__slow", "arguments": { "ms": 500 } }));
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    gateway.send(&call.to_string());
    gateway.hang_up();
    let answer = gateway.hear();
    assert_eq!((&answer["id"], answer.get("error")), (&json!(2), None), "{answer}");
    assert_eq!(gateway.end(), Some(0));
    wait_until_empty(&world);
}

/// Holes 12.
#[test]
fn a_client_that_closes_its_side_and_reads_on_is_answered() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let params = json!({ "name": "f__slow", "arguments": { "ms": 3000 } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    gateway.send(&call.to_string());
    gateway.hang_up();
    let answer = gateway.hear();
    let failed = &answer["result"]["isError"];
    assert_eq!((&answer["id"], failed != &json!(true)), (&json!(2), true), "{answer}");
    assert_eq!(gateway.end(), Some(0));
    wait_until_empty(&world);
}

/// Holes 12.
#[test]
fn a_client_that_neither_writes_nor_reads_any_more_is_not_waited_for() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut command = world.capstan(["serve"]).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for (id, name) in [(1, "f__hang"), (2, "f__echo")] {
        let params = modern(json!({ "name": name, "arguments": { "text": "x" } }));
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        writeln!(input, "{call}").unwrap();
    }
    // When the second is answered, the first is under way.
    let mut output = BufReader::new(output);
    output.read_line(&mut String::new()).unwrap();
    let start = Instant::now();
    drop((input, output));
    assert!(wait_until(|| child.try_wait().unwrap().is_some(), LIMIT), "it does not end");
    // Long before those who still read are given up.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    wait_until_empty(&world);
}

#[test]
fn a_client_that_is_gone_takes_its_calls_with_it() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.ask(
        1,
        "tools/call",
        &modern(json!({ "name": "f__echo", "arguments": { "text": "x" } })),
    );
    let params = modern(json!({ "name": "f__slow", "arguments": { "ms": 600_000 } }));
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    gateway.send(&call.to_string());
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
    wait_until_empty(&world);
}
