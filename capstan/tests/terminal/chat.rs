//! A conversation line by line: typed lines, streamed answers, questions, Ctrl-C.

use capstan_testkit::World;
use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelStep, StepEnd};
use serde_json::json;

use rustix::process::{Pid, Signal, kill_process};

use super::{LIMIT, Terminal, wait_until, world};

fn start(world: &World, api: &ModelApi, words: &str) -> Terminal {
    let url = format!("{}/v1", api.url());
    let variables = [
        ("TERM", "xterm-256color"),
        ("OPENAI_BASE_URL", url.as_str()),
        ("OPENAI_API_KEY", MODEL_KEY),
    ];
    Terminal::start_with(world, &format!("chat --plain --model openai/m {words}"), &variables)
}

fn count() -> ModelStep {
    ModelStep { text: "Let me count.".to_owned(), ..ModelStep::calls([("f__count", json!({}))]) }
}

#[test]
fn a_conversation_has_several_turns_and_can_be_continued() {
    let world = world();
    let steps = ["Hello, Ada.", "Your name is Ada.", "Still Ada."].map(ModelStep::text);
    let api = ModelApi::start(steps);
    let mut terminal = start(&world, &api, "");
    terminal.wait_for("You talk to openai/m.");
    terminal.press("I am Ada\r");
    terminal.wait_for("Hello, Ada.");
    terminal.press("Who am I?\r");
    terminal.wait_for("Your name is Ada.");
    terminal.press("/cost\r");
    terminal.wait_for("34 tokens read (10 of them from a cache), 40 tokens written");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    assert_eq!(api.requests()[1].body["messages"].as_array().unwrap().len(), 4);
    let mut terminal = start(&world, &api, "--continue");
    terminal.press("And now?\r");
    terminal.wait_for("Still Ada.");
    // Ctrl-C where a line is typed ends the conversation.
    terminal.wait_for("? You:");
    terminal.press("\u{3}");
    assert_eq!(terminal.end(), 0);
    assert_eq!(api.requests()[2].body["messages"].as_array().unwrap().len(), 6);
}

#[test]
fn a_person_is_asked_before_a_call_and_a_no_is_told_to_the_model() {
    for (keys, told) in [("yes\r", "←"), ("no\r", "✗")] {
        let world = world();
        let api = ModelApi::start([count(), ModelStep::text("That is all.")]);
        let mut terminal = start(&world, &api, "");
        terminal.wait_for("/quit ends.");
        terminal.press("count\r");
        terminal.wait_for("→ f__count");
        terminal.wait_for("Run it?");
        terminal.wait_for("cancel");
        terminal.press(keys);
        terminal.wait_for(told);
        terminal.wait_for("That is all.");
        let is_refused = api.requests()[1].body.to_string().contains("The call was refused");
        assert_eq!(is_refused, told == "✗");
        terminal.press("/quit\r");
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn a_form_of_a_server_is_filled_in() {
    let world = world();
    let api = ModelApi::start([
        ModelStep::calls([("f__elicit", json!({}))]),
        ModelStep::text("Thank you."),
    ]);
    let mut terminal = start(&world, &api, "--allow f__elicit");
    terminal.wait_for("/quit ends.");
    terminal.press("ask me\r");
    terminal.wait_for("Answer `f`?");
    terminal.press("\r");
    terminal.wait_for("f › Name:");
    terminal.press("Ada\r");
    terminal.wait_for("Thank you.");
    assert!(api.requests()[1].body.to_string().contains("Ada"));
}

#[test]
fn ctrl_c_stops_an_answer_and_the_conversation_goes_on() {
    let world = world();
    let hang = ModelStep { end: StepEnd::Hang, ..ModelStep::text("thinking about it") };
    let api = ModelApi::start([hang, ModelStep::text("Gladly.")]);
    let mut terminal = start(&world, &api, "");
    terminal.wait_for("/quit ends.");
    terminal.press("think\r");
    terminal.wait_for("thinking about it");
    terminal.press("\u{3}");
    terminal.wait_for("stopped");
    assert!(api.wait_for_hang_up());
    terminal.press("something else, please\r");
    terminal.wait_for("Gladly.");
}

#[test]
fn ctrl_c_also_stops_a_command_and_sigterm_ends_everything() {
    let world = world();
    let api = ModelApi::start([]);
    let mut terminal = start(&world, &api, "");
    let modes = |terminal: &Terminal| terminal.master.get_termios().unwrap().local_flags;
    let before = modes(&terminal);
    terminal.wait_for("? You:");
    terminal.press("/call f__elicit\r");
    terminal.wait_for("Answer `f`?");
    terminal.press("\u{3}");
    terminal.wait_for("? You:");
    assert!(wait_until(|| modes(&terminal) != before, LIMIT), "no key is waited for");
    let pid = i32::try_from(terminal.child.process_id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert_eq!(terminal.end(), 130);
    assert_eq!(modes(&terminal), before, "the shell would not show what is typed");
}

#[test]
fn escapes_of_a_model_or_a_server_do_not_reach_the_terminal() {
    let world = world();
    let evil = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{202e}evil";
    let api = ModelApi::start([
        ModelStep::calls([("f__echo", json!({ "message": evil }))]),
        ModelStep::text(&format!("It said {evil}.")),
    ]);
    let mut terminal = start(&world, &api, "--allow *");
    terminal.wait_for("/quit ends.");
    terminal.press("echo\r");
    terminal.wait_for("It said");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let written = terminal.written();
    for part in ["\u{1b}]52", "\u{1b}[2J", "\u{202e}"] {
        assert!(!written.contains(part), "{part:?}");
    }
}

#[test]
fn without_a_model_commands_work_and_messages_say_what_is_missing() {
    let world = world();
    let mut terminal = Terminal::start(&world, "chat --plain");
    terminal.wait_for("no model is chosen");
    terminal.wait_for("/quit ends.");
    terminal.press("/mcp list\r");
    terminal.wait_for("Discovery:");
    terminal.press("hello\r");
    terminal.wait_for("use `--model PROVIDER/NAME`");
    terminal.press("/quit\r");
    assert_eq!(terminal.end(), 0);
    let ended = world.capstan(["chat"]).run();
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("a conversation needs a terminal"), "{}", ended.stderr);
}
