//! Every way a call can fail has its code, its exit code and its advice.

use capstan_testkit::World;
use serde_json::json;

use crate::stage::{
    self, ends_with, failure, fixture, last_entry, quoted, run, says, with, with_fixture,
};

/// What a failed call must tell.
struct Told<'a> {
    exit: i32,
    code: &'a str,
    retryable: bool,
    message: &'a str,
    hint: &'a str,
}

/// Fails the same way for people and for programs.
#[track_caller]
fn check(world: &World, words: &str, told: &Told<'_>) {
    let ended = ends_with(run(world, &format!("call {words} --json")), told.exit);
    let (code, message, hint) = failure(&ended);
    assert_eq!(code, told.code);
    assert_eq!(stage::json(&ended)["error"]["retryable"], told.retryable);
    says(&message, told.message);
    says(&hint, told.hint);
    let keys: Vec<String> =
        stage::json(&ended)["error"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["code", "message", "hint", "retryable"]);

    let ended = ends_with(run(world, &format!("call {words}")), told.exit);
    assert_eq!(ended.stdout, "");
    says(&ended.stderr, "error: ");
    says(&ended.stderr, told.message);
    says(&ended.stderr, told.hint);
}

#[test]
fn an_unknown_tool_or_server_is_not_found_and_the_nearest_is_named() {
    let world = with_fixture();
    let told = |message, hint| Told { exit: 4, code: "not_found", retryable: false, message, hint };
    check(&world, "f__ecko", &told("no tool named `f__ecko`", "did you mean `f__echo`?"));
    check(&world, "f__zzz", &told("no tool named `f__zzz`", "`capstan tools` lists"));
    check(&world, "g__echo", &told("no tool named `g__echo`", "`capstan tools` lists"));
    check(&world, "echo", &told("no tool named `echo`", "`capstan tools` lists"));

    let last = last_entry(&world);
    assert_eq!((&last["code"], &last["item"]), (&"not_found".into(), &"echo".into()));

    let world = with(&fixture("linear", &[]));
    check(&world, "linaer__echo", &told("`linaer__echo`", "did you mean `linear__echo`?"));
}

#[test]
fn arguments_that_do_not_fit_are_invalid_input() {
    let told =
        |message, hint| Told { exit: 2, code: "invalid_input", retryable: false, message, hint };
    let world = with_fixture();
    check(&world, "f__add a=x", &told("`a` cannot be `x`", "`capstan tools f__add`"));
    let last = last_entry(&world);
    assert_eq!((&last["code"], &last["item"]), (&"invalid_input".into(), &"add".into()));
    check(&world, "f__rpc_error code=-32602", &told("as you wish", ""));
}

#[test]
fn the_errors_of_a_server_get_their_class() {
    let world = with_fixture();
    let told = |exit, code, message| Told { exit, code, retryable: false, message, hint: "" };
    check(&world, "f__rpc_error code=-32601", &told(4, "not_found", "error -32601"));
    check(&world, "f__rpc_error code=-32603", &told(1, "server_error", "error -32603"));
    check(&world, "f__rpc_error code=7", &told(1, "server_error", "error 7: as you wish"));
    assert_eq!(last_entry(&world)["code"], "server_error");
}

#[test]
fn a_rule_that_forbids_is_named() {
    let world = with(&format!("[permissions]\ndeny = [\"*echo\"]\n\n{}", fixture("f", &[])));
    let told = Told {
        exit: 6,
        code: "policy_blocked",
        retryable: false,
        message: "`f__echo` is denied by rule `permissions.deny: *echo`",
        hint: "`capstan why f__echo`",
    };
    check(&world, "f__echo", &told);
    let entry = last_entry(&world);
    assert_eq!(json!([entry["verdict"], entry["outcome"]]), json!(["deny", "failed"]));
}

#[test]
fn a_server_that_dies_with_a_write_in_flight_leaves_the_outcome_unknown() {
    let trace = |world: &World| world.home().join("trace");
    let world = World::new();
    let options = ["--trace", trace(&world).to_str().unwrap()].map(ToOwned::to_owned);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    world.write_user_config(&fixture("f", &options));
    let told = Told {
        exit: 7,
        code: "outcome_unknown",
        retryable: false,
        message: "whether it took effect is not known",
        hint: "check whether it took effect before you call it again",
    };
    check(&world, "f__crash", &told);
    assert_eq!(last_entry(&world)["code"], "outcome_unknown");
    let sent = stage::read(trace(&world));
    assert_eq!(sent.matches("tools/call").count(), 2, "one for each run, never sent again");
}

#[test]
fn a_server_that_dies_while_it_reads_is_transient() {
    let entry = format!("{}trust = \"trusted\"\n", fixture("f", &[]));
    let told = Told {
        exit: 7,
        code: "transient",
        retryable: true,
        message: "server `f` is not usable",
        hint: "`capstan doctor f`",
    };
    check(&with(&entry), "f__crash_read", &told);
}

#[test]
fn a_server_that_takes_too_long_is_a_timeout() {
    let world = with(&format!("{}timeout = \"2s\"\n", fixture("f", &[])));
    let told = Told {
        exit: 8,
        code: "transient",
        retryable: false,
        message: "server `f` did not answer within 2s",
        hint: "raise `timeout` under `[servers.f]`",
    };
    check(&world, "f__hang", &told);
    assert_eq!(last_entry(&world)["outcome"], "failed");
}

#[test]
fn calls_beyond_the_quota_are_refused() {
    let config = |quota: u32| {
        format!("[tools]\nmax_tool_calls_per_session = {quota}\n\n{}", fixture("f", &[]))
    };
    let told = Told {
        exit: 9,
        code: "quota_blocked",
        retryable: false,
        message: "the quota of 0 calls for this session is used up",
        hint: "raise `max_tool_calls_per_session`",
    };
    check(&with(&config(0)), "f__echo", &told);
    // Every run is a session of its own.
    let world = with(&config(1));
    ends_with(run(&world, "call f__echo"), 0);
    ends_with(run(&world, "call f__echo"), 0);
}

#[test]
fn a_server_that_cannot_be_used_is_unreachable_and_says_why() {
    let told = |message| Told {
        exit: 7,
        code: "transient",
        retryable: true,
        message,
        hint: "`capstan doctor s`",
    };
    let at = |command: &str| with(&format!("[servers.s]\ncommand = {}\n", quoted(command)));
    check(&at("/nowhere/x"), "s__t", &told("`/nowhere/x` does not exist"));
    check(&at("no-such-program"), "s__t", &told("`no-such-program` was not found in PATH"));
    check(&with(&fixture("s", &["--exit", "3"])), "s__t", &told("exiting with 3"));
    let hanging = format!("{}startup_timeout = \"1s\"\n", fixture("s", &["--silent"]));
    check(&with(&hanging), "s__t", &told("it did not answer within 1s"));
    let world = with("[servers.s]\nurl = \"http://127.0.0.1:1/mcp\"\n");
    check(&world, "s__t", &told("no connection"));
}

#[test]
fn an_answer_beyond_the_limit_is_refused() {
    let world = with(&format!("[screen]\nmax_answer = \"1KiB\"\n\n{}", fixture("f", &[])));
    let told = Told {
        exit: 1,
        code: "server_error",
        retryable: false,
        message: "the limit is 1024",
        hint: "raise `max_answer` under `[screen]`",
    };
    check(&world, "f__big bytes=2000", &told);
    ends_with(run(&world, "call f__big bytes=500"), 0);
}

#[test]
fn the_longest_message_of_a_server_follows_the_largest_answer() {
    let most = |answer| format!("[screen]\nmax_answer = \"{answer}\"\n\n{}", fixture("f", &[]));
    let told = Told {
        exit: 1,
        code: "server_error",
        retryable: false,
        message: "the answer of `f__big` has at least 16777217 bytes; the limit is 16777216",
        hint: "raise `max_answer` under `[screen]`",
    };
    check(&with(&most("10MiB")), "f__big bytes=20000000", &told);
    ends_with(run(&with(&most("64MiB")), "call f__big bytes=20000000"), 0);
}

#[test]
fn a_broken_configuration_is_its_own_exit_code() {
    let world = with("[permissions]\nalow = [\"*\"]\n");
    let ended = ends_with(run(&world, "call f__echo --json"), 3);
    let error = &stage::json(&ended)["error"];
    assert_eq!(json!([error["code"], error["hint"]]), json!(["invalid_config", null]));
    let problem = &error["problems"][0];
    let place = &problem["place"];
    assert_eq!(json!([place["line"], place["column"]]), json!([2, 1]));
    assert_eq!(problem["key"], "permissions.alow");
    assert_eq!(problem["help"], "did you mean `allow`?");
}

#[test]
fn a_call_tells_only_of_the_server_that_it_needs() {
    let broken = "[servers.other]\ncommand = \"x\"\nenv = { KEY = \"${OTHER_KEY}\" }\n";
    let world = with(&format!("[permissions]\nallow = [\"*\"]\n\n{}{broken}", fixture("f", &[])));
    let ended = ends_with(run(&world, "call f__echo"), 0);
    assert_eq!(ended.stderr, "", "what is wrong with another server is not its concern");
    for (words, code) in [("call other__echo", 7), ("call nobody", 4)] {
        says(&ends_with(run(&world, words), code).stderr, "`OTHER_KEY`, which is not set");
    }
    assert!(!ends_with(run(&world, "call f__nothing"), 4).stderr.contains("OTHER_KEY"));
}

/// Issue 15, number 17: a full disk is no fault of Capstan.
#[test]
fn output_that_cannot_be_written_fails_and_is_no_internal_error() {
    let world = with_fixture();
    for (words, code) in
        [("call f__echo text=hi", 1), ("list --json", 1), ("call f__nobody --json", 4)]
    {
        let mut command = world.capstan(words.split(' ')).into_command();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = command.stdout(full).stderr(std::process::Stdio::piped()).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{words}: {said}");
        says(&said, "the output could not be written: No space left on device");
    }
}
