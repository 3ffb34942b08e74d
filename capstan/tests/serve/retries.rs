//! A server that is killed in the middle of many calls: none of them runs twice.

use std::fs;

use capstan_testkit::{World, descendants, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, LIMIT, fixture, with};

/// Calls that are under way when the server is killed.
const CALLS: u64 = 200;

#[test]
fn of_two_hundred_calls_whose_server_is_killed_none_runs_twice() {
    let traces = World::new();
    let trace = traces.home().join("trace");
    let server = fixture("s", &["--trace", trace.to_str().unwrap()]);
    let world = with(&format!("{ALL}{server}"));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    // The numbers of the calls that reached the server, over all of its processes.
    let arrived = || {
        let text = fs::read_to_string(&trace).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().filter(|line| line.contains("\"tools/call\""));
        let number = |line| {
            let line: Value = serde_json::from_str(line).unwrap();
            line["params"]["arguments"]["number"].as_u64()
        };
        let mut numbers: Vec<u64> = lines.filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    };
    for number in 0..CALLS {
        // Nothing says of this tool whether it only reads, so it counts as a write.
        let params = json!({ "name": "s__hang", "arguments": { "number": number } });
        let call = json!({
            "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params
        });
        gateway.send(&call.to_string());
    }
    let all: Vec<u64> = (0..CALLS).collect();
    assert!(wait_until(|| arrived() == all, LIMIT), "only {} arrived", arrived().len());

    let is_server = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("capstan-fixture"))
    };
    let pid = descendants(gateway.child.id()).into_iter().find(is_server).unwrap();
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    let mut answered = Vec::new();
    while answered.len() < all.len() {
        let heard = gateway.hear();
        let Some(id) = heard["id"].as_u64() else { continue };
        let code = &heard["result"]["_meta"]["capstan/error"]["code"];
        assert_eq!(code, "outcome_unknown", "{heard}");
        answered.push(id);
    }
    answered.sort_unstable();
    assert_eq!(answered, all);
    // A new process serves the next call, and has seen none of the old ones.
    let params = json!({ "name": "s__echo", "arguments": { "number": CALLS } });
    let call = json!({ "jsonrpc": "2.0", "id": CALLS, "method": "tools/call", "params": params });
    gateway.send(&call.to_string());
    while gateway.hear()["id"] != CALLS {}
    assert_eq!(arrived(), (0..=CALLS).collect::<Vec<_>>());
}
