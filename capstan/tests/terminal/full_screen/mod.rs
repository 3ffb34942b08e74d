//! The conversation on the whole screen: answers, dialogs, keys, sizes, and the way back to the shell.

mod dialogs;
mod overlay;

use std::fs;

use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelStep, StepEnd};
use capstan_testkit::{World, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{LIMIT, Terminal, world};

/// The keys that leave a conversation.
const QUIT: &str = "/quit\r";

/// Starts a conversation with the model of an API.
fn start(world: &World, api: &ModelApi, words: &str) -> Terminal {
    start_sized(world, api, words, (24, 80))
}

fn start_sized(world: &World, api: &ModelApi, words: &str, size: (u16, u16)) -> Terminal {
    let url = format!("{}/v1", api.url());
    let variables = [
        ("TERM", "xterm-256color"),
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_API_KEY", MODEL_KEY),
    ];
    let terminal =
        Terminal::start_sized(world, &format!("--model openai/m {words}"), &variables, size);
    terminal.wait_for("a message, / for commands");
    terminal
}

/// The rows of the screen without blanks at their ends.
fn shown(terminal: &Terminal) -> String {
    let screen = terminal.screen();
    screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Takes a snapshot of the screen once all of these stand on it.
#[track_caller]
fn snapshot(world: &World, terminal: &Terminal, name: &str, pieces: &[&str]) {
    for piece in pieces {
        terminal.wait_for(piece);
    }
    let mut settings = world.snapshots();
    // Times are those of this machine.
    // They are shown after a second, and durations are replaced before.
    settings.add_filter(r"◐ (\d+ s|\[DURATION\])", "◐");
    settings.add_filter(r"(working|thinking) (\d+ s|\[DURATION\])", "$1");
    settings.bind(|| insta::assert_snapshot!(name, shown(terminal)));
}

const MARKDOWN: &str = "# Counting\n\nThere are **two** ways:\n\n1. by hand\n2. with `count`\n\n\
    | way | speed |\n|---|---|\n| by hand | slow |\n| count | fast |\n\n\
    ```rust\nlet n = 2; // so many\n```\n\nSee [the page](https://example.com/count).";

#[test]
fn capstan_alone_opens_a_conversation_that_has_several_turns_and_can_be_continued() {
    let world = world();
    let api = ModelApi::start(["Hello, Ada.", "You are Ada.", "Still Ada."].map(ModelStep::text));
    let mut terminal = start(&world, &api, "");
    terminal.wait_for("You talk to openai/m.");
    terminal.press("I am Ada\r");
    terminal.wait_for("Hello, Ada.");
    terminal.press("Who am I?\r");
    terminal.wait_for("You are Ada.");
    terminal.press("/cost\r");
    terminal.wait_for("34 tokens read (10 of them from a cache), 40 tokens written");
    terminal.press("/export talk.md\r");
    terminal.wait_for("wrote talk.md");
    let exported = fs::read_to_string(world.project().join("talk.md")).unwrap();
    assert!(exported.contains("## You\n\nWho am I?\n"), "{exported}");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.screen().contains("Ada"), "the shell's screen comes back");
    let mut terminal = start(&world, &api, "--continue");
    // The conversation is shown again.
    terminal.wait_for("› Who am I?");
    terminal.wait_for("You are Ada.");
    terminal.press("And now?\r");
    terminal.wait_for("Still Ada.");
    assert_eq!(api.requests()[2].body["messages"].as_array().unwrap().len(), 6);
    assert!(wait_until(|| !terminal.screen().contains("Esc stops"), LIMIT));
    // Ctrl-C where nothing runs and nothing is typed ends the conversation.
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn an_answer_in_markdown_is_laid_out_at_every_size() {
    for (name, size) in [("markdown_80x24", (24, 80)), ("markdown_160x50", (50, 160))] {
        let world = world();
        let api = ModelApi::start([ModelStep::text(MARKDOWN)]);
        let mut terminal = start_sized(&world, &api, "", size);
        terminal.wait_for("1 of 1 servers");
        terminal.press("How do I count?\r");
        terminal.wait_for("example.com/count");
        snapshot(&world, &terminal, name, &["17 in, 20 out", "a message, / for commands"]);
        if size == (24, 80) {
            terminal.resize(12, 40);
            // It is cut at the narrow size.
            let cut = wait_until(|| !terminal.screen().contains("and resources"), LIMIT);
            assert!(cut, "{}", terminal.screen());
        }
    }
}

#[test]
fn a_call_shows_its_result_and_its_progress() {
    let world = world();
    let api = ModelApi::start([
        ModelStep::calls([
            ("f__progress", json!({ "steps": 3 })),
            ("f__add", json!({"a":1,"b":2})),
        ]),
        ModelStep::text("Done with both."),
    ]);
    let mut terminal = start(&world, &api, "--allow f__*");
    terminal.press("go\r");
    terminal.wait_for("✓ f__progress {\"steps\":3}");
    terminal.wait_for("✓ f__add");
    terminal.wait_for("Done with both.");
    assert!(api.requests()[1].body.to_string().contains("\"3\""), "the result of the sum");
}

#[test]
fn escape_stops_an_answer_and_the_conversation_goes_on() {
    let world = world();
    let hang = ModelStep { end: StepEnd::Hang, ..ModelStep::text("thinking about it") };
    let api = ModelApi::start([hang, ModelStep::text("Gladly.")]);
    let mut terminal = start(&world, &api, "");
    terminal.press("think\r");
    terminal.wait_for("thinking about it");
    terminal.wait_for("Esc stops");
    terminal.press("\u{1b}");
    terminal.wait_for("stopped");
    assert!(api.wait_for_hang_up());
    terminal.press("something else, please\r");
    terminal.wait_for("Gladly.");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_call_that_is_stopped_is_cancelled_at_its_server() {
    let world = world();
    let trace = world.home().join("trace");
    let heard = || fs::read_to_string(&trace).unwrap_or_default();
    let api =
        ModelApi::start([ModelStep::calls([("f__hang", json!({}))]), ModelStep::text("It hangs.")]);
    let mut terminal = start(&world, &api, "--allow f__hang");
    terminal.press("hang\r");
    assert!(wait_until(|| heard().contains("tools/call"), LIMIT), "{}", heard());
    terminal.wait_for("◐ f__hang");
    terminal.press("\u{1b}");
    terminal.wait_for("– f__hang");
    assert!(wait_until(|| heard().contains("notifications/cancelled"), LIMIT), "{}", heard());
    // The model hears that the result is missing.
    terminal.press("what happened?\r");
    terminal.wait_for("It hangs.");
    assert!(api.requests()[1].body.to_string().contains("The result was not awaited"));
}

#[test]
fn messages_have_several_lines_a_history_and_folded_pastes() {
    let world = world();
    let api = ModelApi::start(["one", "two", "three"].map(ModelStep::text));
    let mut terminal = start(&world, &api, "");
    // Alt-Enter, and a backslash before Enter.
    terminal.press("first\u{1b}\rsecond\\\rthird\r");
    terminal.wait_for("one");
    let sent = |at: usize| api.requests()[at].body.to_string();
    assert!(sent(0).contains(r"first\nsecond\nthird"), "{}", sent(0));
    let pasted = (1..=30).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\r\n");
    terminal.press(&format!("\u{1b}[200~{pasted}\u{1b}[201~ please"));
    terminal.wait_for("› [pasted text 1: 30 lines] please");
    terminal.press("\r");
    terminal.wait_for("two");
    assert!(sent(1).contains(r"line 29\nline 30 please"), "{}", sent(1));
    // Two lines back in the history.
    terminal.press("\u{1b}[A");
    terminal.press("\u{3}");
    terminal.press("again\r");
    terminal.wait_for("three");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
}

/// C74, C75 in part: commands, prompts and files are completed while they are typed.
#[test]
fn commands_and_files_are_completed() {
    let world = world();
    fs::write(world.project().join("notes.txt"), "Ada was here").unwrap();
    let api = ModelApi::start([ModelStep::text("I see.")]);
    let mut terminal = start(&world, &api, "");
    terminal.press("/mo");
    terminal.wait_for("show or change the model");
    terminal.press("\t");
    terminal.wait_for("› /model");
    terminal.press("\r");
    terminal.wait_for("You talk to openai/m.");
    terminal.press("read @not");
    terminal.wait_for("@notes.txt");
    terminal.wait_for("file");
    terminal.press("\t\r");
    terminal.wait_for("I see.");
    assert!(api.requests()[0].body.to_string().contains("Ada was here"));
}

#[test]
fn a_signal_ends_the_conversation_and_the_shell_gets_its_terminal_back() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let world = world();
        let api = ModelApi::start([]);
        let shell = Terminal::start(&world, "--version");
        let before = shell.master.get_termios().unwrap().local_flags;
        let mut terminal = start(&world, &api, "");
        assert_ne!(terminal.master.get_termios().unwrap().local_flags, before);
        let pid = i32::try_from(terminal.child.process_id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        assert_eq!(terminal.end(), 130);
        let settings = terminal.master.get_termios().unwrap();
        assert_eq!(settings.local_flags, before, "{signal:?}");
        let written = terminal.written();
        assert!(written.contains("\u{1b}[?1049l"), "the other screen is left");
        assert!(written.contains("\u{1b}[?2004l"), "pastes are as before");
    }
}

#[test]
fn escapes_of_a_model_or_a_server_stay_in_their_place() {
    let world = world();
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{1b}[1;1Hevil\u{202e}\u{9b}2J";
    let api = ModelApi::start([
        ModelStep::calls([("f__echo", json!({ "message": evil }))]),
        ModelStep::text(&format!("It said {evil}.")),
    ]);
    let mut terminal = start(&world, &api, "--allow *");
    terminal.press("echo\r");
    terminal.wait_for("It said");
    terminal.wait_for("a message, / for commands");
    let first = shown(&terminal).lines().next().unwrap_or_default().to_owned();
    assert!(first.contains("You talk to openai/m."), "{first}");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
    let written = terminal.written();
    for part in ["\u{1b}]52", "\u{1b}[2J\u{1b}[1;1Hevil", "\u{202e}", "\u{9b}"] {
        assert!(!written.contains(part), "{part:?}");
    }
}

#[test]
fn without_colours_only_weight_and_brightness_are_used() {
    let world = world();
    let api = ModelApi::start([ModelStep::text(MARKDOWN)]);
    let url = format!("{}/v1", api.url());
    let variables = [
        ("TERM", "xterm-256color"),
        ("NO_COLOR", "1"),
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_API_KEY", MODEL_KEY),
    ];
    let mut terminal = Terminal::start_with(&world, "--model openai/m", &variables);
    terminal.wait_for("a message, / for commands");
    terminal.press("hi\r");
    terminal.wait_for("example.com/count");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
    let written = terminal.written();
    let colours = (30..38).chain(90..98).map(|number| format!("\u{1b}[{number}m"));
    for colour in colours.chain(["\u{1b}[38;5;".to_owned()]) {
        assert!(!written.contains(&colour), "{colour:?}");
    }
}

/// C16, and a conversation without a model: commands work, messages say what is missing.
#[test]
fn c16_without_servers_and_without_a_model_commands_work() {
    let world = world();
    let mut terminal = Terminal::start(&world, "--no-mcp");
    terminal.wait_for("no model is chosen");
    terminal.wait_for("no servers");
    terminal.press("hello\r");
    terminal.wait_for("use `--model PROVIDER/NAME`");
    terminal.press("/mcp\r");
    terminal.wait_for("servers are disabled by `--no-mcp`");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
    assert!(!world.home().join("trace").exists(), "no server was started");
    let mut terminal = Terminal::start(&world, "");
    terminal.wait_for("1 of 1 servers");
    terminal.press("/call f__add a=1 b=2\r");
    terminal.wait_for("\n3");
    terminal.press("/mcp list\r");
    terminal.wait_for("Discovery: the tools of 1 of 1 servers are known");
    terminal.press("\u{4}");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_person_who_wants_it_talks_line_by_line() {
    let world = world();
    let api = ModelApi::start([]);
    for (words, variable) in [("--plain", ("X", "")), ("", ("CAPSTAN_PLAIN", "1"))] {
        let url = format!("{}/v1", api.url());
        let variables = [
            ("TERM", "xterm-256color"),
            variable,
            ("OPENAI_BASE_URL", url.as_str()),
            ("OPENAI_API_KEY", MODEL_KEY),
        ];
        let words = format!("chat --model openai/m {words}");
        let mut terminal = Terminal::start_with(&world, &words, &variables);
        terminal.wait_for("? You:");
        assert!(!terminal.written().contains("\u{1b}[?1049h"));
        terminal.press(QUIT);
        assert_eq!(terminal.end(), 0);
    }
}
