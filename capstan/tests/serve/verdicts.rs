//! All fronts decide alike: what `why` says is what happens on the command line and at both faces
//! of the gateway, and is written down so.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use capstan_testkit::{World, wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::stage::{Gateway, LIMIT, fixture, http, modern, with};

/// A tool, its arguments, and what is decided about them.
struct Case {
    tool: &'static str,
    arguments: Value,
    verdict: &'static str,
    rule: &'static str,
}

fn case(tool: &'static str, arguments: Value, verdict: &'static str, rule: &'static str) -> Case {
    Case { tool, arguments, verdict, rule }
}

/// Who the caller is makes no difference here, and the default is said for all fronts.
fn rules(default: &str) -> World {
    with(&format!(
        "[permissions]\n{default}\nallow = [\"echo\"]\nask = [\"add\"]\n\
         deny = [\"*crash*\", \"echo:text=secret*\"]\n\n[audit]\narguments = \"redacted\"\n\n\
         [gateway]\napproval_wait = \"0s\"\n\n\
         {}hide = [\"weird\"]\neffect = {{ read = [\"env\"], write = [\"count\"] }}\n",
        fixture("f", &[])
    ))
}

fn cases() -> Vec<Case> {
    let default = "permissions.default: ask-writes";
    vec![
        case("echo", json!({ "text": "a" }), "allow", "permissions.allow: echo"),
        case("echo", json!({ "text": "secret1" }), "deny", "permissions.deny: echo:text=secret*"),
        case("add", json!({ "a": 1, "b": 2 }), "ask", "permissions.ask: add"),
        case("crash", json!({}), "deny", "permissions.deny: *crash*"),
        case("weird", json!({}), "deny", "servers.f.hide: weird"),
        case("env", json!({}), "allow", default),
        case("count", json!({}), "ask", default),
    ]
}

/// What was decided about each call.
type Decided = BTreeSet<(String, String, String, String)>;

fn expected(cases: &[Case]) -> Decided {
    let decided = |case: &Case| {
        let arguments = case.arguments.to_string();
        (case.tool.to_owned(), arguments, case.verdict.to_owned(), case.rule.to_owned())
    };
    cases.iter().map(decided).collect()
}

/// What `why` says of a call that comes in at `front`.
fn why(world: &World, front: &str, case: &Case) -> (String, String, String, String) {
    let (tool, arguments) = (format!("f__{}", case.tool), case.arguments.to_string());
    let ended = world.capstan(["why", "--json", "--front", front, &tool, &arguments]).run();
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    (case.tool.to_owned(), arguments, text("verdict"), text("rule"))
}

/// What the audit log says of the calls after the first `skip`, once there are `count` of them.
#[track_caller]
fn written(world: &World, skip: usize, count: usize) -> Decided {
    let path = world.state().join("capstan/audit.jsonl");
    let rows = || -> Vec<Value> {
        let log = fs::read_to_string(&path).unwrap_or_default();
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    assert!(wait_until(|| rows().len() >= skip + count, LIMIT), "{:#?}", rows());
    let decided = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("item"), text("arguments"), text("verdict"), text("rule"))
    };
    rows().iter().skip(skip).map(decided).collect()
}

fn request(id: usize, case: &Case) -> Value {
    let params = json!({ "name": format!("f__{}", case.tool), "arguments": case.arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": modern(params) })
}

/// All calls over HTTP, at the same time: an ask may wait for somebody who answers it.
fn over_http(world: &World, cases: &[Case]) -> Gateway {
    let (gateway, address) = Gateway::listening(world, "");
    thread::scope(|scope| {
        for (id, case) in cases.iter().enumerate() {
            let address = &address;
            scope.spawn(move || {
                let head = format!(
                    "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                     Mcp-Method: tools/call\r\nMcp-Name: f__{}",
                    case.tool
                );
                http(address, &head, &request(id, case).to_string());
            });
        }
    });
    gateway
}

/// All calls over stdin and stdout, at the same time.
fn over_stdio(world: &World, cases: &[Case]) {
    let mut gateway = Gateway::start(world, "");
    for (id, case) in cases.iter().enumerate() {
        gateway.send(&request(id, case).to_string());
    }
    let mut answered = BTreeSet::new();
    while answered.len() < cases.len() {
        answered.extend(gateway.hear()["id"].as_u64());
    }
    gateway.hang_up();
    gateway.end();
}

#[test]
fn every_front_gives_the_verdict_that_why_gives() {
    let (world, cases) = (rules("default = \"ask-writes\""), cases());
    let expected = expected(&cases);
    for front in ["cli", "terminal", "gateway", "stdio"] {
        let said: Decided = cases.iter().map(|case| why(&world, front, case)).collect();
        assert_eq!(said, expected, "why --front {front}");
    }
    for case in &cases {
        let (tool, arguments) = (format!("f__{}", case.tool), case.arguments.to_string());
        let ended = world.capstan(["call", &tool, &arguments]).run();
        // Nobody is at a terminal to answer a rule that asks.
        let refused = case.verdict == "deny" || case.rule.starts_with("permissions.ask:");
        assert_eq!(ended.status == Some(6), refused, "{tool}: {}", ended.stderr);
    }
    let count = cases.len();
    assert_eq!(written(&world, 0, count), expected, "on the command line");
    // It writes beside the calls, so it must not end before all is written.
    let mut gateway = over_http(&world, &cases);
    assert_eq!(written(&world, count, count), expected, "over HTTP");
    gateway.signal(Signal::TERM);
    gateway.end();
    over_stdio(&world, &cases);
    assert_eq!(written(&world, 2 * count, count), expected, "over stdin and stdout");
}

#[test]
fn where_no_default_is_said_the_fronts_differ_as_documented() {
    let world = rules("");
    for (front, tool, verdict, rule) in [
        ("cli", "env", "ask", "permissions.default: ask"),
        ("cli", "count", "ask", "permissions.default: ask"),
        ("terminal", "env", "ask", "permissions.default: ask"),
        ("terminal", "count", "ask", "permissions.default: ask"),
        ("gateway", "env", "allow", "permissions.default: ask-writes"),
        ("gateway", "count", "ask", "permissions.default: ask-writes"),
        ("stdio", "env", "allow", "permissions.default: ask-writes"),
        ("stdio", "count", "ask", "permissions.default: ask-writes"),
    ] {
        let case = case(tool, json!({}), verdict, rule);
        let said = why(&world, front, &case);
        assert_eq!((said.2.as_str(), said.3.as_str()), (verdict, rule), "{front} {tool}");
    }
}
