//! Many clients over HTTP: what is said, and what is refused. The protocol itself is tested in the
//! gateway's own crate.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use capstan_testkit::World;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, LIMIT, echoed, fixture, http, modern, with};

#[test]
fn it_says_where_it_listens_and_serves_there() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let (gateway, address) = Gateway::listening(&world, "");
    let params = modern(json!({ "name": "f__echo", "arguments": { "text": "hi" } }));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: f__echo";
    let (status, body) = http(&address, head, &call.to_string());
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(echoed(&answer), "hi");
    for path in ["/health", "/ready", "/metrics"] {
        assert_eq!(http(&address, &format!("GET {path} HTTP/1.1"), "").0, 200, "{path}");
    }
    drop(gateway);
}

#[test]
fn an_address_that_others_can_reach_is_refused_unless_one_insists() {
    for (words, config) in [
        ("serve --http 0.0.0.0:0", ""),
        ("serve --http [::]:0", ""),
        ("serve --http", "[gateway]\nlisten = \"0.0.0.0:0\"\n"),
        ("serve --http :0", "[gateway]\nmetrics_listen = \"0.0.0.0:0\"\n"),
    ] {
        let world = with(config);
        let ended = world.capstan(words.split(' ')).run();
        assert_eq!(ended.status, Some(2), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("can be reached from other machines"), "{}", ended.stderr);
        assert!(ended.stderr.contains("--insecure"), "{}", ended.stderr);
    }
    let world = World::new();
    let gateway = Gateway::start(&world, "--http 0.0.0.0:0 --insecure");
    gateway.says("listening on http://0.0.0.0:");
    gateway.says("everyone who can reach this address");
}

#[test]
fn a_server_that_is_required_must_be_there() {
    let dead = fixture("dead", &["--exit", "3"]);
    for words in ["serve --http :0", "serve"] {
        let world = with(&format!("{ALL}{dead}required = true\n"));
        let ended = world.capstan(words.split(' ')).run();
        assert_eq!(ended.status, Some(7), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains("required") && ended.stderr.contains("dead"), "{ended:?}");
        assert_eq!(ended.stdout, "", "{words}");
    }
    let world = with(&format!("{ALL}{}required = true\n{dead}", fixture("f", &[])));
    Gateway::listening(&world, "");
}

#[test]
fn what_cannot_be_served_is_refused_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("serve --http {}", taken.local_addr().unwrap());
    let auth = r#"{"mcpServers":{},"serverAuth":{"provider":"bearer"}}"#;
    for (words, code, piece) in [
        ("serve --insecure", 2, "--http"),
        ("serve --http :0 --tls-cert c.pem", 2, "--tls-key"),
        ("serve --http :0 --tls-cert c.pem --tls-key k.pem", 3, "c.pem"),
        ("serve --http example.com:80", 2, "not an address"),
        (taken.as_str(), 3, "`--http :0` picks"),
        ("serve --http 192.0.2.1:0 --insecure", 3, "an address of this machine"),
        ("serve --http :0 --config avelino:auth.json", 3, "serverAuth"),
        ("serve --log-format xml", 2, "text"),
    ] {
        let world = World::new();
        world.write("project/auth.json", auth);
        let ended = world.capstan(words.split(' ')).run();
        assert_eq!(ended.status, Some(code), "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(piece), "{words}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{words}");
    }
}

#[test]
fn the_configuration_says_where_and_the_command_line_knows_better() {
    let world = with("[gateway]\nlisten = \"127.0.0.1:0\"\npublic_url = \"https://h.example\"\n");
    let gateway = Gateway::start(&world, "--http");
    assert_ne!(gateway.says("listening on "), "listening on http://127.0.0.1:8080/mcp");
    let gateway = Gateway::start(&world, "--http [::1]:0");
    assert!(gateway.says("listening on ").starts_with("listening on http://[::1]:"));
}

#[test]
fn the_command_of_the_readme_ends_with_an_endpoint_tools_and_a_configuration() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md"));
    let readme = readme.unwrap();
    let first = readme.lines().find(|line| line.starts_with("cargo run")).unwrap();
    assert!(first.contains("serve --http --demo"), "{first}");
    let world = World::new();
    let gateway = Gateway::start(&world, "--http :0 --demo");
    let mut shown = Vec::new();
    while shown.last().is_none_or(|line: &String| line != "stop with Ctrl-C") {
        shown.push(gateway.says(""));
    }
    let text = shown.join("\n");
    let port = text.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next()).unwrap();
    insta::assert_snapshot!("readme", text.replace(port, "PORT"));
}

#[test]
fn the_log_can_be_json() {
    let world = with(&format!("{ALL}{}", fixture("dead", &["--exit", "3"])));
    let mut gateway = Gateway::start(&world, "--log-format json --debug");
    gateway.initialize("2025-06-18");
    gateway.hang_up();
    let line = gateway.says("{");
    let entry: Value = serde_json::from_str(&line).unwrap();
    assert!(entry["level"].is_string() && entry["timestamp"].is_string(), "{line}");
}

/// Holes 8.
#[test]
fn the_metrics_can_have_an_address_of_their_own() {
    let world = with(&format!(
        "[gateway]\nmetrics_listen = \":0\"\n\n[access]\ndefault = \"deny\"\n\n{}",
        fixture("hidden", &[])
    ));
    let (gateway, address) = Gateway::listening(&world, "");
    let said = gateway.says("metrics at ");
    let metrics = said.strip_prefix("metrics at http://").unwrap();
    let metrics = metrics.strip_suffix("/metrics").unwrap();
    let (status, body) = http(metrics, "GET /metrics HTTP/1.1", "");
    assert_eq!(status, 200);
    assert!(body.contains(r#"server="hidden""#), "{body}");
    assert_eq!(http(metrics, "GET /mcp HTTP/1.1", "").0, 404);
    assert_eq!(http(&address, "GET /metrics HTTP/1.1", "").0, 404);

    let world = with(&format!("[access]\ndefault = \"deny\"\n\n{}", fixture("hidden", &[])));
    let (_gateway, address) = Gateway::listening(&world, "");
    let (status, body) = http(&address, "GET /metrics HTTP/1.1", "");
    assert_eq!(status, 200);
    assert!(!body.contains("hidden"), "{body}");

    let world = with("[gateway]\nmetrics_listen = \"nowhere\"\n");
    let ended = world.capstan(["serve", "--http", ":0"]).run();
    assert!(ended.stderr.contains("`gateway.metrics_listen`"), "{}", ended.stderr);

    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = taken.local_addr().unwrap();
    let world = with(&format!("[gateway]\nmetrics_listen = \"{busy}\"\n"));
    let ended = world.capstan(["serve", "--http", ":0"]).run();
    assert!(ended.stderr.contains("`gateway.metrics_listen = \":0\"`"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("--http"), "{}", ended.stderr);
}

/// Holes 13.
#[cfg(target_os = "linux")]
#[test]
fn without_descriptors_idle_connections_make_room_and_the_log_stays_short() {
    const FEW: u64 = 64;
    const CLIENTS: usize = 200;
    const SILENT: usize = 80;
    let world = World::new();
    let (mut gateway, address) = Gateway::listening(&world, "");
    let pid = Pid::from_raw(i32::try_from(gateway.child.id()).unwrap());
    let few = Rlimit { current: Some(FEW), maximum: Some(FEW) };
    prlimit(pid, Resource::Nofile, few).unwrap();
    // These never send a byte, or no whole head, or no whole body.
    let silent: Vec<TcpStream> = (0..SILENT)
        .map(|number| {
            let mut client = TcpStream::connect(&address).unwrap();
            let sent: &[u8] = match number % 3 {
                0 => b"",
                1 => b"GET /health HT",
                _ => {
                    b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                      Accept: application/json, text/event-stream\r\nContent-Length: 12\r\n\r\n{}"
                }
            };
            client.write_all(sent).unwrap();
            client
        })
        .collect();
    let begun = Instant::now();
    assert_eq!(http(&address, "GET /health HTTP/1.1", "").0, 200);
    // Without a request a connection may wait for half a minute, when there is room.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    drop(silent);
    // Each of them keeps its connection.
    let clients: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut client = TcpStream::connect(&address).unwrap();
            client.set_read_timeout(Some(LIMIT)).unwrap();
            client.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut status = [0; 12];
            client.read_exact(&mut status).unwrap();
            assert_eq!(&status, b"HTTP/1.1 200");
            client
        })
        .collect();
    drop(clients);
    assert_eq!(http(&address, "GET /health HTTP/1.1", "").0, 200);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.end(), Some(0));
    let told = gateway.errors().iter().filter(|line| line.contains("cannot accept")).count();
    assert!((1..=10).contains(&told), "{told}");
}
