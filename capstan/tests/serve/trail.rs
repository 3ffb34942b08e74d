//! What clients leave behind: an entry for everything they ask for, with who asked, and nothing of
//! their secrets.

use std::fs;

use capstan_testkit::{World, wait_until};
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, LIMIT, fixture, http, modern, with};

/// The rows of the audit log, once there are so many.
#[track_caller]
fn rows(world: &World, count: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    let enough = || {
        let ended = world.capstan(["audit", "--json", "--limit", "1000"]).run();
        rows = serde_json::from_str(&ended.stdout).unwrap();
        rows.len() >= count
    };
    assert!(wait_until(enough, LIMIT), "{rows:#?}");
    rows
}

fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// A call of `f__echo` over HTTP, with more lines in its head.
#[track_caller]
fn echo_by_http(address: &str, params: Value, lines: &str) {
    let head = format!(
        "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: f__echo{lines}"
    );
    let (status, body) = http(address, &head, &request("tools/call", &modern(params)));
    assert_eq!(status, 200, "{body}");
}

#[test]
fn arguments_are_kept_without_their_secrets_whatever_front_they_come_through() {
    let secret = "hunter2-hunter2-hunter2";
    let audit = "[audit]\narguments = \"redacted\"\n\n";
    let world = with(&format!("{ALL}{audit}{}", fixture("f", &[])));
    let arguments = json!({ "text": "hello", "password": secret });
    let params = json!({ "name": "f__echo", "arguments": arguments });
    let typed = arguments.to_string();
    assert_eq!(world.capstan(["call", "f__echo", &typed]).run().status, Some(0));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    assert!(gateway.ask(1, "tools/call", &params)["result"].is_object());
    gateway.hang_up();
    gateway.end();
    let (_gateway, address) = Gateway::listening(&world, "");
    echo_by_http(&address, params, "");
    let rows = rows(&world, 3);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let kept: Value = serde_json::from_str(row["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(kept["text"], "hello", "{row}");
        assert_eq!(row["outcome"], "answered", "{row}");
    }
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    assert!(!log.contains(secret), "{log}");
}

#[test]
fn c52_which_agent_called_is_in_the_audit_log_and_decides_nothing() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let params = json!({ "name": "f__echo", "arguments": {} });
    let agent = |id: &str| {
        let mut params = params.clone();
        params["_meta"] = json!({ "caller_id": id });
        params
    };
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    for (id, said) in [(1, "planner"), (2, "operator"), (3, "a\u{1b}[31m\nb")] {
        assert!(gateway.ask(id, "tools/call", &agent(said))["result"].is_object());
    }
    gateway.ask(4, "tools/call", &params);
    gateway.hang_up();
    gateway.end();
    let (_gateway, address) = Gateway::listening(&world, "");
    echo_by_http(&address, params, "\r\nX-Caller-Id: coder");
    let rows = rows(&world, 5);
    let told = |row: &Value| json!([row["caller"], row["caller_id"], row["client"], row["front"]]);
    let anonymous = |id: Value| json!(["anonymous", id, "test/1", "gateway"]);
    assert_eq!(
        rows.iter().map(told).collect::<Vec<_>>(),
        [json!("planner"), json!("operator"), json!("a[31mb"), Value::Null, json!("coder")]
            .map(anonymous)
    );
}

#[test]
fn the_two_ways_into_the_gateway_can_be_told_apart() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let params = json!({ "name": "f__echo", "arguments": {} });
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    gateway.ask(1, "tools/call", &params);
    gateway.hang_up();
    gateway.end();
    let (_gateway, address) = Gateway::listening(&world, "");
    echo_by_http(&address, params, "");
    rows(&world, 2);
    let through = |front: &str| {
        let ended = world.capstan(["audit", "--json", "--front", front]).run();
        let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        rows.iter().map(|row| row["seq"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (through("stdio"), through("gateway"), through("cli")),
        (vec![1], vec![1, 2], vec![])
    );
}

#[test]
fn with_a_log_for_programs_every_line_on_stderr_is_an_object() {
    let config = format!("[permissions]\ndeny = [\"nobody__x\"]\n\n{}", fixture("f", &[]));
    let world = with(&config);
    let gateway = Gateway::start(&world, "--http :0 --log-format json");
    let lines = gateway.says_all("listening on ");
    let read = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    let lines: Vec<Value> = lines.iter().map(read).collect();
    assert!(lines.iter().all(|line| line["message"].is_string() && line["level"].is_string()));
    assert_eq!(lines.first().unwrap()["level"], "WARN");
    assert_eq!(lines.last().unwrap()["level"], "INFO");
}

/// What a client asks for in a world with these servers, one after the other: the answers, and what
/// the rows say of each.
#[track_caller]
fn asked(servers: &str, requests: &[(&str, &str)]) -> (Vec<Value>, Vec<Value>) {
    let world = with(&format!("{ALL}{servers}"));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let answers = (1..).zip(requests).map(|(id, (method, uri))| {
        let about = json!({ "type": "ref/resource", "uri": uri });
        let typed = json!({ "name": "x", "value": "" });
        let params = json!({ "uri": uri, "ref": about, "argument": typed });
        let answer = gateway.ask(id, method, &params);
        answer["error"]["code"].clone()
    });
    let answers = answers.collect();
    let told =
        |row: &Value| json!([row["server"], row["item"], row["kind"], row["method"], row["code"]]);
    (answers, rows(&world, requests.len()).iter().map(told).collect())
}

#[test]
fn what_nobody_has_leaves_an_entry_too_and_so_do_subscriptions_and_completions() {
    let (read, subscribe) = ("resources/read", "resources/subscribe");
    let complete = "completion/complete";
    let two = format!("{}{}", fixture("f", &[]), fixture("g", &[]));
    let nowhere = [(read, "nowhere://x"), (subscribe, "nowhere://y"), (complete, "nowhere://z")];
    let (answers, told) = asked(&two, &nowhere);
    assert_eq!(answers, [-32002; 3]);
    assert_eq!(
        told,
        [
            json!([null, "nowhere://x", "resource", null, "not_found"]),
            json!([null, "nowhere://y", "resource", subscribe, "not_found"]),
            json!([null, "nowhere://z", "resource", complete, "not_found"]),
        ]
    );
    let greeting = "fixture://greeting";
    // In the legacy era, the fixture has no subscriptions.
    let modern = fixture("f", &["--era", "modern"]);
    let (_, told) = asked(&modern, &[(read, greeting), (subscribe, greeting)]);
    assert_eq!(told[0], json!(["f", greeting, "resource", null, null]));
    assert_eq!(told[1], json!(["f", greeting, "resource", subscribe, null]));
}

#[test]
fn what_a_modern_client_listens_to_is_written_down_too() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    let wanted = json!({ "resourceSubscriptions": ["fixture://greeting"] });
    gateway.send(&request("subscriptions/listen", &modern(json!({ "notifications": wanted }))));
    assert!(gateway.hear()["method"].is_string(), "it is told what was understood");
    let rows = rows(&world, 1);
    let told = json!([rows[0]["item"], rows[0]["method"], rows[0]["client"]]);
    assert_eq!(told, json!(["fixture://greeting", "subscriptions/listen", "test/1"]));
}

/// A gateway whose log cannot be written: a folder is in its place.
#[track_caller]
fn block(world: &World) {
    let log = world.state().join("capstan/audit.jsonl");
    fs::rename(&log, log.with_extension("aside")).unwrap();
    fs::create_dir(log).unwrap();
}

#[track_caller]
fn unblock(world: &World) {
    let log = world.state().join("capstan/audit.jsonl");
    fs::remove_dir(&log).unwrap();
    fs::rename(log.with_extension("aside"), log).unwrap();
}

#[test]
fn who_wants_no_call_unwritten_gets_none_until_the_log_works_again() {
    let trace = World::new();
    let trace = trace.home().join("trace");
    let audit = "[audit]\non_full = \"refuse\"\n\n";
    let server = fixture("f", &["--trace", trace.to_str().unwrap()]);
    let world = with(&format!("{ALL}{audit}{server}"));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    block(&world);
    let params = json!({ "name": "f__echo", "arguments": {} });
    let refused = gateway.ask(1, "tools/call", &params);
    let error = &refused["result"]["_meta"]["capstan/error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("transient"), &json!(true)));
    assert!(refused.to_string().contains("the audit log cannot be written"), "{refused}");
    let received = fs::read_to_string(&trace).unwrap_or_default();
    assert!(!received.contains("tools/call"), "{received}");
    unblock(&world);
    let mut id = 1;
    let works = || {
        id += 1;
        gateway.ask(id, "tools/call", &params)["result"]["isError"] != true
    };
    assert!(wait_until(works, LIMIT));
    gateway.says("calls are not written to the audit log");
    gateway.hang_up();
    gateway.end();
    assert_eq!(world.capstan(["audit", "--verify"]).run().status, Some(0));
}

#[test]
fn where_calls_go_on_it_is_told_counted_and_written_down_that_entries_are_missing() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let (gateway, address) = Gateway::listening(&world, "");
    let lost = || {
        let (_, text) = http(&address, "GET /metrics HTTP/1.1", "");
        let line = text.lines().find(|line| line.starts_with("capstan_audit_lost_total "));
        line.unwrap().to_owned()
    };
    assert_eq!(lost(), "capstan_audit_lost_total 0");
    block(&world);
    echo_by_http(&address, json!({ "name": "f__echo", "arguments": {} }), "");
    assert!(wait_until(|| lost() == "capstan_audit_lost_total 1", LIMIT));
    gateway.says("calls are not written to the audit log");
    unblock(&world);
    let rows = rows(&world, 1);
    assert_eq!((&rows[0]["kind"], &rows[0]["outcome"]), (&json!("break"), &json!("lost")));
}

#[test]
fn a_durable_entry_is_there_before_its_answer() {
    let world = with(&format!("{ALL}[audit]\ndurable = true\n\n{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let params = json!({ "name": "f__echo", "arguments": {} });
    for id in 1..=20 {
        assert!(gateway.ask(id, "tools/call", &params)["result"].is_object());
        let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
        assert_eq!(log.lines().count() as u64, id, "at the moment of the answer");
    }
}

#[test]
fn c49_the_hundred_and_first_call_of_a_connection_is_blocked() {
    let quota = "[tools]\nmax_tool_calls_per_session = 100\n\n";
    let world = with(&format!("{ALL}{quota}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let params = json!({ "name": "f__echo", "arguments": {} });
    for id in 1..=100 {
        let answer = gateway.ask(id, "tools/call", &params);
        assert_ne!(answer["result"]["isError"], true, "call {id}: {answer}");
    }
    let blocked = gateway.ask(101, "tools/call", &params);
    let error = &blocked["result"]["_meta"]["capstan/error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("quota_blocked"), &json!(false)));
}

#[test]
fn a_quota_counts_for_a_client_without_a_session_by_its_name() {
    let quota = "[tools]\nmax_tool_calls_per_session = 2\n\n";
    let world = with(&format!("{ALL}{quota}{}", fixture("f", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: f__echo";
    let call = |client: &str, agent: &str| {
        let mut params = modern(json!({ "name": "f__echo", "arguments": {} }));
        params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"] = client.into();
        params["_meta"]["caller_id"] = agent.into();
        let (_, body) = http(&address, head, &request("tools/call", &params));
        let answer: Value = serde_json::from_str(&body).unwrap();
        answer["result"]["_meta"]["capstan/error"]["code"].as_str().map(str::to_owned)
    };
    // Another agent of the same client is no way around it.
    assert_eq!((call("editor", "a"), call("editor", "b")), (None, None));
    assert_eq!(call("editor", "c").as_deref(), Some("quota_blocked"));
    assert_eq!(call("chat", "a"), None);
}

#[test]
fn a_rate_blocks_what_it_means_and_says_when_to_come_back() {
    let rates = "[[tools.rates]]\nlimit = 2\nevery = \"1h\"\nby = \"caller\"\n\
                 tools = [\"f__ec*\"]\nreason = \"echoes are expensive\"\n\n";
    let world = with(&format!("{ALL}{rates}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let echo = json!({ "name": "f__echo", "arguments": {} });
    for id in 1..=2 {
        assert_ne!(gateway.ask(id, "tools/call", &echo)["result"]["isError"], true);
    }
    let blocked = gateway.ask(3, "tools/call", &echo);
    let error = &blocked["result"]["_meta"]["capstan/error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("quota_blocked"), &json!(true)));
    let text = blocked["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("2 calls in 3600s for this caller is used up"), "{text}");
    assert!(text.contains("echoes are expensive") && text.contains("try again in 3"), "{text}");
    let add = json!({ "name": "f__add", "arguments": { "a": 1, "b": 2 } });
    assert_ne!(gateway.ask(4, "tools/call", &add)["result"]["isError"], true);
}

#[test]
fn what_retention_has_removed_is_told_and_the_rest_is_whole() {
    let audit = "[audit]\nmax_size = \"64KiB\"\nmax_total = \"64KiB\"\n\n";
    let world = with(&format!("{ALL}{audit}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let echo = json!({ "name": "f__echo", "arguments": {} });
    for id in 1..=300 {
        gateway.ask(id, "tools/call", &echo);
    }
    gateway.hang_up();
    gateway.end();
    let ended = world.capstan(["audit", "--verify"]).run();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let words = "older ones removed by retention";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
}
