//! `capstan why`: every rule that was looked at, and the one that decided.

use crate::stage::{ends_with, failure, fixture, json, ok_json, run, says, with};

fn rules() -> String {
    format!(
        "[permissions]\ndeny = [\"*crash*\"]\nask = [\"add\"]\nallow = [\"echo\", \"add:a=1\"]\n\n\
         [tools]\npolicy = {{ ask = [\"weird\"] }}\n\n{}\n\
         [servers.f.permissions]\nask = [\"count\"]\nallow = [\"weird\"]\n",
        fixture("f", &[])
    )
}

#[test]
fn a_person_sees_the_rules_in_order_and_the_verdict() {
    let world = with(&rules());
    let ended = ends_with(run(&world, "why f__echo"), 0);
    insta::assert_snapshot!(ended.stdout, @"
    ENGINE       SAYS   RULE
    exposure     -      servers.f: offered
    tool_policy  -      tools.policy.ask: weird
    permissions  -      permissions.deny: *crash*
    permissions  -      servers.f.permissions.ask: count
    permissions  -      servers.f.permissions.allow: weird
    permissions  -      permissions.ask: add
    permissions  allow  permissions.allow: echo

    f__echo: allow by `permissions.allow: echo`
    ");
    let ended = ends_with(run(&world, "why f__crash"), 6);
    insta::assert_snapshot!(ended.stdout, @"
    ENGINE       SAYS  RULE
    exposure     -     servers.f: offered
    tool_policy  -     tools.policy.ask: weird
    permissions  deny  permissions.deny: *crash*

    f__crash: deny by `permissions.deny: *crash*`
    ");
    let ended = ends_with(run(&world, "why f__count"), 0);
    says(&ended.stderr, "typing the call is the approval");
}

#[test]
fn programs_get_verdict_rule_and_steps() {
    let world = with(&rules());
    let shown = ok_json(&world, "why f__add a=1");
    insta::assert_json_snapshot!(shown, @r#"
    {
      "verdict": "ask",
      "rule": "permissions.ask: add",
      "steps": [
        {
          "engine": "exposure",
          "rule": "servers.f: offered",
          "verdict": null
        },
        {
          "engine": "tool_policy",
          "rule": "tools.policy.ask: weird",
          "verdict": null
        },
        {
          "engine": "permissions",
          "rule": "permissions.deny: *crash*",
          "verdict": null
        },
        {
          "engine": "permissions",
          "rule": "servers.f.permissions.ask: count",
          "verdict": null
        },
        {
          "engine": "permissions",
          "rule": "servers.f.permissions.allow: weird",
          "verdict": null
        },
        {
          "engine": "permissions",
          "rule": "permissions.ask: add",
          "verdict": "ask"
        }
      ]
    }
    "#);
    let ended = ends_with(run(&world, "why f__crash --json"), 6);
    assert_eq!(json(&ended)["verdict"], "deny");
    assert_eq!(ok_json(&world, "why f__weird")["rule"], "tools.policy.ask: weird");
}

#[test]
fn the_arguments_count() {
    let world = with(&format!(
        "[permissions]\ndefault = \"deny\"\nallow = [\"add:a=1\"]\n\n{}",
        fixture("f", &[])
    ));
    ends_with(run(&world, "why f__add a=1"), 0);
    ends_with(run(&world, "why f__add a=2"), 6);
    ends_with(run(&world, "why f__add"), 6);
}

#[test]
fn what_does_not_exist_has_no_reason() {
    let world = with(&rules());
    let ended = ends_with(run(&world, "why f__ecko --json"), 4);
    let (code, _, hint) = failure(&ended);
    assert_eq!((code.as_str(), hint.as_str()), ("not_found", "did you mean `f__echo`?"));
}

#[test]
fn asking_why_calls_nothing() {
    let world = with(&rules());
    ends_with(run(&world, "why f__count"), 0);
    assert_eq!(ok_json(&world, "audit"), serde_json::json!([]));
    assert_eq!(ends_with(run(&world, "call f__count"), 0).stdout, "1\n");
}
