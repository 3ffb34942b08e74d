//! What the tests play on: well-behaved servers, worlds that know them, and runs that must end.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use capstan_testkit::{Capstan, Ended, World, binary};
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Piece, Seen};

/// Far more than any limit in these tests, and far less than for ever.
const LIMIT: Duration = Duration::from_secs(45);

/// What a well-behaved legacy server answers; it has a tool `do`, a resource and a prompt less.
pub(crate) fn legacy(seen: &Seen) -> Answer {
    match (seen.verb.as_str(), seen.method()) {
        ("POST", "initialize") => {
            Answer::json(seen.result(&hello("2025-11-25"))).with("mcp-session-id", "session-1")
        }
        ("POST", "tools/list") => Answer::json(seen.result(&tools())),
        ("POST", "tools/call") => Answer::json(seen.result(&done())),
        ("POST", _) if seen.body["id"].is_null() => Answer::status(202),
        ("DELETE", _) => Answer::status(200),
        ("GET", _) => Answer::status(405),
        _ => Answer::status(400),
    }
}

/// The same, with another answer to calls.
pub(crate) fn answering(
    answer: impl Fn() -> Answer + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Answer + Send + Sync {
    move |seen| if seen.method() == "tools/call" { answer() } else { legacy(seen) }
}

/// A server of the older transport at `/sse`: what is posted is answered on the stream.
pub(crate) fn older() -> Peer {
    let stream: Mutex<Option<Sender<String>>> = Mutex::default();
    Peer::new(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/sse") => {
            let (sender, feed) = channel();
            sender.send("event: endpoint\ndata: /messages?id=7\n\n".to_owned()).unwrap();
            *stream.lock().unwrap() = Some(sender);
            Answer::events("").then(Piece::Feed(feed))
        }
        ("POST", "/messages?id=7") => {
            let result = match seen.method() {
                "initialize" => Some(hello("2024-11-05")),
                "tools/list" => Some(tools()),
                "tools/call" => Some(done()),
                _ => None,
            };
            if let (Some(result), Some(stream)) = (result, &*stream.lock().unwrap()) {
                let event = format!("event: message\ndata: {}\n\n", seen.result(&result));
                // It may have hung up.
                drop(stream.send(event));
            }
            Answer::status(202)
        }
        _ => Answer::status(405),
    })
}

fn hello(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {"tools": {}},
        "serverInfo": {"name": "peer", "version": "1"}})
}

fn tools() -> Value {
    json!({"tools": [{"name": "do", "inputSchema": {"type": "object"}}]})
}

pub(crate) fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

/// A world that knows one server, called `s`, with more lines in its configuration.
#[track_caller]
pub(crate) fn world_at(url: &str, more: &str) -> World {
    let world = World::new();
    world.write_user_config(&format!("[servers.s]\nurl = {}\n{more}\n", Value::from(url)));
    world
}

/// Runs to the end, which must come.
#[track_caller]
pub(crate) fn ended(run: Capstan) -> Ended {
    run.limit(LIMIT).run()
}

#[track_caller]
pub(crate) fn run(world: &World, words: &[&str]) -> Ended {
    ended(world.capstan(words))
}

/// The output of a run that must end with this code.
#[track_caller]
pub(crate) fn ends(ended: Ended, code: i32) -> Ended {
    assert_eq!(ended.status, Some(code), "{}\n{}", ended.stdout, ended.stderr);
    ended
}

#[track_caller]
pub(crate) fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

/// Asserts that a text contains another.
#[track_caller]
pub(crate) fn says(text: &str, piece: &str) {
    assert!(text.contains(piece), "{piece:?} is not in:\n{text}");
}

/// Puts a program of this name before all others: it writes down its arguments and variables,
/// and becomes a fixture with these options.
#[track_caller]
pub(crate) fn shim(world: &World, name: &str, options: &str) {
    let fixture = binary("capstan-fixture").display().to_string();
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$HOME/{name}.argv\"\nenv >\"$HOME/{name}.env\"\n\
         exec '{fixture}' {options}\n"
    );
    let path = world.write(format!("shims/{name}"), script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run that finds the shims first.
#[track_caller]
pub(crate) fn with_shims(world: &World, words: &[&str]) -> Capstan {
    let mut path = world.home().join("shims").into_os_string();
    for (_, value) in world.environment().into_iter().filter(|(name, _)| *name == "PATH") {
        path.push(":");
        path.push(value);
    }
    world.capstan(words).env("PATH", path)
}

/// What a shim has written down.
#[track_caller]
pub(crate) fn noted(world: &World, file: &str) -> Vec<String> {
    let text = fs::read_to_string(world.home().join(file)).unwrap();
    text.lines().map(ToOwned::to_owned).collect()
}
