//! `capstan acl check`: what a caller of the gateway may do.

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{column, ends_with, failure, fixture, json as parsed, ok_json, run, says, with};

fn world() -> World {
    with(&format!(
        "[permissions]\ndeny = [\"*crash*\", \"f:demo://secret*\", \"f:greet\"]\n\
         default = \"ask-writes\"\n\n{}effect = {{ read = [\"echo\"] }}\n",
        fixture("f", &[])
    ))
}

/// What is decided: verdict, rule, access.
#[track_caller]
fn check(words: &str, code: i32, expected: [&str; 3]) {
    let ended = ends_with(run(&world(), &format!("acl check --server f {words} --json")), code);
    let shown = parsed(&ended);
    let said = json!([shown["verdict"], shown["rule"], shown["effect"]]);
    assert_eq!(said, json!(expected), "{words}");
}

#[test]
fn tools_resources_and_prompts_are_checked_alike() {
    let (default, crash) = ("permissions.default: ask-writes", "permissions.deny: *crash*");
    check("--subject bob --tool echo", 0, ["allow", default, "read"]);
    check("--subject bob --tool count", 0, ["ask", default, "write"]);
    check("--subject bob --tool crash", 6, ["deny", crash, "write"]);
    check("--role dev --tool count --access read", 0, ["allow", default, "read"]);
    check("--role dev --role ops --tool echo --access write", 0, ["ask", default, "write"]);
    check("--subject bob --resource file:///x", 0, ["allow", default, "read"]);
    let secret = "permissions.deny: f:demo://secret*";
    check("--subject bob --resource demo://secret/1", 6, ["deny", secret, "read"]);
    check("--subject bob --prompt hello", 0, ["allow", default, "read"]);
    check("--subject bob --prompt greet", 6, ["deny", "permissions.deny: f:greet", "read"]);
}

#[test]
fn a_person_sees_the_rules_and_who_it_is_about() {
    let words = "acl check --server f --subject bob --role dev --tool echo";
    let ended = ends_with(run(&world(), words), 0);
    insta::assert_snapshot!(ended.stdout, @"
    ENGINE       SAYS   RULE
    exposure     -      servers.f: offered
    permissions  -      permissions.deny: *crash*
    permissions  -      permissions.deny: f:demo://secret*
    permissions  -      permissions.deny: f:greet
    permissions  allow  permissions.default: ask-writes

    f__echo for `bob` with `dev`: allow by `permissions.default: ask-writes` (access read)
    ");
}

#[test]
fn a_role_that_is_not_there_is_told_of() {
    let access = "[access]\ndefault = \"deny\"\n[access.roles]\ndev = [{ server = \"*\", access = \"read\" }]\n\n";
    let world = with(&format!("{access}{}", fixture("f", &[])));
    for words in ["acl check --server f --role dve --tool echo", "why --role dve f__echo"] {
        let ended = ends_with(run(&world, words), 6);
        says(&ended.stderr, "there is no role `dve`");
        says(&ended.stderr, "the roles are dev");
    }
    let ended = run(&world, "acl check --server f --role dev --tool echo");
    assert!(!ended.stderr.contains("there is no role"), "{}", ended.stderr);
}

#[test]
fn every_tool_can_be_checked_at_once_and_that_is_no_failure() {
    let shown = ok_json(&world(), "acl check --server f --role dev --all-tools");
    let verdicts = column(&shown, "verdict");
    let at = column(&shown, "item").iter().position(|item| item == "crash").unwrap();
    assert_eq!((verdicts[at].as_str(), shown[at]["subject"].as_str()), ("deny", Some("__check__")));
    let ended = ends_with(run(&world(), "acl check --server f --role dev --all-tools"), 0);
    says(&ended.stdout, "f__crash");
    let json = run(&world(), "acl check --server f --role dev --tool echo --format json");
    assert_eq!(parsed(&ends_with(json, 0))["roles"], json!(["dev"]));
}

#[test]
fn a_server_that_does_not_start_is_judged_by_what_is_written() {
    let world = with("[servers.f]\ncommand = \"/nonexistent\"\neffect = { read = [\"get_*\"] }\n");
    for (tool, effect, verdict) in [("get_x", "read", "allow"), ("frobnicate", "unknown", "ask")] {
        let words = format!("acl check --server f --subject bob --tool {tool} --json");
        let ended = ends_with(run(&world, &words), 0);
        assert_eq!(parsed(&ended)["effect"], effect);
        assert_eq!(parsed(&ended)["verdict"], verdict);
        says(&ended.stderr, "judged only by its name and the configuration");
    }
    let ended =
        ends_with(run(&world, "acl check --server f --subject b --tool x --access read"), 0);
    assert_eq!(ended.stderr, "");
    ends_with(run(&world, "acl check --server f --subject b --all-tools"), 7);
}

#[test]
fn what_does_not_exist_or_is_not_said_is_refused() {
    for (words, code) in [
        ("--server f --subject bob", 2),
        ("--server f --tool echo", 2),
        ("--subject bob --tool echo", 2),
        ("--server f --subject bob --tool echo --prompt x", 2),
        ("--server f --subject bob --resource x --access write", 2),
        ("--server f --subject bob --tool echo --access delete", 2),
        ("--server g --subject bob --tool echo", 4),
        ("--server f --subject bob --tool ecko", 4),
    ] {
        ends_with(run(&world(), &format!("acl check {words}")), code);
    }
    let ended = ends_with(run(&world(), "acl check --server f --subject b --tool ecko --json"), 4);
    assert_eq!(failure(&ended).2, "did you mean `f__echo`?");
}
