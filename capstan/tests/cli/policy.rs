//! `capstan policy`: rules tried out on cases and on past calls, without a server.

use capstan_testkit::{Ended, World};
use serde_json::{Value, json};

use crate::stage::{ends_with, failure, fixture, json as parsed, ok_json, run, says, with};

/// A server that cannot be started: whatever needs one fails.
const NOBODY: &str = "[servers.linear]\ncommand = \"/nonexistent/server\"\n";

fn rules() -> String {
    format!(
        "[permissions]\ndeny = [\"*__delete_*\", \"linear__update:state=closed\"]\n\
         allow = [\"linear__list_*\"]\ndefault = \"ask-writes\"\n\n{NOBODY}"
    )
}

#[track_caller]
fn test(world: &World, file: &str, cases: &str) -> Ended {
    let file = world.write(file, cases);
    run(world, &format!("policy test {} --json", file.display()))
}

/// One case under the rules: how it ends, the verdict, the rule.
#[track_caller]
fn check(case: &str, code: i32, verdict: &str, rule: &str) {
    let world = with(&rules());
    let ended = test(&world, "cases.toml", &format!("[[case]]\n{case}\n"));
    let ended = ends_with(ended, code);
    let case = &parsed(&ended)["cases"][0];
    let said = json!([case["passed"], case["verdict"], case["rule"]]);
    assert_eq!(said, json!([code == 0, verdict, rule]), "{case}");
}

#[test]
fn a_case_passes_when_the_rules_decide_as_it_expects() {
    let deny = "permissions.deny: *__delete_*";
    check("tool = 'linear__delete_x'\nexpect = 'deny'", 0, "deny", deny);
    check("tool = 'linear__delete_x'\nexpect = 'deny'\nrule = 'delete'", 0, "deny", deny);
    check(
        "tool = 'linear:list_x'\nexpect = 'allow'",
        0,
        "allow",
        "permissions.allow: linear__list_*",
    );
    let default = "permissions.default: ask-writes";
    check("tool = 'linear.get'\nexpect = 'ask'", 0, "ask", default);
    check("tool = 'linear.get'\neffect = 'read'\nexpect = 'allow'", 0, "allow", default);
    check("resource = '@linear:file:///x'\nexpect = 'allow'", 0, "allow", default);
    check("prompt = 'linear:greet'\nexpect = 'allow'", 0, "allow", default);
    let closed = "permissions.deny: linear__update:state=closed";
    let update = "tool = 'linear__update'\narguments = { state = 'closed' }\nexpect = 'deny'";
    check(update, 0, "deny", closed);
    check(&format!("caller = 'bob'\nroles = ['dev']\n{update}"), 0, "deny", closed);
}

#[test]
fn a_case_fails_when_verdict_or_rule_are_others() {
    let deny = "permissions.deny: *__delete_*";
    check("tool = 'linear__delete_x'\nexpect = 'ask'", 1, "deny", deny);
    check("tool = 'linear__delete_x'\nexpect = 'deny'\nrule = 'tools.policy'", 1, "deny", deny);
    let default = "permissions.default: ask-writes";
    check("tool = 'linear__update'\nexpect = 'deny'", 1, "ask", default);
    check("tool = 'linear__get'\neffect = 'write'\nexpect = 'allow'", 1, "ask", default);
    check("tool = 'linear__Delete_x'\nexpect = 'deny'", 1, "ask", default);
}

#[test]
fn without_rules_of_its_own_each_front_has_its_own_default() {
    let world = with(NOBODY);
    for (front, effect, expect) in [
        ("cli", "read", "ask"),
        ("cli", "write", "ask"),
        ("terminal", "read", "ask"),
        ("terminal", "write", "ask"),
        ("gateway", "read", "allow"),
        ("gateway", "write", "ask"),
        ("gateway", "unknown", "ask"),
        ("stdio", "read", "allow"),
        ("stdio", "unknown", "ask"),
    ] {
        let case = format!(
            "[[case]]\ntool = 'linear__x'\nfront = '{front}'\neffect = '{effect}'\nexpect = '{expect}'"
        );
        ends_with(test(&world, "cases.toml", &case), 0);
    }
}

#[test]
fn a_person_sees_what_failed_and_why_and_how_many_there_were() {
    let world = with(&rules());
    let file = world.write(
        "cases.toml",
        "[[case]]\nname = \"lists pass\"\ntool = \"linear__list_issues\"\nexpect = \"allow\"\n\n\
         [[case]]\nname = \"nothing is updated\"\ntool = \"linear__update\"\nexpect = \"deny\"\n\n\
         [[case]]\ntool = \"linera__update\"\nexpect = \"deny\"\n",
    );
    let ended = ends_with(run(&world, &format!("policy test {}", file.display())), 1);
    insta::assert_snapshot!(ended.stdout, @"
    failed: nothing is updated (linear__update): expected deny, got ask by `permissions.default: ask-writes`
    ENGINE       SAYS  RULE
    exposure     -     servers.linear: offered
    permissions  -     permissions.deny: *__delete_*
    permissions  -     permissions.deny: linear__update:state=closed
    permissions  -     permissions.allow: linear__list_*
    permissions  ask   permissions.default: ask-writes

    failed: linera__update: no configured server matches
    1 passed, 2 failed
    ");
}

#[test]
fn the_same_file_can_be_json() {
    let world = with(&rules());
    let cases = json!({ "case": [
        { "tool": "linear__delete_x", "arguments": { "id": 7 }, "expect": "deny" },
        { "tool": "linear__list_x", "expect": "allow", "front": "stdio" },
    ] });
    let ended = ends_with(test(&world, "cases.json", &cases.to_string()), 0);
    let shown = parsed(&ended);
    assert_eq!(json!([shown["passed"], shown["failed"]]), json!([2, 0]));
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let world = with(&rules());
    for (file, text, word) in [
        ("c.toml", "[[case]]\ntool = \"linear__x\"\nexpct = \"ask\"\n", "c.toml:3: unknown field"),
        ("c.json", "{\"case\": [\n{\"tool\": \"a__b\"}]}", "c.json:2: missing field `expect`"),
        ("c.toml", "", "c.toml has no cases"),
        ("c.toml", &"# long\n".repeat(1_000_000), "is larger than"),
    ] {
        let (code, message, _) = failure(&ends_with(test(&world, file, text), 3));
        assert_eq!(code, "invalid_config");
        says(&message, word);
    }
    let ended = ends_with(run(&world, "policy test nowhere.toml --json"), 2);
    says(&failure(&ended).1, "cannot read `nowhere.toml`");
}

#[test]
fn rules_of_a_file_can_be_tried_out_alone() {
    let world = with(&rules());
    let new = world.write("new.toml", format!("[permissions]\nallow = [\"*\"]\n\n{NOBODY}"));
    let cases =
        world.write("c.toml", "[[case]]\ntool = \"linear__delete_x\"\nexpect = \"allow\"\n");
    let words = format!("policy test {} --config {}", cases.display(), new.display());
    ends_with(run(&world, &words), 1);
    ends_with(run(&world, &format!("{words} --alone")), 0);
    let without = format!("policy test {} --alone", cases.display());
    ends_with(run(&world, &without), 2);
}

#[test]
fn a_server_whose_entry_is_broken_says_what_it_needs() {
    let world = with("[servers.linear]\ncommand = \"x\"\nenv = { KEY = \"${LINEAR_KEY}\" }\n");
    let case = "[[case]]\ntool = \"linear__x\"\nexpect = \"ask\"\n";
    let ended = ends_with(test(&world, "c.toml", case), 1);
    says(parsed(&ended)["cases"][0]["problem"].as_str().unwrap(), "LINEAR_KEY");
}

/// Past calls: two answered, one denied, one of no tool.
fn with_past(audit: &str) -> World {
    let world = with(&format!(
        "[permissions]\nallow = [\"echo\"]\ndeny = [\"count\"]\n\n[audit]\n{audit}\n\n{}",
        fixture("f", &[])
    ));
    ends_with(run(&world, "call f__echo text=a"), 0);
    ends_with(run(&world, "call f__echo text=b"), 0);
    ends_with(run(&world, "call f__count"), 6);
    ends_with(run(&world, "call f__ecko"), 4);
    world
}

fn rewrite(world: &World, from: &str, to: &str) {
    let old = crate::stage::user_config(world);
    assert!(old.contains(from), "{old}");
    world.write_user_config(&old.replace(from, to));
}

#[test]
fn nothing_changes_under_the_same_rules() {
    let world = with_past("");
    let report = ok_json(&world, "policy replay");
    insta::assert_json_snapshot!(report, @r#"
    {
      "calls": 4,
      "same": 3,
      "same_by_other_rule": 0,
      "changed": [],
      "unjudged": {
        "arguments": {},
        "no_server": {},
        "unreadable": 0
      },
      "undecided": 1
    }
    "#);
    let ended = ends_with(run(&world, "policy replay --since 1h"), 0);
    assert_eq!(ended.stdout, "0 decided differently, 3 the same\n");
    says(&ended.stderr, "1 call failed before the rules were checked");
    assert_eq!(ok_json(&world, "policy replay --since 2999-01-01T00:00:00Z")["calls"], 0);
}

#[test]
fn a_file_that_has_rules_and_no_server_is_tried_out_too() {
    let world = with_past("");
    // What stands under the server is a rule of the operator's own files, and left out.
    rewrite(&world, "[servers.f]", "[servers.f]\npermissions = { deny = [\"echo\"] }");
    let new = world.write("new.toml", "[permissions]\nask = [\"echo\"]\nallow = [\"*\"]\n");
    let report = ok_json(&world, &format!("policy replay --alone --config {}", new.display()));
    assert_eq!(report["unjudged"]["no_server"], json!({}), "{report}");
    let changed = report["changed"].as_array().unwrap();
    let now: Vec<&Value> = changed.iter().map(|change| &change["now"]["verdict"]).collect();
    assert_eq!(now, ["ask", "ask", "allow"], "{report}");
}

#[test]
fn what_would_be_decided_differently_is_listed() {
    let world = with_past("");
    rewrite(&world, "allow = [\"echo\"]", "ask = [\"echo\"]");
    rewrite(&world, "deny = [\"count\"]", "deny = [\"f__count\"]");
    let ended = ends_with(run(&world, "policy replay"), 0);
    insta::assert_snapshot!(ended.stdout, @"
    ITEM     CALLER    FRONT  CALLS  WAS                                 NOW
    f__echo  operator  cli    2      allow by `permissions.allow: echo`  ask by `permissions.ask: echo`

    2 decided differently, 1 the same (1 of them by another rule)
    ");
    let report = ok_json(&world, "policy replay");
    assert_eq!(json!([report["same"], report["same_by_other_rule"]]), json!([0, 1]));
    let change = &report["changed"][0];
    assert_eq!(change["was"], json!({ "verdict": "allow", "rule": "permissions.allow: echo" }));
    assert_eq!(change["now"], json!({ "verdict": "ask", "rule": "permissions.ask: echo" }));
    assert_eq!(json!([change["seq"], change["front"]]), json!([1, "cli"]));
}

#[test]
fn rules_that_are_not_in_force_yet_can_be_tried_on_the_past() {
    let world = with_past("");
    let new = format!("[permissions]\nallow = [\"*\"]\n\n{}", fixture("f", &[]));
    let new = world.write("new.toml", new);
    let words = format!("policy replay --config {}", new.display());
    let ended = ends_with(run(&world, &words), 0);
    says(&ended.stdout, "0 decided differently, 3 the same");
    says(&ended.stderr, "`--alone` leaves them out");
    let alone = ok_json(&world, &format!("{words} --alone"));
    assert_eq!(alone["changed"][0]["item"], "f__count");
    assert_eq!(alone["changed"].as_array().unwrap().len(), 1);
}

#[test]
fn a_call_whose_arguments_were_not_kept_is_not_judged_by_them() {
    for (audit, kept) in [("", false), ("arguments = \"redacted\"", true)] {
        let world = with_past(audit);
        rewrite(&world, "deny = [\"count\"]", "deny = [\"count\", \"echo:text=a\"]");
        let report = ok_json(&world, "policy replay");
        let changed = report["changed"].as_array().unwrap().len();
        let unjudged = report["unjudged"]["arguments"]["permissions.deny: echo:text=a"].as_u64();
        assert_eq!((changed, unjudged), if kept { (1, None) } else { (0, Some(2)) });
        let ended = ends_with(run(&world, "policy replay"), 0);
        assert_eq!(ended.stderr.contains("2 calls cannot be judged"), !kept, "{}", ended.stderr);
    }
}

#[test]
fn calls_to_a_server_that_is_gone_are_counted_apart() {
    let world = with_past("");
    let old = crate::stage::user_config(&world);
    world.write_user_config(&old.replace("[servers.f]", "[servers.g]"));
    let report = ok_json(&world, "policy replay");
    assert_eq!(report["unjudged"]["no_server"], json!({ "f": 3 }));
    assert_eq!(report["changed"], json!([]));
}

#[test]
fn trying_rules_out_starts_and_writes_nothing() {
    let world = with(&rules());
    ends_with(test(&world, "c.toml", "[[case]]\ntool = 'linear__x'\nexpect = 'ask'\n"), 0);
    let report: Value = ok_json(&world, "policy replay");
    assert_eq!(report["calls"], 0);
    assert!(!world.state().join("capstan/audit.jsonl").exists());
}
