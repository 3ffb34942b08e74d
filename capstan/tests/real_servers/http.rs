//! Servers behind HTTP: everything that a person does with one, in both eras and over both
//! transports.

use capstan_testkit::World;
use serde_json::json;

use crate::remote::{Remote, use_it};
use crate::screen::Screen;
use crate::{assert_offers, call, run, told};

// --- The reference server that has everything ---

/// Over one of its transports, at one path, with more lines in the configuration.
#[track_caller]
fn check_everything(transport: &str, path: &str, more: &str) {
    let world = World::new();
    let remote = Remote::everything(&world, transport);
    use_it(&world, &format!("{}{path}", remote.url), more);

    assert_offers(&world, &["echo", "get-sum", "trigger-long-running-operation"]);
    let about = told(&world, &["get", "it", "--refresh"]);
    assert_eq!((&about["protocol"], &about["state"]), (&json!("2025-11-25"), &json!("connected")));
    assert_eq!(call(&world, "get-sum", &json!({ "a": 2, "b": 40 })).ok().trim(), {
        "The sum of 2 and 40 is 42."
    });
    let listed = told(&world, &["resources", "it"]);
    assert!(listed.as_array().unwrap().len() >= 7, "{listed}");
    let document = "@it:demo://resource/static/document/features.md";
    let read = run(&world, &["read", document]).ok();
    assert!(read.contains("Everything Server"), "{read}");
    // A template, spelled out and filled in.
    for words in [&["@it:demo://resource/dynamic/text/7"][..], &["@it:Dynamic Text Resource", "7"]]
    {
        let read = run(&world, &[&["read"], words].concat()).ok();
        assert!(read.contains("Resource 7"), "{words:?}: {read}");
    }
    let prompt = run(&world, &["prompt", "it:args-prompt", "Ulm", "state=Bavaria"]).ok();
    assert_eq!(prompt.trim(), "user: What's weather in Ulm, Bavaria?");
    assert_eq!(run(&world, &["prompt", "it:args-prompt"]).status, Some(2));

    let words = ["call", "it__trigger-long-running-operation", "duration=600", "steps=600"];
    let mut screen = Screen::start(&world, &words);
    screen.wait_for("  0 %");
    assert_eq!(screen.interrupt(), 130);
    remote.wait_for_note("notifications/cancelled");
}

#[test]
fn everything_is_used_over_streamable_http() {
    check_everything("streamableHttp", "/mcp", "type = \"http\"");
}

#[test]
fn everything_is_used_over_the_older_transport() {
    check_everything("sse", "/sse", "type = \"sse\"");
}

#[test]
fn which_transport_everything_speaks_is_found_out() {
    for (transport, path) in [("streamableHttp", "/mcp"), ("sse", "/sse")] {
        let world = World::new();
        let remote = Remote::everything(&world, transport);
        use_it(&world, &format!("{}{path}", remote.url), "");
        let said = call(&world, "echo", &json!({ "message": "ü" })).ok();
        assert_eq!(said.trim(), "Echo: ü", "{transport}");
    }
}

// --- Servers made with the packages of Python ---

#[track_caller]
fn check_python(package: &str, asked: &str, revision: &str) {
    let world = World::new();
    let remote = Remote::python(&world, package);
    use_it(&world, &remote.url, &format!("protocol = {asked:?}"));

    let about = told(&world, &["get", "it", "--refresh"]);
    assert_eq!((&about["protocol"], &about["state"]), (&json!(revision), &json!("connected")));
    assert_eq!(about["instructions"], "Counts, waits and greets.");
    assert_offers(&world, &["add", "count", "wait"]);
    let sum = told(&world, &["call", "it__add", "a=2", "b=40"]);
    assert_eq!(sum["structuredContent"]["result"], 42, "{sum}");
    // What does not fit the tool's schema is not even sent.
    assert_eq!(call(&world, "add", &json!({ "a": "two", "b": 1 })).status, Some(2));
    assert_eq!(call(&world, "count", &json!({ "to": 3 })).ok().trim(), "counted to 3");
    let reads: [(&[&str], &str); 3] = [
        (&["@it:notes://today"], "nothing"),
        (&["@it:notes://mon/9"], "mon at 9"),
        (&["@it:at", "tue", "7"], "tue at 7"),
    ];
    for (words, expected) in reads {
        let read = run(&world, &[&["read"], words].concat()).ok();
        assert_eq!(read.trim(), expected, "{words:?}");
    }
    assert_eq!(run(&world, &["read", "@it:notes://nowhere"]).status, Some(4));
    let greeting = run(&world, &["prompt", "it:greet", "Ada", "style=formal"]).ok();
    assert_eq!(greeting.trim(), "user: Greet Ada in a formal way.");
    assert_eq!(run(&world, &["prompt", "it:greet"]).status, Some(2));

    let mut screen = Screen::start(&world, &["call", "it__wait"]);
    screen.wait_for("50 %  waiting");
    assert_eq!(screen.interrupt(), 130);
    remote.wait_for_note("cancelled");
    // In the modern era the closed stream says it all.
    let told = remote.notes().iter().any(|note| note == "notifications/cancelled");
    assert_eq!(told, revision != "2026-07-28", "{:?}", remote.notes());
}

#[test]
fn a_server_of_mcp_is_used_in_the_legacy_era() {
    check_python("mcp", "legacy", "2025-11-25");
}

#[test]
fn a_server_of_mcp_is_found_to_be_modern() {
    check_python("mcp", "auto", "2026-07-28");
}

#[test]
fn a_server_of_fastmcp_is_used_in_the_legacy_era() {
    check_python("fastmcp", "legacy", "2025-11-25");
}

#[test]
fn a_server_of_fastmcp_is_found_to_be_modern() {
    check_python("fastmcp", "auto", "2026-07-28");
}
