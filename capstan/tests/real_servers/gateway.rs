//! Clients that others wrote, at a gateway in front of servers that others wrote.

use std::io::{Read, Write};
use std::net::TcpStream;

use capstan_testkit::{World, binary, wait_until};
use serde_json::{Value, json};

use crate::remote::{Remote, beside};
use crate::stdio::entry;
use crate::{ALLOW, LIMIT, installed};

/// The servers, and how many tools each of them has for a client that can do everything.
const SERVERS: [(&str, usize); 4] =
    [("everything", 17), ("filesystem", 14), ("time", 2), ("git", 12)];

/// A document of `everything`.
const DOCUMENT: &str = "demo://resource/static/document/features.md";

/// A request for all tools.
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// A gateway in front of all of them.
pub(crate) struct Gateway {
    pub(crate) world: World,
    pub(crate) remote: Remote,
}

/// What a client has seen.
struct Seen {
    protocol: Option<String>,
    tools: Vec<String>,
    /// One for each call of the plan.
    answers: Vec<String>,
    resource: String,
    prompt: String,
}

// === impl Gateway ===

impl Gateway {
    /// Starts it, and waits until all servers are there: nobody has to wait for slow ones.
    #[track_caller]
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts it with these options.
    #[track_caller]
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let world = World::new();
        world.write("project/a.txt", "hello");
        world.program("git", ["init", "--quiet", "."]).run().ok();
        let project = world.project().display().to_string();
        let mut config = ALLOW.to_owned();
        for (name, _) in SERVERS {
            let server = installed(&format!("mcp-server-{name}"));
            let words = [server.as_str(), &project];
            config += &entry(name, if name == "filesystem" { &words } else { &words[..1] }, "");
        }
        world.write_user_config(&config);
        let mut command =
            world.capstan([&["serve", "--http", ":0"], options].concat()).into_command();
        let remote = Remote::start(&world, &mut command);
        let gateway = Self { world, remote };
        // Servers are started when somebody asks.
        gateway.send("POST /mcp", LIST);
        let connected = format!("capstan_servers{{state=\"connected\"}} {}\n", SERVERS.len());
        let metrics = || gateway.send("GET /metrics", "");
        assert!(wait_until(|| metrics().contains(&connected), LIMIT), "{}", metrics());
        gateway
    }

    /// Sends a request, and returns all that comes back.
    fn send(&self, line: &str, body: &str) -> String {
        let url = self.remote.url.strip_prefix("http://").unwrap();
        let address = url.strip_suffix("/mcp").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let text = format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A call for each server, with what its answer contains.
    fn calls(&self) -> [(&'static str, Value, &'static str); 4] {
        let project = self.world.project();
        let zones = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata" });
        [
            ("everything__get-sum", json!({ "a": 2, "b": 40 }), "The sum of 2 and 40 is 42."),
            ("filesystem__read_text_file", json!({ "path": project.join("a.txt") }), "hello"),
            ("time__convert_time", zones, "-3.5h"),
            ("git__git_status", json!({ "repo_path": project }), "a.txt"),
        ]
    }

    /// Has a client made with Python do everything.
    #[track_caller]
    fn python(&self, package: &str, way: &str, url: &str) -> Seen {
        let calls: Vec<Value> =
            self.calls().into_iter().map(|(name, arguments, _)| json!([name, arguments])).collect();
        let prompt = json!(["everything__args-prompt", { "city": "Ulm", "state": "Bavaria" }]);
        let plan = json!({ "calls": calls, "resource": DOCUMENT, "prompt": prompt });
        let script = beside("gateway_peer.py").display().to_string();
        let run = self.world.program(installed("python"), [&script, package, way, url]);
        let said = run.stdin(plan.to_string()).limit(LIMIT).run().ok();
        let said: Value = serde_json::from_str(&said).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let texts = |list: &Value| list.as_array().unwrap().iter().map(text).collect();
        let answers = said["answers"].as_array().unwrap().iter();
        let answers = answers.map(|answer| {
            assert_eq!(answer[0], false, "{answer}");
            text(&answer[1])
        });
        Seen {
            protocol: Some(text(&said["protocol"])),
            tools: texts(&said["tools"]),
            answers: answers.collect(),
            resource: text(&said["resource"]),
            prompt: text(&said["prompt"]),
        }
    }

    /// Has the inspector do everything, a process for each step.
    #[track_caller]
    fn inspector(&self, way: &[&str]) -> Seen {
        let run = |method: &str, more: &[String]| {
            let node = [installed("mcp-inspector"), "--cli".to_owned()];
            let way = way.iter().map(|word| (*word).to_owned());
            let format = ["-q", "--format", "json", "--method", method].map(str::to_owned);
            let words = node.into_iter().chain(way).chain(format).chain(more.iter().cloned());
            let run = self.world.program(installed("node"), words);
            let said = run.limit(LIMIT).run().ok();
            let mut said: Value = serde_json::from_str(&said).unwrap();
            said["result"].take()
        };
        let option = |name: &str, value: &str| [format!("--{name}"), value.to_owned()];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let tools = run("tools/list", &[]);
        let answers = self.calls().map(|(name, arguments, _)| {
            let given = arguments.as_object().unwrap().iter().flat_map(|(key, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                option("tool-arg", &format!("{key}={value}"))
            });
            let words: Vec<String> = option("tool-name", name).into_iter().chain(given).collect();
            let answer = run("tools/call", &words);
            assert_ne!(answer["isError"], true, "{answer}");
            text(&answer["content"][0]["text"])
        });
        let prompt = [
            option("prompt-name", "everything__args-prompt"),
            option("prompt-args", "city=Ulm"),
            option("prompt-args", "state=Bavaria"),
        ];
        Seen {
            protocol: None,
            tools: tools["tools"].as_array().unwrap().iter().map(|it| text(&it["name"])).collect(),
            answers: answers.to_vec(),
            resource: text(&run("resources/read", &option("uri", DOCUMENT))["contents"][0]["text"]),
            prompt: text(&run("prompts/get", &prompt.concat())["messages"][0]["content"]["text"]),
        }
    }

    #[track_caller]
    fn check(&self, seen: &Seen) {
        for (server, expected) in SERVERS {
            let prefix = format!("{server}__");
            let found = seen.tools.iter().filter(|tool| tool.starts_with(&prefix)).count();
            assert_eq!(found, expected, "{server}: {:?}", seen.tools);
        }
        let all: usize = SERVERS.iter().map(|(_, tools)| tools).sum();
        assert_eq!(seen.tools.len(), all, "{:?}", seen.tools);
        let calls = self.calls();
        assert_eq!(seen.answers.len(), calls.len());
        for (answer, (tool, _, expected)) in seen.answers.iter().zip(calls) {
            assert!(seen.tools.iter().any(|listed| listed == tool), "{tool}");
            assert!(answer.contains(expected), "{tool}: {answer}");
        }
        assert!(seen.resource.starts_with("# Everything Server"), "{}", seen.resource);
        assert_eq!(seen.prompt, "What's weather in Ulm, Bavaria?");
    }

    fn sse(&self) -> String {
        self.remote.url.replace("/mcp", "/sse")
    }
}

#[test]
fn clients_of_mcp_use_all_servers_in_each_mode() {
    let gateway = Gateway::start();
    for (mode, protocol) in
        [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
    {
        let seen = gateway.python("mcp", mode, &gateway.remote.url);
        assert_eq!(seen.protocol.as_deref(), Some(protocol), "{mode}");
        gateway.check(&seen);
    }
}

/// With a cold cache, and one server that needs longer than a list usually waits.
#[test]
fn the_first_list_of_a_client_has_the_tools_of_all_servers() {
    for (mode, protocol) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        let world = World::new();
        let project = world.project().display().to_string();
        // A busy machine needs its time to start four interpreters at once.
        let mut config = format!("{ALLOW}\n[gateway]\nfirst_list_wait = \"60s\"\n\n");
        for (name, _) in SERVERS {
            let server = installed(&format!("mcp-server-{name}"));
            let line = "sleep 3; exec \"$0\"";
            let slow = ["sh", "-c", line, server.as_str()];
            let words = [server.as_str(), &project];
            config += &match name {
                "time" => entry(name, &slow, ""),
                "filesystem" => entry(name, &words, ""),
                _ => entry(name, &words[..1], ""),
            };
        }
        world.write_user_config(&config);
        let script = beside("first_list.py").display().to_string();
        let capstan = binary("capstan").display().to_string();
        let words = [script.as_str(), mode, &capstan, "serve"];
        let said = world.program(installed("python"), words).limit(LIMIT).run().ok();
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["protocol"], protocol, "{mode}");
        let tools: Vec<&str> =
            said["tools"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        for (server, expected) in SERVERS {
            let prefix = format!("{server}__");
            let found = tools.iter().filter(|tool| tool.starts_with(&prefix)).count();
            assert_eq!(found, expected, "{server}: {tools:?}");
        }
        let count = |list: &str| said[list].as_array().unwrap().len();
        assert!(count("prompts") > 0 && count("resources") > 0, "{said}");
    }
}

#[test]
fn clients_of_fastmcp_use_all_servers_over_both_transports() {
    let gateway = Gateway::start();
    for (transport, url, protocol) in
        [("http", gateway.remote.url.clone(), "2026-07-28"), ("sse", gateway.sse(), "2025-11-25")]
    {
        let seen = gateway.python("fastmcp", transport, &url);
        assert_eq!(seen.protocol.as_deref(), Some(protocol), "{transport}");
        gateway.check(&seen);
    }
}

/// In one era, over one transport.
#[track_caller]
fn check_inspector(transport: &str, era: &str) {
    let gateway = Gateway::start();
    let url = if transport == "sse" { gateway.sse() } else { gateway.remote.url.clone() };
    let way = ["--transport", transport, "--server-url", &url, "--protocol-era", era];
    gateway.check(&gateway.inspector(&way));
}

#[test]
fn the_inspector_uses_all_servers_in_the_legacy_era() {
    check_inspector("http", "legacy");
}

#[test]
fn the_inspector_uses_all_servers_in_the_modern_era() {
    check_inspector("http", "modern");
}

#[test]
fn the_inspector_uses_all_servers_over_the_older_transport() {
    check_inspector("sse", "legacy");
}
