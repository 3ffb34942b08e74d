//! A server is recorded, and its recording is a server.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use capstan_testkit::World;

use crate::stage::{ends_with, fixture, ok_json, quoted, run, says, with, with_fixture};

/// The messages of a client in the legacy era.
const LEGACY: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi","key":"hunter22secret"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nothing-like-it","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#,
];

/// The metadata of a modern request.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn modern() -> Vec<String> {
    [
        ("server/discover", ""),
        ("tools/list", ""),
        ("tools/call", r#""name":"echo","arguments":{"message":"hi"},"#),
    ]
    .iter()
    .enumerate()
    .map(|(id, (method, params))| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{META}}}}}"#)
    })
    .collect()
}

/// Says these lines to a command, each after the answer to the one before; returns its output.
#[track_caller]
fn talk<L: AsRef<str>>(world: &World, words: &[&str], lines: &[L]) -> String {
    let mut command = world.capstan(words).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut all = String::new();
    for line in lines.iter().map(AsRef::as_ref) {
        writeln!(input, "{line}").unwrap();
        let request: serde_json::Value = serde_json::from_str(line).unwrap();
        while let Some(id) = request.get("id") {
            let mut answer = String::new();
            assert_ne!(output.read_line(&mut answer).unwrap(), 0, "{words:?} ended: {all}");
            all.push_str(&answer);
            let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
            if answer.get("id") == Some(id) && answer.get("method").is_none() {
                break;
            }
        }
    }
    drop(input);
    std::io::Read::read_to_string(&mut output, &mut all).unwrap();
    assert!(child.wait().unwrap().success(), "{words:?}");
    all
}

#[test]
fn a_recorded_run_is_replayed_byte_for_byte_in_both_eras() {
    let world = with_fixture();
    let modern = modern();
    let modern: Vec<&str> = modern.iter().map(String::as_str).collect();
    for (file, lines) in [("legacy.cassette", LEGACY), ("modern.cassette", &modern)] {
        let run = talk(&world, &["record", "f", "-o", file], lines);
        assert!(run.contains("\"hi") || run.contains("hi\""), "{run}");
        assert_eq!(talk(&world, &["replay", file], lines), run, "{file}");
        let mode = fs::metadata(world.project().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Calls of a recording are calls.
    let calls = ok_json(&world, "audit");
    assert!(calls.to_string().contains("echo"), "{calls}");
}

#[test]
fn a_recording_is_a_server_in_both_eras() {
    let world = with_fixture();
    let file = world.project().join("f.cassette");
    talk(&world, &["record", "f", "-o", file.to_str().unwrap()], LEGACY);
    let capstan = quoted(capstan_testkit::binary("capstan").to_str().unwrap());
    let entry = |name: &str| {
        let args = format!("[\"replay\", {}]", quoted(file.to_str().unwrap()));
        format!("[servers.{name}]\ncommand = {capstan}\nargs = {args}\nprotocol = \"{name}\"\n\n")
    };
    world.write_user_config(&format!(
        "[permissions]\nallow = [\"*\"]\n\n{}{}",
        entry("legacy"),
        entry("modern")
    ));
    for name in ["legacy", "modern"] {
        let tool = format!("{name}__echo");
        let words = ["call", &tool, r#"{"message":"hi","key":"hunter22secret"}"#];
        says(&ends_with(world.capstan(words).run(), 0).stdout, "hi");
        let words = ["call", &tool, r#"{"message":"something else"}"#];
        let ended = world.capstan(words).run();
        assert_ne!(ended.status, Some(0));
        says(&ended.stderr, "none for these params");
    }
}

#[test]
fn the_secrets_of_an_entry_are_not_recorded() {
    let entry = fixture("f", &[]);
    let world = with(&format!(
        "[permissions]\nallow = [\"*\"]\n\n{entry}env = {{ API_KEY = \"hunter22secret\" }}\n"
    ));
    let run = talk(&world, &["record", "f"], LEGACY);
    assert!(run.contains("hi"), "{run}");
    let text = fs::read_to_string(world.project().join("f.cassette")).unwrap();
    assert!(text.contains("tools/call") && text.contains("***"), "{text}");
    assert!(!text.contains("hunter22secret"), "{text}");
}

#[test]
fn recordings_do_not_replace_other_files_and_other_files_are_no_recordings() {
    let world = with_fixture();
    let notes = world.write("project/notes.txt", "mine");
    let ended = ends_with(run(&world, "record f -o notes.txt"), 2);
    says(&ended.stderr, "is no recording");
    assert_eq!(fs::read_to_string(notes).unwrap(), "mine");
    says(&ends_with(run(&world, "replay notes.txt"), 2).stderr, "no recording");
    says(&ends_with(run(&world, "replay absent"), 4).stderr, "absent");
    says(&ends_with(run(&world, "record nobody"), 4).stderr, "no server named");
    ends_with(run(&world, "record f -o no/such/folder/f"), 2);
}
