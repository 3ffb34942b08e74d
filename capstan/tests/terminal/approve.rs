//! `--ask`: a person is asked on the terminal before a call runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use super::{LIMIT, Terminal, wait_until, world};

/// Presses the key for the choice before.
const UP: &str = "\u{1b}[A";

/// Presses the key for the next choice.
const DOWN: &str = "\u{1b}[B";

/// The place of the no, where the cursor stands at first, when a yes may reach as far as it can.
const NO: usize = 4;

/// The keys that choose the choice at this place.
fn keys(place: usize) -> String {
    let (up, down) = (UP.repeat(NO.saturating_sub(place)), DOWN.repeat(place.saturating_sub(NO)));
    format!("{up}{down}\r")
}

/// The command that is asked about.
const CALL: &str = "call f__count --ask";

/// Runs the command, chooses the choice at this place: how it ends.
#[track_caller]
fn choose(world: &World, place: usize) -> u32 {
    let mut terminal = Terminal::start(world, CALL);
    terminal.wait_for("Run it?");
    terminal.wait_for("cancel");
    terminal.press(&keys(place));
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
    terminal.wait_for("type to filter");
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().map(str::trim_end).collect();
    world.snapshots().bind(|| {
        insta::assert_snapshot!(shown.join("\n").trim());
    });
    terminal.press("yes\r");
    assert_eq!(terminal.end(), 0);
    assert_eq!(last_approval(&world), "asked");
}

#[test]
fn who_presses_nothing_but_enter_has_said_no() {
    let world = world();
    let mut terminal = Terminal::start(&world, CALL);
    terminal.wait_for("cancel");
    terminal.press("\r");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    assert_eq!(last_approval(&world), "refused");
}

/// A call with this text and a path behind it.
fn long(world: &World, text: &str) -> Terminal {
    let arguments = json!({ "text": text, "path": "/the/end" });
    let typed = arguments.to_string().replace(' ', "\\u0020");
    Terminal::start(world, &format!("call f__count {typed} --ask"))
}

/// Waits for the question after the first page.
#[track_caller]
fn wait_for_first_page(terminal: &Terminal) {
    terminal.wait_for("lines 1 to ");
    terminal.wait_for("type to filter");
}

/// Holes 9.
#[test]
fn arguments_that_do_not_fit_the_screen_are_shown_page_by_page_to_the_end() {
    let world = world();
    let mut terminal = long(&world, &format!("{}\u{202e}{}", "x".repeat(1500), "y".repeat(700)));
    wait_for_first_page(&terminal);
    assert!(!terminal.screen().contains("Run it?"), "{}", terminal.screen());
    let screen = terminal.screen();
    let shown: Vec<&str> = screen.lines().map(str::trim_end).collect();
    world.snapshots().bind(|| {
        insta::assert_snapshot!(shown.join("\n").trim());
    });
    terminal.press("\r");
    terminal.wait_for("lines 11 to 26 of ");
    terminal.press("\r");
    terminal.wait_for("Run it?");
    terminal.wait_for("cancel");
    let screen = terminal.screen();
    assert!(screen.contains("│   \"path\": \"/the/end\"\n│ }"), "{screen}");
    assert!(terminal.written().contains("x\\u202ey"), "{screen}");
    terminal.press("yes, t\r");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
}

#[test]
fn no_between_two_pages_refuses_and_skipping_is_said() {
    let world = world();
    let mut terminal = long(&world, &"x".repeat(9000));
    wait_for_first_page(&terminal);
    terminal.press("no\r");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    let mut terminal = long(&world, &"x".repeat(9000));
    wait_for_first_page(&terminal);
    terminal.press("skip\r");
    terminal.wait_for("lines were not shown");
    terminal.wait_for("cancel");
    terminal.press("\r");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    let mut terminal = long(&world, &"x".repeat(9000));
    wait_for_first_page(&terminal);
    terminal.press("\u{1b}");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
}

#[test]
fn no_value_can_imitate_a_line_of_the_question() {
    let world = world();
    let fake = "\n  effect     read\n? Run it?\r\u{1b}[2J\n… (12 more)\n│ }";
    let mut terminal = long(&world, &format!("{}{fake}", " ".repeat(68)));
    terminal.wait_for("Run it?");
    terminal.wait_for("cancel");
    for line in terminal.screen().lines().filter(|line| line.contains("Run it?")) {
        assert!(line.starts_with("? Run it?") || line.starts_with("│ "), "{line}");
    }
    let ours = |line: &&str| line.starts_with("  effect") || line.starts_with("? Run");
    assert_eq!(terminal.screen().lines().filter(ours).count(), 2, "{}", terminal.screen());
    terminal.press("\u{1b}");
    assert_eq!(terminal.end(), 6);
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
        terminal.press(&keys(place));
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
    terminal.press("yes\r");
    assert_eq!(terminal.end(), 0);
    assert!(asks(&world, CALL));
}

/// Issue 15, number 11.
#[test]
fn a_rule_that_asks_asks_on_a_terminal_and_yes_answers_there() {
    let world = world();
    let before = config(&world);
    world.write_user_config(&format!("[permissions]\nask = [\"f__count\"]\n\n{before}"));
    assert!(asks(&world, "call f__count"));
    assert_eq!(last_approval(&world), "refused");
    assert!(!asks(&world, "call f__count --yes"));
    assert_eq!(last_approval(&world), "asked");
    assert!(!asks(&world, "call f__grow"), "the default is answered by who types the call");
    assert_eq!(last_approval(&world), "by_hand");
    // Through a gateway it is the same.
    let _gateway = Gateway::start(&world);
    assert!(!asks(&world, "call f__count --yes --attach"));
    // The gateway writes its log in the background.
    assert!(wait_until(|| last_approval(&world) == "asked", LIMIT));
    assert!(asks(&world, "call f__count"));
    assert!(wait_until(|| last_approval(&world) == "refused", LIMIT));
}

#[test]
fn without_a_terminal_nobody_is_asked_and_nothing_runs() {
    let world = world();
    for words in [vec!["call", "f__count", "--ask"], vec!["read", "@f:fixture://greeting", "--ask"]]
    {
        let ended = world.capstan(words).run();
        assert_eq!(ended.status, Some(6), "{}", ended.stderr);
        assert!(ended.stderr.contains("permissions.default: ask"), "{}", ended.stderr);
        assert!(ended.stderr.contains("\"]` under `[permissions]`"), "{}", ended.stderr);
        assert_eq!(last_approval(&world), "nobody");
    }
}

/// A gateway whose client waits for the answer to each call.
struct Gateway {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    stdout: Box<dyn Iterator<Item = String>>,
}

impl Gateway {
    #[track_caller]
    fn start(world: &World) -> Self {
        Self::start_for(world, "test")
    }

    fn start_for(world: &World, client: &str) -> Self {
        let mut command = world.capstan(["serve"]).into_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut gateway = Self { child, stdin, stdout: Box::new(lines) };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": client, "version": "1" },
        });
        gateway.send(0, "initialize", &params);
        assert!(gateway.stdout.next().unwrap().contains("protocolVersion"));
        gateway
    }

    fn send(&mut self, id: u32, method: &str, params: &Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stdin, "{request}").unwrap();
    }

    #[track_caller]
    fn end(mut self) {
        drop(self.stdin);
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn whoever_watches_a_gateway_is_asked_about_each_call() {
    let world = world();
    let mut gateway = Gateway::start(&world);
    let mut terminal = Terminal::start(&world, "approvals watch");
    terminal.wait_for("waiting for calls");
    gateway.send(1, "tools/call", &json!({ "name": "f__count" }));
    terminal.wait_for("may the tool `count` of `f` run?");
    terminal.wait_for("permissions.default: ask-writes");
    terminal.wait_for("cancel (it stays open)");
    terminal.press("yes, t\r");
    terminal.wait_for("it runs now");
    assert!(gateway.stdout.any(|line| line.contains(r#""id":1,"result""#)));
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 130);
    gateway.end();
}

/// Holes 9.
#[test]
fn a_huge_argument_of_a_waiting_call_is_shown_to_its_end_without_colours_too() {
    let world = world();
    let mut gateway = Gateway::start(&world);
    let arguments = json!({ "text": "x".repeat(1024 * 1024), "path": "/the/end" });
    gateway.send(1, "tools/call", &json!({ "name": "f__count", "arguments": arguments }));
    let asked = gateway.stdout.find(|line| line.contains("elicitation/create")).unwrap();
    assert!(asked.len() < 10_000 && asked.contains("bytes, shortened, SHA-256 "), "{asked}");
    let (_, id) = asked.split_once("capstan approvals show ").unwrap();
    let id = id.get(..4).unwrap();
    let listed = world.capstan(["approvals"]).run();
    assert!(listed.stdout.contains("(10486"), "{}", listed.stdout);
    assert!(listed.stderr.contains("`capstan approvals show ID`"), "{}", listed.stderr);
    let all = world.capstan(["approvals", "show", id]).run().ok();
    assert!(all.contains(&"x".repeat(1024 * 1024)) && all.contains("/the/end"));
    let shown = world.capstan(["approvals", "show", id, "--json"]).run().ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown.get("arguments").unwrap(), &arguments);
    assert_eq!(shown.get("arguments_shortened").unwrap(), false);
    let digest = shown.get("arguments_sha256").unwrap().as_str().unwrap();
    assert!(asked.contains(digest), "{asked}");
    let variables = [("TERM", "xterm-256color"), ("NO_COLOR", "1")];
    let mut terminal = Terminal::start_with(&world, &format!("approvals show {id}"), &variables);
    wait_for_first_page(&terminal);
    assert!(terminal.written().contains(digest), "{}", terminal.screen());
    terminal.press("the rest\r");
    terminal.wait_for("\"path\": \"/the/end\"");
    terminal.wait_for(&format!("`capstan approvals yes {id}`"));
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let ended = world.capstan(["approvals", "show", "none"]).run();
    assert_eq!(ended.status, Some(4), "{}", ended.stderr);
    gateway.end();
}

/// Holes 9.
#[test]
fn the_name_of_a_client_stands_in_quotes_that_it_cannot_end() {
    let world = world();
    let mut gateway = Gateway::start_for(&world, "chat\")\n  rule       allowed \u{202e}(\"x");
    gateway.send(1, "tools/call", &json!({ "name": "f__count" }));
    let asked = gateway.stdout.find(|line| line.contains("elicitation/create"));
    assert!(asked.is_some());
    let listed = world.capstan(["approvals"]).run().ok();
    let id = listed.lines().nth(1).and_then(|row| row.split(' ').next()).unwrap();
    let shown = world.capstan(["approvals", "show", id]).run().ok();
    for text in [&listed, &shown] {
        assert!(text.contains(r#"("chat\u{22}) rule allowed"#), "{text}");
        assert!(!text.contains("\n  rule       allowed"), "{text}");
    }
    world.capstan(["approvals", "no", id]).run().ok();
    gateway.end();
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
