//! `--ask`: a person is asked on the terminal before a call runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use super::{LIMIT, Terminal, wait_until, world};

/// Presses the key for the next choice.
const DOWN: &str = "\u{1b}[B";

/// The command that is asked about.
const CALL: &str = "call f__count --ask";

/// Runs the command, chooses the choice at this place: how it ends.
#[track_caller]
fn choose(world: &World, place: usize) -> u32 {
    let mut terminal = Terminal::start(world, CALL);
    terminal.wait_for("Run it?");
    terminal.wait_for("cancel");
    terminal.press(&format!("{}\r", DOWN.repeat(place)));
    terminal.end()
}

/// Whether the command asks, which it is then told not to go on with.
#[track_caller]
fn asks(world: &World, words: &str) -> bool {
    let mut terminal = Terminal::start(world, words);
    let ended = || terminal.seen.lock().unwrap().closed;
    assert!(wait_until(|| ended() || terminal.screen().contains("Run it?"), LIMIT));
    let asked = terminal.screen().contains("Run it?");
    if asked {
        terminal.wait_for("cancel");
        // Closes the question.
        terminal.press("\u{1b}");
        assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    } else {
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    }
    asked
}

fn config(world: &World) -> String {
    fs::read_to_string(world.config().join("capstan/config.toml")).unwrap()
}

fn last_approval(world: &World) -> Value {
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    let entry: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    entry.get("approval").cloned().unwrap_or_default()
}

#[test]
fn a_person_sees_what_would_run_and_why_it_is_asked() {
    let world = world();
    let mut terminal = Terminal::start(&world, "call f__count path=a.txt token=hunter2 --ask");
    terminal.wait_for("cancel");
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().map(str::trim_end).collect();
    world.snapshots().bind(|| {
        insta::assert_snapshot!(shown.join("\n").trim());
    });
    terminal.press("\r");
    assert_eq!(terminal.end(), 0);
    assert_eq!(last_approval(&world), "asked");
}

#[test]
fn c61_each_choice_asks_again_or_does_not() {
    // once, these arguments, this tool, the server, no, cancel
    for (place, exit, again, other) in [
        (0, 0, true, true),
        (1, 0, false, true),
        (2, 0, false, true),
        (3, 0, false, false),
        (4, 6, true, true),
        (5, 6, true, true),
    ] {
        let world = world();
        let call = "call f__count n=1 --ask";
        let mut terminal = Terminal::start(&world, call);
        terminal.wait_for("Run it?");
        terminal.wait_for("cancel");
        terminal.press(&format!("{}\r", DOWN.repeat(place)));
        assert_eq!(terminal.end(), exit, "{place}: {}", terminal.screen());
        assert_eq!(asks(&world, call), again, "{place}: the same call");
        assert_eq!(asks(&world, "call f__grow --ask"), other, "{place}: another tool");
    }
}

#[test]
fn c61_a_trusted_server_is_not_asked_about_and_gets_the_raw_name() {
    let world = World::new();
    let trace = world.home().join("trace");
    let server = json!({
        "command": binary("capstan-fixture"),
        "args": ["--trace", trace],
        "trust": true,
    });
    let settings = json!({ "mcpServers": { "f": server } });
    world.write("project/settings.json", settings.to_string());
    assert!(!asks(&world, "call f__count --ask --config llxprt:settings.json"));
    let heard = fs::read_to_string(&trace).unwrap();
    assert!(heard.contains(r#""name":"count""#), "{heard}");
    assert!(!heard.contains("f__count"), "{heard}");
}

#[test]
fn what_a_person_saves_becomes_a_rule_and_the_rest_of_the_file_stays() {
    let world = world();
    let before = config(&world);
    assert_eq!(choose(&world, 2), 0);
    assert_eq!(config(&world), format!("{before}\n[permissions]\nallow = [\"f__count\"]\n"));
    assert!(!asks(&world, CALL));
}

#[test]
fn a_rule_that_asks_offers_nothing_that_lasts() {
    let world = world();
    let before = config(&world);
    world.write_user_config(&format!("[permissions]\nask = [\"f__count\"]\n\n{before}"));
    let mut terminal = Terminal::start(&world, CALL);
    terminal.wait_for("cancel");
    assert!(terminal.screen().contains("permissions.ask: f__count"), "{}", terminal.screen());
    assert!(!terminal.screen().contains("from now on"), "{}", terminal.screen());
    terminal.press("\r");
    assert_eq!(terminal.end(), 0);
    assert!(asks(&world, CALL));
}

#[test]
fn without_a_terminal_nobody_is_asked_and_nothing_runs() {
    let world = world();
    for words in [vec!["call", "f__count", "--ask"], vec!["read", "@f:fixture://greeting", "--ask"]]
    {
        let ended = world.capstan(words).run();
        assert_eq!(ended.status, Some(6), "{}", ended.stderr);
        assert!(ended.stderr.contains("permissions.default: ask"), "{}", ended.stderr);
        assert!(ended.stderr.contains("to `allow` under `[permissions]`"), "{}", ended.stderr);
        assert_eq!(last_approval(&world), "nobody");
    }
}

#[test]
fn whoever_watches_a_gateway_is_asked_about_each_call() {
    let world = world();
    let mut command = world.capstan(["serve"]).into_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut gateway = command.spawn().unwrap();
    let mut stdin = gateway.stdin.take().unwrap();
    let mut stdout = BufReader::new(gateway.stdout.take().unwrap()).lines().map_while(Result::ok);
    let params = json!({
        "protocolVersion": "2025-06-18",
        "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "test", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    writeln!(stdin, "{hello}").unwrap();
    assert!(stdout.next().unwrap().contains("protocolVersion"));
    let mut terminal = Terminal::start(&world, "approvals watch");
    terminal.wait_for("waiting for questions");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "f__count" },
    });
    writeln!(stdin, "{call}").unwrap();
    terminal.wait_for("`f__count` (write, permissions.default: ask-writes)");
    terminal.wait_for("cancel (it stays open)");
    terminal.press("\r");
    terminal.wait_for("it runs now");
    assert!(stdout.any(|line| line.contains(r#""id":1,"result""#)));
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 130);
    drop(stdin);
    assert!(gateway.wait().unwrap().success());
}

#[test]
fn who_types_no_means_no() {
    for typed in ["n", "no", "NO", "c"] {
        let world = world();
        let mut terminal = Terminal::start(&world, CALL);
        terminal.wait_for("Run it?");
        terminal.wait_for("cancel");
        terminal.press(&format!("{typed}\r"));
        assert_eq!(terminal.end(), 6, "{typed}: {}", terminal.screen());
        assert_eq!(last_approval(&world), "refused", "{typed}");
    }
}
