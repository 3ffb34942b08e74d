//! Claude Code and Codex, moved to Capstan: the entry that `adopt` writes is the one they use.
//!
//! They run in a network namespace of their own that has only the loopback, and a stand-in answers
//! for the model (`model_api.py`).

use std::collections::HashSet;
use std::fs;

use capstan_testkit::{Ended, World};
use serde_json::{Value, json};

use crate::remote::beside;
use crate::{LIMIT, installed, run};

/// The servers that the clients have before.
const SERVERS: [&str; 5] = ["everything", "filesystem", "memory", "time", "git"];

/// A tool of Claude Code that Capstan offers.
const PREFIX: &str = "mcp__capstan__";

/// A home with both clients, whose servers were moved.
struct Moved {
    world: World,
}

// === impl Moved ===

impl Moved {
    #[track_caller]
    fn new(words: &[&str]) -> Self {
        let world = World::new();
        world.write("project/a.txt", "hello");
        world.program("git", ["init", "--quiet", "."]).run().ok();
        let project = world.project().display().to_string();
        let (mut claude, mut codex) = (serde_json::Map::new(), String::new());
        for name in SERVERS {
            let command = installed(&format!("mcp-server-{name}"));
            let args = if name == "filesystem" { vec![project.as_str()] } else { Vec::new() };
            claude.insert(name.to_owned(), json!({ "command": command, "args": args }));
            let entry = format!("[mcp_servers.{name}]\ncommand = {command:?}\nargs = {args:?}\n\n");
            codex.push_str(&entry);
        }
        let file = json!({ "hasCompletedOnboarding": true, "mcpServers": claude });
        world.write(world.home().join(".claude.json"), file.to_string());
        world.write(world.home().join(".codex/config.toml"), codex);
        for client in ["claude-code", "codex"] {
            let adopt = ["adopt", client, "--yes", "--check"];
            let told = run(&world, &[&adopt[..], words].concat());
            assert_eq!(told.stderr.matches("answers: ").count(), SERVERS.len(), "{}", told.stderr);
            told.ok();
        }
        Self { world }
    }

    /// Runs a client where only the loopback can be reached.
    #[track_caller]
    fn client(&self, program: &str, words: &[&str]) -> Ended {
        self.apart(&[&[installed(program).as_str()][..], words].concat())
    }

    #[track_caller]
    fn apart(&self, words: &[&str]) -> Ended {
        let apart = ["--map-root-user", "--net", "sh", "-c"];
        let words = [&apart[..], &["ip link set lo up && exec \"$@\"", "sh"], words].concat();
        let mut run = self.world.program("unshare", words).within(self.world.project());
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "sk-ant-stand-in"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
        ] {
            run = run.env(name, value);
        }
        run.limit(LIMIT).run()
    }

    /// Has Claude Code make calls, as the model would; the tools that it offers the model, and the
    /// results that it hands to it.
    #[track_caller]
    fn asked(&self, calls: &[(&str, Value)]) -> (Vec<String>, Vec<(bool, String)>) {
        let step = |(tool, input): &(&str, Value)| json!({ "tool": format!("{PREFIX}{tool}"), "input": input });
        let mut plan: Vec<Value> = calls.iter().map(step).collect();
        plan.push(json!({ "text": "all is done" }));
        let plan = self.world.write("plan.json", Value::from(plan).to_string());
        let log = self.world.home().join("log.jsonl");
        let (python, script) = (installed("python"), beside("model_api.py"));
        let (claude, allowed) = (installed("claude"), PREFIX.trim_end_matches("__"));
        let words = [
            python.as_str(),
            script.to_str().unwrap(),
            plan.to_str().unwrap(),
            log.to_str().unwrap(),
            claude.as_str(),
            "-p",
            "go",
            "--allowedTools",
            allowed,
        ];
        let said = self.apart(&words).ok();
        assert!(said.contains("all is done"), "{said}");
        let log = fs::read_to_string(log).unwrap();
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let tools = last["tools"].as_array().unwrap().iter().map(text);
        let results = last["results"].as_array().unwrap().iter();
        let results = results.map(|one| (one[0].as_bool().unwrap(), text(&one[1]))).collect();
        (tools.filter(|tool| tool.starts_with(PREFIX)).collect(), results)
    }

    /// The entry of Claude Code for Capstan.
    #[track_caller]
    fn entry(&self) -> Vec<String> {
        let file = fs::read_to_string(self.world.home().join(".claude.json")).unwrap();
        let file: Value = serde_json::from_str(&file).unwrap();
        let entry = &file["mcpServers"]["capstan"];
        let args = entry["args"].as_array().unwrap().iter();
        let words = std::iter::once(&entry["command"]).chain(args);
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    }
}

/// Every server's tools are there, and each of them once.
#[track_caller]
fn assert_once(tools: &[String]) {
    let distinct: HashSet<&String> = tools.iter().collect();
    assert_eq!(distinct.len(), tools.len(), "{tools:?}");
    for (server, tool) in [
        ("everything", "echo"),
        ("filesystem", "read_text_file"),
        ("memory", "read_graph"),
        ("time", "convert_time"),
        ("git", "git_status"),
    ] {
        let same = |name: &&String| name.ends_with(&format!("__{tool}")) || *name == tool;
        let found: Vec<&String> = tools.iter().filter(same).collect();
        assert_eq!(found.len(), 1, "{server}: {found:?} in {tools:?}");
    }
}

#[test]
fn claude_code_connects_through_the_entry_that_adopt_wrote() {
    let moved = Moved::new(&[]);
    let listed = moved.client("claude", &["mcp", "list"]).ok();
    let servers: Vec<&str> = listed.lines().filter(|line| line.contains(": ")).collect();
    assert!(matches!(servers[..], [one] if one.starts_with("capstan: ")), "{listed}");
    assert!(listed.contains("Connected"), "{listed}");
}

#[test]
fn claude_code_calls_tools_and_a_write_is_refused_with_its_remedy() {
    let moved = Moved::new(&[]);
    let new = moved.world.project().join("new.txt");
    let (tools, results) = moved.asked(&[
        ("everything__echo", json!({ "message": "hi" })),
        ("filesystem__write_file", json!({ "path": new, "content": "x" })),
    ]);
    assert_once(&tools);
    let [(false, echo), (true, refusal)] = &results[..] else {
        panic!("one answer and one refusal, not {results:?}")
    };
    assert!(echo.contains("Echo: hi"), "{echo}");
    for piece in
        ["the client declined", "capstan approvals yes ", "allow = [\"filesystem__write_file\"]"]
    {
        assert!(refusal.contains(piece), "no {piece:?} in {refusal}");
    }
    assert!(!new.exists());
}

#[test]
fn claude_code_confirms_writes_itself_where_the_entry_says_so() {
    let moved = Moved::new(&["--confirm", "client"]);
    let new = moved.world.project().join("new.txt");
    let call = ("filesystem__write_file", json!({ "path": new, "content": "x" }));
    let (_, results) = moved.asked(&[call]);
    assert!(matches!(&results[..], [(false, _)]), "{results:?}");
    assert_eq!(fs::read_to_string(new).unwrap(), "x");
}

#[test]
fn codex_parses_the_file_that_adopt_wrote() {
    let moved = Moved::new(&[]);
    let listed = moved.client("codex", &["mcp", "list", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let entry = &listed[0];
    assert_eq!((&entry["name"], &entry["enabled"]), (&json!("capstan"), &json!(true)));
    assert_eq!(entry["transport"]["args"], json!(["serve"]));
    assert_eq!(entry["startup_timeout_sec"].as_f64(), Some(60.0));
}

#[test]
fn other_clients_see_every_tool_once_through_that_entry() {
    let moved = Moved::new(&[]);
    let entry = moved.entry();
    let script = beside("gateway_peer.py").display().to_string();
    let words = [&[script, "mcp".to_owned(), "auto".to_owned()][..], &entry].concat();
    let said = moved.world.program(installed("python"), words).limit(LIMIT).run().ok();
    let said: Value = serde_json::from_str(&said).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let python: Vec<String> = said["tools"].as_array().unwrap().iter().map(text).collect();
    assert_once(&python);
    let inspector = [installed("mcp-inspector"), "--cli".to_owned()];
    let method = ["-q", "--format", "json", "--method", "tools/list"].map(str::to_owned);
    let words = [&inspector[..], &entry, &method].concat();
    let said = moved.world.program(installed("node"), words).limit(LIMIT).run().ok();
    let said: Value = serde_json::from_str(&said).unwrap();
    let tools = said["result"]["tools"].as_array().unwrap().iter();
    let inspected: Vec<String> = tools.map(|tool| text(&tool["name"])).collect();
    assert_once(&inspected);
}
