//! Dialogs on the whole screen: approvals of calls and questions of servers.

use capstan_testkit::World;
use capstan_testkit::model_api::{ModelApi, ModelStep};
use serde_json::json;

use super::{QUIT, snapshot, start, start_sized, world};

fn count(arguments: serde_json::Value) -> [ModelStep; 2] {
    [ModelStep::calls([("f__count", arguments)]), ModelStep::text("That is all.")]
}

fn elicit() -> [ModelStep; 2] {
    [ModelStep::calls([("f__elicit", json!({}))]), ModelStep::text("Thank you.")]
}

#[test]
fn a_call_is_confirmed_with_all_that_matters_in_sight() {
    for (name, size) in [("confirm_80x24", (24, 80)), ("confirm_160x50", (50, 160))] {
        let world = world();
        let api = ModelApi::start(count(json!({ "path": "a.txt", "token": "hunter2" })));
        let mut terminal = start_sized(&world, &api, "", size);
        terminal.wait_for("1 of 1 servers");
        terminal.press("count\r");
        terminal.wait_for("Run it?");
        snapshot(&world, &terminal, name, &["cancel", "↑↓ choose"]);
        terminal.press("\u{1b}");
        terminal.wait_for("That is all.");
    }
}

/// C61, CALL-6: the choices, with a no and a cancel; an answer reaches as far as it says.
#[test]
fn c61_each_choice_means_what_it_says() {
    for (keys, is_refused, asks_again) in [
        ("\r", true, true),
        ("cancel\r", true, true),
        ("yes, this once\r", false, true),
        ("yes, and `count` from\r", false, false),
    ] {
        let world = world();
        let steps = count(json!({})).into_iter().chain(count(json!({})));
        let api = ModelApi::start(steps);
        let mut terminal = start(&world, &api, "");
        terminal.press("count\r");
        terminal.wait_for("Run it?");
        terminal.press(keys);
        terminal.wait_for("That is all.");
        let refused = api.requests()[1].body.to_string().contains("The call was refused");
        assert_eq!(refused, is_refused, "{keys:?}");
        terminal.press("/new\r");
        terminal.wait_for("begins another conversation");
        terminal.press("count again\r");
        if asks_again {
            terminal.wait_for("Run it?");
            terminal.press("no\r");
        }
        terminal.wait_for("That is all.");
        terminal.press(QUIT);
        assert_eq!(terminal.end(), 0, "{keys:?}");
    }
}

#[test]
fn long_arguments_are_scrolled_to_their_end() {
    let world = world();
    let text = format!("{}\u{202e}\u{1b}[2Jend", "x".repeat(3000));
    let api = ModelApi::start(count(json!({ "text": text, "path": "/the/end" })));
    let mut terminal = start(&world, &api, "");
    terminal.press("count\r");
    terminal.wait_for("more rows below; PgDn scrolls");
    assert!(!terminal.screen().contains("/the/end"));
    for _ in 0..20 {
        terminal.press("\u{1b}[6~");
    }
    terminal.wait_for("\"path\": \"/the/end\"");
    assert!(terminal.screen().contains("Run it?"), "the question stays in sight");
    terminal.press("\u{1b}");
    terminal.wait_for("That is all.");
}

/// C15: a question of a server is a dialog, and is answered until it fits.
#[test]
fn c15_a_form_is_filled_in_and_checked() {
    for (name, size) in [("form_80x24", (24, 80)), ("form_160x50", (50, 160))] {
        let world = world();
        let api = ModelApi::start(elicit());
        let mut terminal = start_sized(&world, &api, "--allow f__elicit", size);
        terminal.wait_for("1 of 1 servers");
        terminal.press("ask me\r");
        terminal.wait_for("Answer `f`?");
        terminal.press("\r");
        terminal.wait_for("f › Name:");
        terminal.press(&format!("{}\r", "x".repeat(41)));
        terminal.wait_for("at most 40");
        terminal.press("Ada");
        snapshot(&world, &terminal, name, &["> Ada", "Enter answers"]);
        terminal.press("\r");
        terminal.wait_for("Thank you.");
        assert!(api.requests()[1].body.to_string().contains("Ada"));
    }
}

#[test]
fn a_question_that_is_closed_or_stopped_is_cancelled() {
    for (keys, told) in [("\u{1b}", "cancel"), ("decline\r", "decline")] {
        let world = world();
        let api = ModelApi::start(elicit());
        let mut terminal = start(&world, &api, "--allow f__elicit");
        terminal.press("ask me\r");
        terminal.wait_for("Answer `f`?");
        terminal.press(keys);
        terminal.wait_for("Thank you.");
        let sent = api.requests()[1].body.to_string();
        assert!(sent.contains(told), "{sent}");
    }
}

/// C18: a rule declines the question unseen; without it there is a dialog.
#[test]
fn c18_a_rule_declines_questions_unseen() {
    for (rule, is_seen) in [("deny = [\"Elicit(f)\"]", false), ("allow = [\"Elicit(f)\"]", true)] {
        let world = world();
        let config = std::fs::read_to_string(world.config().join("capstan/config.toml")).unwrap();
        world.write_user_config(&format!("{config}\n[permissions]\n{rule}\n"));
        let api = ModelApi::start(elicit());
        let mut terminal = start(&world, &api, "--allow f__elicit");
        terminal.press("ask me\r");
        if is_seen {
            terminal.wait_for("Answer `f`?");
            terminal.press("\u{1b}");
        }
        terminal.wait_for("Thank you.");
        let sent = api.requests()[1].body.to_string();
        assert!(sent.contains(if is_seen { "cancel" } else { "decline" }), "{sent}");
    }
}

#[test]
fn a_page_to_visit_shows_its_host_apart() {
    let world: World = world();
    let url = "https://bank.example@evil.example/login";
    let api = ModelApi::start([
        ModelStep::calls([("f__elicit", json!({ "url": url }))]),
        ModelStep::text("Thank you."),
    ]);
    let mut terminal = start(&world, &api, "--allow f__elicit");
    terminal.press("visit\r");
    terminal.wait_for("host: evil.example");
    terminal.wait_for("the text before the `@` is not the host");
    terminal.press("decline\r");
    terminal.wait_for("Thank you.");
}

/// A draft that is being written does not answer a question that opens meanwhile.
#[test]
fn a_draft_is_kept_while_a_dialog_is_open() {
    let world = world();
    let api = ModelApi::start(count(json!({})));
    let mut terminal = start(&world, &api, "");
    terminal.press("count\r");
    terminal.wait_for("Run it?");
    terminal.press("no\r");
    terminal.wait_for("That is all.");
    terminal.press("a draft");
    terminal.wait_for("› a draft");
    terminal.press("\u{3}");
    terminal.wait_for("Ctrl-C again ends");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
}
