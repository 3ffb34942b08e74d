//! Calls of clients that nobody at the client can be asked about, answered from another shell.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use capstan_testkit::{Ended, World, wait_until};
use serde_json::{Value, json};

use crate::stage::{Gateway, LIMIT, fixture, with};

/// A call waits here for as long as a busy machine may need to answer it.
const PATIENT: &str = "[gateway]\napproval_wait = \"50s\"\n\n";

/// A call is refused at once.
const HASTY: &str = "[gateway]\napproval_wait = \"0s\"\n\n";

/// A gateway whose client cannot be asked anything.
#[track_caller]
pub(crate) fn gateway(world: &World) -> Gateway {
    let mut gateway = Gateway::start(world, "");
    gateway.initialize("2025-11-25");
    gateway
}

/// Sends a call of a tool that writes; it counts how often it ran.
#[track_caller]
pub(crate) fn send_count(gateway: &mut Gateway, id: u64) {
    let params = json!({ "name": "f__count", "arguments": { "why": "test" } });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    gateway.send(&call.to_string());
}

/// The answer to a request, past whatever else the client is told.
#[track_caller]
pub(crate) fn answer(gateway: &Gateway, id: u64) -> Value {
    loop {
        let message = gateway.hear();
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
    }
}

#[track_caller]
pub(crate) fn count(gateway: &mut Gateway, id: u64) -> Value {
    send_count(gateway, id);
    answer(gateway, id)["result"].clone()
}

/// The text of a tool's answer.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[track_caller]
fn shell(world: &World, words: &str) -> Ended {
    world.capstan(format!("approvals {words}").split_whitespace()).run()
}

#[track_caller]
pub(crate) fn shell_ok(world: &World, words: &str) -> String {
    let ended = shell(world, words);
    assert_eq!(ended.status, Some(0), "{words}: {}", ended.stderr);
    format!("{}{}", ended.stdout, ended.stderr)
}

/// The questions that lie open.
#[track_caller]
fn questions(world: &World) -> Value {
    serde_json::from_str(&shell_ok(world, "--json")).unwrap()
}

/// The id of the question that the gateway's log tells of.
#[track_caller]
pub(crate) fn told(gateway: &Gateway, what: &str) -> String {
    let line = gateway.says(what);
    let (_, rest) = line.split_once(what).unwrap();
    rest.split(':').next().unwrap().trim().to_owned()
}

/// How the calls were approved, by the audit log of a gateway that has ended.
#[track_caller]
pub(crate) fn grounds(world: &World, mut gateway: Gateway) -> Vec<String> {
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
    let log = fs::read_to_string(world.state().join("capstan/audit.jsonl")).unwrap();
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.map(|entry| entry["approval"].as_str().unwrap_or("-").to_owned()).collect()
}

fn config(world: &World) -> String {
    fs::read_to_string(world.config().join("capstan/config.toml")).unwrap()
}

#[test]
fn a_shell_completes_the_ids_of_waiting_calls() {
    let world = with(&format!("{PATIENT}{}", fixture("f", &[])));
    let mut gateway = gateway(&world);
    send_count(&mut gateway, 1);
    let id = told(&gateway, "waiting for approval ");
    for verb in ["yes", "no", "show"] {
        let run = world
            .capstan(["--", "capstan", "approvals", verb, id.get(..1).unwrap()])
            .env("COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", "3")
            .env("_CLAP_IFS", "\n");
        assert_eq!(run.run().ok().trim(), id, "{verb}");
    }
    shell_ok(&world, &format!("no {id}"));
    answer(&gateway, 1);
}

#[test]
fn a_call_that_waits_runs_once_another_shell_says_yes() {
    let world = with(&format!("{PATIENT}{}", fixture("f", &[])));
    let mut gateway = gateway(&world);
    send_count(&mut gateway, 1);
    let id = told(&gateway, "waiting for approval ");
    let listed = questions(&world);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let question = &listed[0];
    assert_eq!((&question["id"], &question["state"]), (&json!(id), &json!("waiting")));
    assert_eq!(question["item"], "f__count");
    assert_eq!((&question["caller"], &question["client"]), (&json!("anonymous"), &json!("test/1")));
    assert_eq!(question["arguments"], json!({ "why": "test" }));
    assert_eq!(question["rule"], "permissions.default: ask-writes");
    let table = shell_ok(&world, "list");
    assert!(table.contains(&id) && table.contains("f__count"), "{table}");
    assert!(shell_ok(&world, &format!("yes {id}")).contains("it runs now"));
    assert_eq!(text(&answer(&gateway, 1)["result"]), "1");
    assert!(shell_ok(&world, "").contains("no call waits"));
    assert_eq!(grounds(&world, gateway), ["other_shell"]);
}

#[test]
fn a_call_that_waits_does_not_run_when_another_shell_says_no() {
    let world = with(&format!("{PATIENT}{}", fixture("f", &[])));
    let mut gateway = gateway(&world);
    send_count(&mut gateway, 1);
    let id = told(&gateway, "waiting for approval ");
    shell_ok(&world, &format!("no {id}"));
    let result = answer(&gateway, 1)["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(grounds(&world, gateway), ["refused"]);
}

#[test]
fn a_call_that_was_refused_and_then_approved_passes_once_when_it_is_repeated() {
    let world = with(&format!("{HASTY}{}", fixture("f", &[])));
    let mut gateway = gateway(&world);
    let refused = count(&mut gateway, 1);
    assert_eq!(refused["isError"], true);
    let hint = refused["_meta"]["capstan/error"]["hint"].as_str().unwrap();
    assert!(hint.contains("write `allow = [\"f__count\"]` under `[permissions]`"), "{hint}");
    let id = told(&gateway, "refused without an approval ");
    assert!(hint.contains(&id), "{hint}");
    assert_eq!(questions(&world)[0]["state"], "open");
    let said = shell_ok(&world, &format!("yes {id}"));
    assert!(said.contains("runs when it is called again"), "{said}");
    assert_eq!(questions(&world)[0]["state"], "approved");
    assert_eq!(text(&count(&mut gateway, 2)), "1");
    assert_eq!(count(&mut gateway, 3)["isError"], true);
    assert_eq!(grounds(&world, gateway), ["nobody", "other_shell", "nobody"]);
}

#[test]
fn an_approval_that_was_given_outlives_its_gateway_and_not_a_change_of_the_configuration() {
    for (change, passes) in [("# a comment\n", true), ("[permissions]\nask = [\"x\"]\n", false)] {
        let text = format!("{HASTY}{}", fixture("f", &[]));
        let world = with(&text);
        let mut first = gateway(&world);
        count(&mut first, 1);
        let id = told(&first, "refused without an approval ");
        shell_ok(&world, &format!("yes {id}"));
        first.hang_up();
        first.end();
        world.write_user_config(&format!("{text}\n{change}"));
        let mut second = gateway(&world);
        assert_eq!(count(&mut second, 1)["isError"] != true, passes, "{change}");
    }
}

#[test]
fn a_saved_yes_holds_at_once_and_after_a_restart_and_every_comment_stays() {
    let text = format!("# mine\n{HASTY}{}# the end\n", fixture("f", &[]));
    let world = with(&text);
    let mut first = gateway(&world);
    count(&mut first, 1);
    let id = told(&first, "refused without an approval ");
    let said = shell_ok(&world, &format!("yes {id} --tool --save"));
    assert!(said.contains("permissions.allow = [\"f__count\"]"), "{said}");
    let kept = config(&world);
    assert_eq!(kept, format!("{text}\n[permissions]\nallow = [\"f__count\"]\n"));
    for id in [2, 3] {
        assert_ne!(count(&mut first, id)["isError"], true);
    }
    assert_eq!(grounds(&world, first), ["nobody", "remembered", "remembered"]);
    let mut second = gateway(&world);
    assert_eq!(text_of_count(&mut second), "1");
    assert_eq!(grounds(&world, second).last().unwrap(), "-");
}

#[track_caller]
fn text_of_count(gateway: &mut Gateway) -> String {
    text(&count(gateway, 9)).to_owned()
}

#[test]
fn what_is_saved_about_a_server_of_a_project_goes_into_the_projects_file_which_stays_approved() {
    let world = World::new();
    world.write_user_config(HASTY);
    world.write("project/.git/HEAD", "");
    let path = world.write_project_config(&format!("# ours\n{}", fixture("f", &[])));
    world.capstan(["trust", "--yes"]).run().ok();
    let mut first = gateway(&world);
    count(&mut first, 1);
    let id = told(&first, "refused without an approval ");
    shell_ok(&world, &format!("yes {id} --arguments --save"));
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.starts_with("# ours\n"), "{kept}");
    assert!(kept.ends_with("allow = [\"f__count:why=test,!\"]\n"), "{kept}");
    assert_eq!(config(&world), HASTY);
    let mut second = gateway(&world);
    assert_eq!(text_of_count(&mut second), "1");
    let other = json!({ "name": "f__count", "arguments": { "why": "another" } });
    assert_eq!(second.ask(10, "ping", &json!({}))["result"], json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 11, "method": "tools/call", "params": other });
    second.send(&call.to_string());
    assert_eq!(answer(&second, 11)["result"]["isError"], true);
}

#[test]
fn a_rule_that_asks_can_be_answered_once_and_never_for_longer() {
    let rule = "[permissions]\nask = [\"f__count\"]\nallow = [\"*\"]\n\n";
    let world = with(&format!("{HASTY}{rule}{}", fixture("f", &[])));
    let before = config(&world);
    let mut gateway = gateway(&world);
    count(&mut gateway, 1);
    let id = told(&gateway, "refused without an approval ");
    for wider in
        ["--tool", "--tool --save", "--arguments --save", "--server", "--server-reads --session"]
    {
        let ended = shell(&world, &format!("yes {id} {wider}"));
        assert_eq!(ended.status, Some(6), "{wider}: {}", ended.stderr);
        assert!(
            ended.stderr.contains("`permissions.ask: f__count` asks every time"),
            "{}",
            ended.stderr
        );
    }
    // For how long, but not for what.
    assert_eq!(shell(&world, &format!("yes {id} --save")).status, Some(2));
    assert_eq!(config(&world), before);
    shell_ok(&world, &format!("yes {id}"));
    assert_eq!(text(&count(&mut gateway, 2)), "1");
    assert_eq!(count(&mut gateway, 3)["isError"], true);
}

/// A headless client ends, and its gateway with it, before the operator reads the refusal.
#[test]
fn a_refused_call_can_be_approved_after_its_gateway_has_ended() {
    let world = with(&format!("{HASTY}{}", fixture("f", &[])));
    let mut first = gateway(&world);
    assert_eq!(count(&mut first, 1)["isError"], true);
    let id = told(&first, "refused without an approval ");
    first.hang_up();
    assert_eq!(first.end(), Some(0));
    assert!(shell_ok(&world, "").contains(&id));
    assert_eq!(shell(&world, &format!("yes {id} --tool --save")).status, Some(6));
    shell_ok(&world, &format!("yes {id}"));
    let mut second = gateway(&world);
    assert_eq!(text(&count(&mut second, 1)), "1");
    assert_eq!(count(&mut second, 2)["isError"], true, "one call, not two");
}

#[test]
fn an_answer_to_no_question_ends_with_not_found() {
    let world = with(&format!("{HASTY}{}", fixture("f", &[])));
    assert!(shell_ok(&world, "").contains("no gateway of yours is running"));
    assert_eq!(shell_ok(&world, "--json"), "[]\n");
    assert_eq!(shell(&world, "yes k7f2").status, Some(4));
    let mut gateway = gateway(&world);
    count(&mut gateway, 1);
    let id = told(&gateway, "refused without an approval ");
    for words in ["yes zzzz", "no zzzz"] {
        let ended = shell(&world, words);
        assert_eq!(ended.status, Some(4), "{}", ended.stderr);
        assert!(ended.stderr.contains("`capstan approvals` lists"), "{}", ended.stderr);
    }
    shell_ok(&world, &format!("no {id}"));
    assert_eq!(shell(&world, &format!("yes {id}")).status, Some(4), "answered already");
}

#[test]
fn the_control_socket_is_closed_to_others_and_goes_with_its_gateway() {
    let world = with(&fixture("f", &[]));
    let mut gateway = gateway(&world);
    let folder = world.runtime().join("capstan");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let socket = folder.join(format!("gateway-{}.sock", gateway.child.id()));
    assert_eq!((mode(&folder), mode(&socket)), (0o700, 0o600));
    gateway.hang_up();
    assert_eq!(gateway.end(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn a_gateway_that_was_killed_leaves_nothing_that_matters() {
    let world = with(&format!("{HASTY}{}", fixture("f", &[])));
    let mut first = gateway(&world);
    let socket = world.runtime().join(format!("capstan/gateway-{}.sock", first.child.id()));
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert!(socket.exists());
    assert!(shell_ok(&world, "").contains("no gateway of yours is running"));
    assert!(wait_until(|| !socket.exists(), LIMIT));
}

#[test]
fn a_database_that_cannot_be_used_stops_nothing_that_needs_none() {
    let allow = "[permissions]\nallow = [\"f__echo\"]\n\n";
    let world = with(&format!("{PATIENT}{allow}{}", fixture("f", &[])));
    let mut gateway = gateway(&world);
    let echo = json!({ "name": "f__echo", "arguments": { "text": "hi" } });
    assert_eq!(gateway.ask(1, "tools/call", &echo)["result"]["isError"], false);
    // A folder in the place of the file cannot be opened, not even by root.
    let db = world.state().join("capstan/state.db");
    fs::remove_file(&db).unwrap();
    fs::create_dir_all(db.join("full")).unwrap();
    // What was compared with its approved definition before stays as it is.
    assert_eq!(gateway.ask(4, "tools/call", &echo)["result"]["isError"], false);
    send_count(&mut gateway, 2);
    let broken = gateway.says("cannot be read");
    assert!(broken.contains("state.db"), "{broken}");
    let id = told(&gateway, "waiting for approval ");
    shell_ok(&world, &format!("yes {id}"));
    assert_eq!(text(&answer(&gateway, 2)["result"]), "1");
    // It is told once, and not with every call and every look at the list.
    shell_ok(&world, "");
    send_count(&mut gateway, 3);
    let lines = gateway.says_all("waiting for approval ");
    assert!(!lines.iter().any(|line| line.contains("state.db")), "{lines:#?}");
}

#[test]
fn a_command_that_looks_at_no_tool_makes_no_database() {
    let world = with(&fixture("f", &[]));
    world.capstan(["config", "check"]).run().ok();
    world.capstan(["audit"]).run().ok();
    assert!(!world.state().join("capstan/state.db").exists());
}
