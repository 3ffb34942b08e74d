//! `capstan why`: every rule that was looked at, and the one that decided.

use serde_json::json;

use crate::stage::{ends_with, failure, fixture, json as parsed, ok_json, run, says, with};

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
    says(&ended.stderr, "entering the call approves it");
}

#[test]
fn a_rule_that_has_expired_is_marked() {
    let rule = "{ pattern = \"echo\", expires_at = 2020-01-01T00:00:00Z }";
    let world = with(&format!("[permissions]\nallow = [{rule}]\n\n{}", fixture("f", &[])));
    let ended = ends_with(run(&world, "why f__echo"), 0);
    says(&ended.stdout, "permissions.allow: echo (expired)");
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
      ],
      "effect": "write",
      "caller": "operator",
      "front": "cli"
    }
    "#);
    let ended = ends_with(run(&world, "why f__crash --json"), 6);
    assert_eq!(parsed(&ended)["verdict"], "deny");
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
    let world = with(&fixture("f", &[]));
    ends_with(run(&world, "why f__count"), 0);
    assert_eq!(ok_json(&world, "audit"), json!([]));
    ends_with(run(&world, "call f__count"), 0);
    assert_eq!(ok_json(&world, "audit").as_array().map(Vec::len), Some(1));
}

#[test]
fn rules_that_look_at_arguments_are_told_where_none_are_given() {
    let world = with(&format!(
        "[permissions]\ndeny = [\"add:a=1\"]\nallow = [\"add\", \"add:b=1\"]\n\n{}",
        fixture("f", &[])
    ));
    let shown = ok_json(&world, "why f__add");
    let expected = [json!({
        "engine": "permissions",
        "rule": "permissions.deny: add:a=1",
        "verdict": "deny",
    })];
    assert_eq!(shown["by_arguments"], json!(expected));
    let ended = ends_with(run(&world, "why f__add"), 0);
    says(&ended.stderr, "with arguments, these rules may match first");
    says(&ended.stderr, "permissions.deny: add:a=1");
    assert_eq!(ok_json(&world, "why f__add a=2")["by_arguments"], json!(null));
    assert_eq!(ok_json(&world, "why f__echo")["by_arguments"], json!(null));
}

#[test]
fn a_call_of_somebody_else_can_be_imagined() {
    let world = with(&format!("[servers.g]\ncommand = \"x\"\n\n{}", fixture("f", &[])));
    for (words, caller, front, verdict) in [
        ("", "operator", "cli", "ask"),
        ("--front terminal", "operator", "terminal", "ask"),
        ("--front gateway", "anonymous", "gateway", "ask"),
        ("--front stdio", "anonymous", "stdio", "ask"),
        ("--caller bob", "bob", "gateway", "ask"),
        ("--role dev --role ops", "anonymous", "gateway", "ask"),
        ("--caller bob --front cli", "bob", "cli", "ask"),
    ] {
        let shown = ok_json(&world, &format!("why f__count {words}"));
        let said = json!([shown["caller"], shown["front"], shown["verdict"]]);
        assert_eq!(said, json!([caller, front, verdict]), "{words}");
    }
    let ended = ends_with(run(&world, "why --caller bob f__count"), 0);
    says(&ended.stderr, "it runs if it is approved");
    ends_with(run(&world, "why --front window f__count"), 2);
}

#[test]
fn what_is_denied_to_a_caller_of_the_gateway_does_not_exist_for_them() {
    let world = with(&rules());
    let ended = ends_with(run(&world, "why --caller bob f__crash"), 6);
    says(&ended.stderr, "the caller gets the error that there is no such tool");
}

#[test]
fn arguments_that_do_not_fit_yet_are_no_reason_not_to_say_why() {
    let world = with(&format!("[gateway]\nvalidate_arguments = true\n\n{}", fixture("f", &[])));
    assert_eq!(ok_json(&world, "why --front gateway f__add")["verdict"], "ask");
}

#[test]
fn a_server_is_no_tool_and_the_hint_says_how_to_ask() {
    let world = with(&rules());
    let (_, message, hint) = failure(&ends_with(run(&world, "why f --json"), 2));
    says(&message, "`f` is a server, not a tool");
    says(&hint, "`capstan why f__TOOL`");
}

#[test]
fn a_command_that_is_not_allowed_names_the_list_that_allows_it() {
    let world = with(&format!("[mcp]\nallowed_commands = [\"npx\"]\n\n{}", fixture("f", &[])));
    let ended = ends_with(run(&world, "tools f"), 6);
    says(&ended.stderr, "mcp.allowed_commands: `");
    says(&ended.stderr, "is not listed; add it there");
}

#[test]
fn problems_of_other_servers_are_not_told() {
    let other = "[servers.needy]\ncommand = \"x\"\nargs = [\"${NOT_SET_ANYWHERE}\"]\n";
    let world = with(&format!("{}\n{other}", rules()));
    assert_eq!(ends_with(run(&world, "why f__echo"), 0).stderr, "");
    assert!(!ends_with(run(&world, "audit"), 0).stderr.contains("NOT_SET_ANYWHERE"));
}
