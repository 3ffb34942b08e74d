//! Questions of servers where no person can be asked: from defaults, from a file, or no.

use capstan_testkit::{Ended, World};

use crate::stage::{ends_with, failure, fixture, json, legacy, modern, run, says, with};

/// A world with a server of each era.
#[track_caller]
fn both_eras() -> World {
    let world = with(&format!("{}\n{}", legacy("old"), modern("new")));
    world.write("project/ada.json", r#"{"name":"Ada","other":1}"#);
    world.write("project/long.json", format!(r#"{{"name":"{}"}}"#, "x".repeat(41)));
    world.write("project/list.json", "[1]");
    world.write("project/broken.json", "{");
    world
}

/// What the server heard, as it tells.
#[track_caller]
fn heard(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[track_caller]
fn check(words: &str, expected: &serde_json::Value, stderr: &str) {
    let world = both_eras();
    for server in ["old", "new"] {
        let ended = run(&world, &format!("call {server}__elicit {words}"));
        let ended = ends_with(ended, 0);
        assert_eq!(heard(&ended), *expected, "{server}");
        says(&ended.stderr, stderr);
    }
}

#[test]
fn without_a_person_a_question_is_declined_and_told() {
    let declined = serde_json::json!({ "action": "decline" });
    check("", &declined, "asked: Who are you?");
    check("", &declined, "`--elicit FILE.json`");
    check("--elicit decline", &declined, "declined: questions are declined");
}

#[test]
fn a_file_answers() {
    let accepted = serde_json::json!({ "action": "accept", "content": { "name": "Ada" } });
    check("--elicit ada.json", &accepted, "");
}

#[test]
fn what_breaks_the_rules_of_the_form_declines_and_says_why() {
    let declined = serde_json::json!({ "action": "decline" });
    check("--elicit defaults", &declined, "not every field has a default");
    check("--elicit long.json", &declined, "has 41 characters; at most 40");
    check("--elicit list.json", &declined, "not a JSON object");
}

#[test]
fn a_visit_is_never_made_without_a_person() {
    let declined = serde_json::json!({ "action": "decline" });
    check("url=https://example.com --elicit ada.json", &declined, "Please visit");
    check("url=https://example.com --elicit defaults", &declined, "declined");
}

#[test]
fn an_answer_that_cannot_be_given_stops_before_the_call() {
    let world = both_eras();
    for (word, message) in [
        ("ask", "needs a terminal"),
        ("nowhere.json", "cannot read `nowhere.json`"),
        ("broken.json", "`broken.json` is not valid JSON"),
    ] {
        let ended = ends_with(run(&world, &format!("call old__elicit --elicit {word} --json")), 2);
        says(&failure(&ended).1, message);
    }
    assert!(!world.state().join("capstan/audit.jsonl").exists());
}

#[test]
fn c18_a_rule_can_forbid_questions_unseen() {
    let rules = "[permissions]\nallow = [\"*\"]\ndeny = [\"Elicit(old)\"]\n\n";
    let world = with(&format!("{rules}{}\n{}", legacy("old"), modern("new")));
    world.write("project/ada.json", r#"{"name":"Ada"}"#);
    let ended = ends_with(run(&world, "call old__elicit --elicit ada.json"), 0);
    assert_eq!(heard(&ended)["action"], "decline");
    assert!(!ended.stderr.contains("Who are you"), "{}", ended.stderr);
    let ended = ends_with(run(&world, "call new__elicit --elicit ada.json"), 0);
    assert_eq!(heard(&ended)["action"], "accept");
}

#[test]
fn a_server_that_may_not_ask_is_told_so_at_the_start() {
    let off =
        |name: &str, era: &str| format!("{}elicitation = false\n", fixture(name, &["--era", era]));
    let sandboxed = format!(
        "{}trust = \"sandboxed\"\nexpose = [\"elicit\"]\n",
        fixture("boxed", &["--era", "legacy"])
    );
    let world = with(&[off("old", "legacy"), off("new", "modern"), sandboxed].join("\n"));
    for server in ["old", "boxed"] {
        let ended = ends_with(run(&world, &format!("call {server}__elicit")), 1);
        says(&ended.stdout, "the client has no elicitation");
    }
    let ended = ends_with(run(&world, "call new__elicit --json"), 1);
    assert_eq!(json(&ended)["error"]["code"], "server_error");
}
