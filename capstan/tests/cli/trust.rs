//! A file that came with a project starts nothing until somebody has looked at it.

use std::path::PathBuf;

use capstan_testkit::World;

use crate::stage::{column, ends_with, failure, fixture, ok_json, read, run, says, with_project};

/// A project whose own file has the server `f`, which leaves a trace when it is started.
#[track_caller]
fn planted() -> (World, PathBuf) {
    let world = with_project();
    let trace = world.home().join("trace");
    world.write_project_config(&fixture("f", &["--trace", trace.to_str().unwrap()]));
    (world, trace)
}

#[test]
fn nothing_of_an_unapproved_file_is_started() {
    let (world, trace) = planted();
    let listed = ok_json(&world, "list");
    assert_eq!(column(&listed, "state"), ["awaiting_approval"]);
    says(&column(&listed, "error")[0], "`capstan trust`");
    says(&run(&world, "list").stdout, "◐ f");
    assert_eq!(ok_json(&world, "tools"), serde_json::json!([]));
    says(&run(&world, "tools").stderr, "its file is not trusted; run `capstan trust`");
    for words in ["call f__echo --json", "tools f --json", "why f__echo --json"] {
        let ended = ends_with(run(&world, words), 7);
        says(&failure(&ended).1, "its file is not trusted");
    }
    ends_with(run(&world, "get f"), 0);
    ends_with(run(&world, "doctor"), 0);
    ends_with(run(&world, "config show"), 0);
    assert!(!trace.exists(), "a server was started");
}

#[test]
fn without_a_person_nothing_is_approved_unless_it_is_said() {
    let (world, _) = planted();
    let ended = ends_with(run(&world, "trust"), 2);
    says(&ended.stderr, "[servers.f]");
    says(&ended.stderr, "`capstan trust --yes`");
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["awaiting_approval"]);
    let ended = ends_with(run(&world, "trust --yes"), 0);
    says(&ended.stderr, "[servers.f]");
    says(&ended.stderr, "trusted");
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["connected"]);
    says(&ends_with(run(&world, "trust"), 0).stderr, "is trusted in its current version");
}

#[test]
fn all_files_are_shown_before_the_hint_and_one_can_be_chosen() {
    let (world, _) = planted();
    world.write("project/.mcp.json", r#"{"mcpServers":{"other":{"command":"/bin/other"}}}"#);
    let ended = ends_with(run(&world, "trust"), 2);
    says(&ended.stderr, "[servers.f]");
    says(&ended.stderr, "/bin/other");
    says(&ended.stderr, "`capstan trust --yes` trusts these 2 files without asking");
    ends_with(run(&world, "trust --yes .mcp.json"), 0);
    let listed = ok_json(&world, "list");
    assert_eq!(crate::stage::row(&listed, "name", "f")["state"], "awaiting_approval");
    assert_ne!(crate::stage::row(&listed, "name", "other")["state"], "awaiting_approval");
    let (_, message, hint) = failure(&ends_with(run(&world, "trust no.toml --json"), 4));
    says(&message, "no.toml is not a file of this project");
    says(&hint, ".mcp.json");
}

#[test]
fn a_change_asks_again_and_shows_what_changed() {
    let (world, trace) = planted();
    ends_with(run(&world, "trust --yes"), 0);
    let path = world.project().join(".capstan/config.toml");
    let text = read(&path);
    world.write_project_config(&format!("{text}env = {{ EXTRA = \"1\" }}\n"));
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["awaiting_approval"]);
    assert!(!trace.exists());
    let ended = ends_with(run(&world, "trust"), 2);
    says(&ended.stderr, "\n│ +env = { EXTRA = \"1\" }\n");
    says(&ended.stderr, "\n│  [servers.f]\n");
    // Back to what was approved, it needs no new approval.
    world.write_project_config(&text);
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["connected"]);
}

#[test]
fn an_approval_can_be_taken_back() {
    let (world, _) = planted();
    ends_with(run(&world, "trust --yes"), 0);
    says(&ends_with(run(&world, "trust --revoke"), 0).stderr, "is no longer trusted");
    assert_eq!(column(&ok_json(&world, "list"), "state"), ["awaiting_approval"]);
    says(&ends_with(run(&world, "trust --revoke"), 0).stderr, "was not trusted");
}

#[test]
fn trust_project_counts_for_one_run() {
    let (world, _) = planted();
    ends_with(run(&world, "call f__echo --trust-project"), 0);
    ends_with(run(&world, "call f__echo"), 7);
}

#[test]
fn an_approval_is_for_one_place() {
    let (world, _) = planted();
    ends_with(run(&world, "trust --yes"), 0);
    let text = read(world.project().join(".capstan/config.toml"));
    world.write("other/.capstan/config.toml", text);
    let other = world.home().join("other");
    let ended = world.capstan(["list", "--json"]).within(other).run();
    assert_eq!(column(&crate::stage::json(&ended), "state"), ["awaiting_approval"]);
}

#[test]
fn an_unapproved_file_cannot_take_the_place_of_the_users_server() {
    let (world, trace) = planted();
    world.write_user_config(&fixture("f", &[]));
    let ended = ends_with(run(&world, "call f__echo --json"), 7);
    says(&failure(&ended).1, "not trusted");
    assert!(!trace.exists());
}

#[test]
fn what_is_shown_cannot_hide_itself() {
    let world = with_project();
    let hidden = "# harmless \u{1b}[2K\u{1b}[1A\u{202e}\n[servers.x]\ncommand = \"evil\"\n";
    world.write_project_config(hidden);
    let ended = run(&world, "trust");
    says(&ended.stderr, "evil");
    let sneaky = |c: char| c == '\u{1b}' || c == '\u{202e}';
    assert!(!ended.stderr.contains(sneaky), "{:?}", ended.stderr);
}

#[test]
fn where_there_is_no_file_there_is_nothing_to_approve() {
    let ended = ends_with(run(&World::new(), "trust --yes --json"), 4);
    let (code, message, _) = failure(&ended);
    assert_eq!(code, "not_found");
    says(&message, "has no project configuration file");
}
