//! Servers that misbehave: each breaks itself and nobody else, and its state says how.

use capstan_testkit::World;

use crate::stage::{column, ends_with, failure, fixture, json, ok_json, row, run, says, with};

/// The state of the server `f` in `list`, and what there is to say about it.
#[track_caller]
fn state(options: &[&str], more: &str) -> (String, String) {
    let world = with(&format!("{}{more}\n{}", fixture("f", options), fixture("good", &[])));
    let listed = ok_json(&world, "list --wait 30s");
    assert_eq!(row(&listed, "name", "good")["state"], "connected");
    let row = row(&listed, "name", "f");
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("error"))
}

#[track_caller]
fn connects(options: &[&str]) {
    assert_eq!(state(options, ""), ("connected".to_owned(), String::new()));
}

#[track_caller]
fn fails(options: &[&str], more: &str, reason: &str) {
    let (state, error) = state(options, more);
    assert_eq!(state, "failed", "{error}");
    says(&error, reason);
}

#[test]
fn lines_that_are_no_messages_harm_nobody() {
    connects(&["--garbage"]);
    connects(&["--garbage", "--era", "legacy"]);
    connects(&["--stderr", "1000"]);
}

#[test]
fn every_reaction_to_the_first_message_is_survived() {
    for reaction in ["empty", "silent", "die"] {
        connects(&["--era", "legacy", "--discover", reaction]);
    }
}

#[test]
fn a_server_that_exits_at_once_failed_with_its_last_words() {
    fails(&["--exit", "3"], "", "fixture: exiting with 3");
    fails(&["--exit", "0"], "", "fixture: exiting with 0");
    fails(&["--nonsense"], "", "option `--nonsense`");
}

#[test]
fn a_server_that_floods_its_output_failed_with_the_reason() {
    fails(&["--flood", "300000000"], "", "without a newline");
}

#[test]
fn a_server_that_never_answers_failed_after_its_time() {
    fails(&["--silent"], "startup_timeout = \"1s\"\n", "it did not answer within 1s");
}

#[test]
fn a_server_of_the_wrong_era_failed_with_the_reason() {
    fails(&["--era", "legacy"], "protocol = \"modern\"\n", "protocol = \"modern\"");
    fails(&["--era", "modern"], "protocol = \"legacy\"\n", "refused the handshake");
}

#[test]
fn a_server_that_is_slow_to_start_is_waited_for_when_it_is_the_only_one() {
    let world = with(&fixture("f", &["--start-delay-ms", "2500"]));
    assert_eq!(column(&ok_json(&world, "tools"), "id").len(), 18);
}

#[test]
fn a_server_without_tools_is_well() {
    let world = with(&fixture("f", &["--no-tools"]));
    let listed = row(&ok_json(&world, "list"), "name", "f");
    assert_eq!((&listed["state"], &listed["tools"]), (&"connected".into(), &0.into()));
    assert_eq!((&listed["resources"], &listed["prompts"]), (&1.into(), &1.into()));
    assert_eq!(ok_json(&world, "tools"), serde_json::json!([]));
}

#[test]
fn a_required_server_that_failed_fails_the_list() {
    let entry = "[servers.r]\ncommand = \"/nowhere/r\"\nrequired = true\n";
    let world = with(&format!("{entry}\n{}", fixture("good", &[])));
    for words in ["list", "tools", "list --json", "tools --json"] {
        let ended = ends_with(run(&world, words), 7);
        says(&ended.stderr, "server `r` is required and failed");
    }
    assert!(json(&run(&world, "list --json")).is_array(), "one document");
    // The others stay usable.
    ends_with(run(&world, "call good__echo"), 0);

    ends_with(run(&world, "disable r"), 0);
    ends_with(run(&world, "list"), 0);
}

#[test]
fn a_broken_entry_breaks_its_own_server_only() {
    let broken = "[servers.broken]\ncomand = \"npx\"\n";
    let world = with(&format!("{broken}\n{}", fixture("good", &[])));
    let ended = ends_with(run(&world, "list --json"), 0);
    assert_eq!(column(&json(&ended), "state"), ["failed", "connected"]);
    let error = row(&json(&ended), "name", "broken")["error"].to_string();
    says(&error, "`servers.broken.comand` is not a known key");
    says(&run(&world, "config check").stderr, "did you mean `command`?");
    ends_with(run(&world, "call good__echo"), 0);
    let ended = ends_with(run(&world, "call broken__x --json"), 7);
    says(&failure(&ended).1, "`servers.broken.comand`");
}

#[test]
fn servers_that_are_not_there_fail_with_the_reason() {
    let world = with(
        "[servers.h]\nurl = \"http://127.0.0.1:1/mcp\"\n\n\
         [servers.s]\ntype = \"sse\"\nurl = \"http://127.0.0.1:1/sse\"\n\n\
         [servers.c]\ntype = \"cli\"\ncommand = \"no-such-program\"\n\n\
         [servers.o]\nopenapi = \"api.json\"\n",
    );
    let listed = ok_json(&world, "list");
    assert_eq!(column(&listed, "transport"), ["http", "sse", "cli", "openapi"]);
    assert_eq!(column(&listed, "state"), ["failed"; 4]);
    let errors = column(&listed, "error");
    let reasons = [
        "no connection",
        "no connection",
        "command `no-such-program` was not found in PATH",
        "cannot read",
    ];
    for (error, reason) in errors.iter().zip(reasons) {
        says(error, reason);
    }
}

#[test]
fn no_mcp_starts_nothing() {
    let world = World::new();
    let trace = world.home().join("trace");
    world.write_user_config(&fixture("f", &["--trace", trace.to_str().unwrap()]));
    let quiet = |run: capstan_testkit::Capstan| ends_with(run.run(), 0).stdout;
    assert_eq!(quiet(world.capstan(["tools", "--json", "--no-mcp"])), "[]\n");
    for variable in ["CAPSTAN_NO_MCP", "CALIBAN_NO_MCP"] {
        let told = world.capstan(["list", "--json"]).env(variable, "1");
        assert_eq!(quiet(told), "[]\n");
        let ended = world.capstan(["call", "f__echo"]).env(variable, "1").run();
        ends_with(ended, 4);
    }
    assert!(!trace.exists(), "a server was started");
    let told = world.capstan(["list", "--json"]).env("CAPSTAN_NO_MCP", "0");
    says(&quiet(told), "connected");
}
