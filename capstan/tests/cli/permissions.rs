//! Rules on the road: what is allowed, asked for and forbidden, and what the audit log says of it.

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{ends_with, fixture, last_entry, ok_json, run, says, with};

/// A server with rules of its own, and rules for all. Its tools stand for those of an issue
/// tracker: `tool_0` and `tool_1` read, `tool_2` deletes, `tool_3` creates, `tool_4` is not named.
fn linear(global: &str) -> String {
    format!(
        "[permissions]\n{global}\n\n{}\n[servers.linear.permissions]\n\
         allow = [\"tool_0\", \"tool_1\"]\nask = [\"tool_3\", \"create_*\"]\ndeny = [\"tool_2\"]\n",
        fixture("linear", &["--tools", "10"])
    )
}

/// What `why` says of a tool, and what becomes of the call itself.
#[track_caller]
fn check(world: &World, tool: &str, verdict: &str, rule: &str) {
    let denied = verdict == "deny";
    let ended = ends_with(run(world, &format!("why {tool} --json")), if denied { 6 } else { 0 });
    let why = crate::stage::json(&ended);
    assert_eq!(json!([why["verdict"], why["rule"]]), json!([verdict, rule]), "{tool}");

    // Who types a call answers the default, and not a rule that asks.
    let approval = match verdict {
        "ask" if rule.starts_with("permissions.default:") => Some("by_hand"),
        "ask" => Some("nobody"),
        _ => None,
    };
    let refused = denied || approval == Some("nobody");
    ends_with(run(world, &format!("call {tool}")), if refused { 6 } else { 0 });
    let entry = last_entry(world);
    let said = json!([entry["verdict"], entry["rule"], entry["approval"]]);
    assert_eq!(said, json!([verdict, rule, approval]), "{tool}");
}

#[test]
fn c11_the_rules_of_a_server_decide_about_its_tools() {
    let world = with(&linear(""));
    check(&world, "linear__tool_0", "allow", "servers.linear.permissions.allow: tool_0");
    check(&world, "linear__tool_1", "allow", "servers.linear.permissions.allow: tool_1");
    check(&world, "linear__tool_2", "deny", "servers.linear.permissions.deny: tool_2");
    check(&world, "linear__tool_3", "ask", "servers.linear.permissions.ask: tool_3");
    check(&world, "linear__tool_4", "ask", "permissions.default: ask");
}

#[test]
fn c11_the_order_of_server_and_global_rules() {
    let world = with(&linear("deny = [\"linear__tool_1\"]\nallow = [\"*\"]\nask = [\"*tool_0\"]"));
    check(&world, "linear__tool_1", "deny", "permissions.deny: linear__tool_1");
    check(&world, "linear__tool_3", "ask", "servers.linear.permissions.ask: tool_3");
    check(&world, "linear__tool_0", "allow", "servers.linear.permissions.allow: tool_0");
    check(&world, "linear__tool_2", "deny", "servers.linear.permissions.deny: tool_2");
    check(&world, "linear__tool_4", "allow", "permissions.allow: *");
}

/// Issue 15, number 11: a program with a shell cannot answer for the operator.
#[test]
fn an_explicit_ask_stops_what_no_terminal_can_answer_and_says_what_to_do() {
    let rules = "[permissions]\nask = [\"f__count\", \"f__weird\", \"f__fixture://*\", \"f__poem-writer\"]\n\n\
                 [tools]\npolicy = { ask = [\"echo\"] }\n\n";
    let world = with(&format!("{rules}{}", fixture("f", &["--library"])));
    for (words, rule) in [
        ("call f__count", "permissions.ask: f__count"),
        ("call f__count --yes", "permissions.ask: f__count"),
        ("call f__count -y --json", "permissions.ask: f__count"),
        ("call f__count --ask", "permissions.ask: f__count"),
        ("call f__count --no-attach", "permissions.ask: f__count"),
        ("call f:weird", "permissions.ask: f__weird"),
        ("call f__echo text=x", "tools.policy.ask: echo"),
        ("read @f:fixture://greeting", "permissions.ask: f__fixture://*"),
        ("prompt f:poem-writer --complete mood=rev", "permissions.ask: f__poem-writer"),
    ] {
        let ended = ends_with(run(&world, words), 6);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        says(&said, &format!("needs an approval by rule `{rule}`, and no approver is available"));
        says(&said, "the operator can run it on a terminal, which asks (`--yes` answers there)");
        says(&said, &format!("change the rule `{rule}`"));
        assert_eq!(last_entry(&world)["approval"], "nobody", "{words}");
    }
    // The default asks too, and who types the call has answered it.
    ends_with(run(&world, "call f__grow"), 0);
    assert_eq!(last_entry(&world)["approval"], "by_hand");
}

#[test]
fn a_deny_in_any_spelling_is_final() {
    for pattern in [
        "linear__tool_0",
        "mcp__linear__tool_0",
        "linear:tool_0",
        "linear.tool_0",
        "tool_0",
        "linear__*",
        "*tool_0",
    ] {
        let world = with(&linear(&format!("deny = [\"{pattern}\"]")));
        for spelling in ["linear__tool_0", "mcp__linear__tool_0", "linear:tool_0"] {
            let ended = ends_with(run(&world, &format!("call {spelling}")), 6);
            says(&ended.stderr, &format!("`permissions.deny: {pattern}`"));
        }
    }
}

#[test]
fn the_arguments_of_a_call_can_be_what_is_forbidden() {
    let world = with(&linear("allow = [\"*\"]\ndeny = [\"linear__tool_4:repo=acme/*\"]"));
    ends_with(run(&world, "call linear__tool_4 repo=acme/secret"), 6);
    ends_with(run(&world, "why linear__tool_4 repo=acme/secret"), 6);
    ends_with(run(&world, "call linear__tool_4 repo=other/x"), 0);
    let ended = world.capstan(["call", "linear__tool_4", r#"{"repo":"acme\/x"}"#]).run();
    ends_with(ended, 6);
}

#[test]
fn a_deny_by_default_forbids_what_no_rule_allows() {
    let world = with(&linear("default = \"deny\""));
    ends_with(run(&world, "call linear__tool_0"), 0);
    ends_with(run(&world, "call linear__tool_4"), 6);
    let ids = crate::stage::column(&ok_json(&world, "tools"), "id");
    assert_eq!(ids, ["linear__tool_0", "linear__tool_1", "linear__tool_3"]);
}

#[test]
fn a_tool_that_is_not_offered_is_neither_listed_nor_callable() {
    let entry = fixture("f", &["--tools", "4"]);
    let world = with(&format!("{entry}expose = [\"tool_*\"]\nhide = [\"tool_2\"]\n"));
    let ids = crate::stage::column(&ok_json(&world, "tools"), "id");
    assert_eq!(ids, ["f__tool_0", "f__tool_1", "f__tool_3"]);
    for hidden in ["f__tool_2", "f__echo"] {
        let ended = ends_with(run(&world, &format!("call {hidden}")), 6);
        says(&ended.stderr, "servers.f.");
    }
}

#[test]
fn a_sandboxed_server_offers_only_what_is_listed() {
    let boxed =
        |name: &str, more: &str| format!("{}trust = \"sandboxed\"\n{more}", fixture(name, &[]));
    let world = with(&[boxed("none", ""), boxed("one", "expose = [\"echo\"]\n")].join("\n"));
    assert_eq!(crate::stage::column(&ok_json(&world, "tools"), "id"), ["one__echo"]);
    ends_with(run(&world, "call none__echo"), 6);
    ends_with(run(&world, "call one__count"), 6);
    ends_with(run(&world, "call one__echo"), 0);
}

#[test]
fn a_project_cannot_loosen_what_the_user_forbids() {
    let world = crate::stage::with_project();
    world.write_user_config("[permissions]\ndeny = [\"count\"]\n");
    let rules = "[permissions]\nallow = [\"*\"]\ndefault = \"allow\"\n\n";
    world.write_project_config(&format!("{rules}{}", fixture("f", &[])));
    ends_with(run(&world, "trust --yes"), 0);
    ends_with(run(&world, "call f__count"), 6);
    check(&world, "f__echo", "allow", "permissions.allow: *");
}
