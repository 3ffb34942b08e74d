//! A gateway that is killed leaves a visible break in the audit log, and one that ends does not.
//! Holes 11.

use std::fs::{self, File};

use capstan_testkit::World;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

/// The entries of the log.
#[track_caller]
fn rows(world: &World) -> Vec<Value> {
    let listed = world.capstan(["audit", "--json", "--limit", "1000"]).run().ok();
    serde_json::from_str(&listed).unwrap()
}

/// What `audit --verify` counts: entries, breaks, and processes that did not close the log.
#[track_caller]
fn verified(world: &World) -> (u64, u64, u64) {
    let told = world.capstan(["audit", "--verify", "--json"]).run().ok();
    let told: Value = serde_json::from_str(&told).unwrap();
    let number = |key: &str| told[key].as_u64().unwrap();
    (number("entries"), number("breaks"), number("unclosed"))
}

#[test]
fn a_gateway_that_is_killed_before_it_writes_an_entry_leaves_a_break() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    gateway.ask(1, "tools/list", &json!({}));
    // While somebody else has the lock, the entry of the call stays in memory.
    let head = File::open(world.state().join("capstan/audit.head")).unwrap();
    head.lock().unwrap();
    let params = json!({ "name": "f__echo", "arguments": { "text": "hello" } });
    assert!(gateway.ask(2, "tools/call", &params)["result"].is_object());
    gateway.signal(Signal::KILL);
    gateway.end();
    head.unlock().unwrap();

    assert_eq!(verified(&world), (0, 0, 1));
    let told = world.capstan(["audit", "--verify"]).run();
    assert!(told.stderr.contains("1 process ended without closing the log"), "{}", told.stderr);
    let next = world.capstan(["call", "f__echo", "text=again"]).run();
    assert!(next.stderr.contains("ended without closing the audit log"), "{}", next.stderr);
    let rows = rows(&world);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    assert_eq!(json!([rows[0]["kind"], rows[0]["outcome"]]), json!(["break", "unclosed"]));
    assert_eq!(rows[1]["item"], "echo");
    assert_eq!(verified(&world), (2, 1, 0));
    world.capstan(["call", "f__echo", "text=again"]).run().ok();
    assert_eq!(verified(&world), (3, 1, 0));
}

#[test]
fn a_gateway_over_http_that_is_killed_is_told_of_beside_one_that_runs() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let (killed, _) = Gateway::listening(&world, "");
    let (running, address) = Gateway::listening(&world, "");
    assert_eq!(verified(&world), (0, 0, 0));
    killed.signal(Signal::KILL);
    drop(killed);
    assert_eq!(verified(&world), (0, 0, 1));
    let params = modern(json!({ "name": "f__echo", "arguments": {} }));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: f__echo";
    assert_eq!(http(&address, head, &body.to_string()).0, 200);
    running.signal(Signal::TERM);
    let mut running = running;
    assert_eq!(running.end(), Some(0));
    assert_eq!(verified(&world), (2, 1, 0));
}

#[test]
fn a_gateway_that_ends_leaves_no_break_however_it_is_ended() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let params = json!({ "name": "f__echo", "arguments": {} });
    let called = || {
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize("2025-11-25");
        gateway.ask(1, "tools/call", &params);
        gateway
    };
    let markers = || fs::read_dir(world.state().join("capstan/audit.open")).unwrap().count();
    for (number, signal) in (1..).zip([Some(Signal::TERM), Some(Signal::INT), None]) {
        let mut gateway = called();
        assert_eq!(markers(), 1);
        match signal {
            Some(signal) => gateway.signal(signal),
            None => gateway.hang_up(),
        }
        gateway.end();
        assert_eq!((verified(&world), markers()), ((number, 0, 0), 0), "{signal:?}");
    }
}
