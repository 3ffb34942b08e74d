//! `enable`, `disable` and `remove`: they change the lines that they must and no others.

use serde_json::json;

use crate::stage::{
    column, ends_with, failure, fixture, ok_json, row, run, says, user_config, with, with_project,
};

/// A file that somebody cares for.
const KEPT: &str = r#"# My servers.   Two spaces stay.

# Issues.
[servers.linear]
command = "npx"   # with spaces
args = [
  "-y",
  "@linear/mcp-server", # the package
]

[servers.linear.permissions]
allow = [
  "list_*", # harmless
  "read_*"
]

# The wiki, not used yet.
[servers."My Wiki"]
url    = 'https://wiki.example.com/mcp'
enabled = false  # until June

[servers.old]
command = "uvx"
disabled = true # broken

# Limits.
[tools]
max_tool_calls_per_session = 5
# The end.
"#;

/// Runs commands one after the other and compares the whole text of the file.
#[track_caller]
fn check(commands: &[&[&str]], change: (&str, &str)) {
    let world = with(KEPT);
    for words in commands {
        ends_with(world.capstan(*words).run(), 0);
    }
    let (from, to) = change;
    assert_eq!(KEPT.matches(from).count(), 1, "the test changes one place");
    assert_eq!(user_config(&world), KEPT.replace(from, to));
}

#[test]
fn c05_enable_and_disable_change_one_word_each() {
    check(&[&["enable", "My Wiki"]], ("enabled = false  # until", "enabled = true  # until"));
    check(&[&["enable", "my-wiki"]], ("enabled = false  # until", "enabled = true  # until"));
    check(&[&["enable", "old"]], ("disabled = true #", "disabled = false #"));
    check(&[&["disable", "old"]], ("# The end.", "# The end."));
    check(&[&["enable", "linear"]], ("# The end.", "# The end."));
}

#[test]
fn c05_disable_adds_one_line_and_enable_turns_it() {
    let last = "  \"@linear/mcp-server\", # the package\n]\n";
    check(&[&["disable", "linear"]], (last, &format!("{last}enabled = false\n")));
    let both: &[&[&str]] = &[&["disable", "linear"], &["enable", "linear"]];
    check(both, (last, &format!("{last}enabled = true\n")));
}

#[test]
fn c72_remove_takes_the_entry_and_keeps_the_comments_around_it() {
    let (_, entry) = KEPT.split_at(KEPT.find("[servers.linear]").unwrap());
    let (entry, _) = entry.split_at(entry.find("\n# The wiki").unwrap());
    check(&[&["remove", "linear"]], (entry, ""));
    let entry = "[servers.old]\ncommand = \"uvx\"\ndisabled = true # broken\n\n";
    check(&[&["remove", "old"]], (entry, ""));
}

#[test]
fn c05_a_disabled_server_has_no_process_and_enable_starts_it() {
    let trace = |world: &capstan_testkit::World| world.home().join("trace");
    let world = with("");
    let path = trace(&world);
    let options = ["--trace", path.to_str().unwrap()];
    world.write_user_config(&format!("{}disabled = true\n", fixture("f", &options)));
    let listed = row(&ok_json(&world, "list"), "name", "f");
    assert_eq!(json!([listed["state"], listed["tools"]]), json!(["disabled", null]));
    says(&run(&world, "list").stdout, "○ f");
    assert_eq!(ok_json(&world, "tools"), json!([]));
    let ended = ends_with(run(&world, "call f__echo --json"), 7);
    says(&failure(&ended).1, "`capstan enable f` starts it");
    assert!(!path.exists(), "a disabled server was started");

    ends_with(run(&world, "enable f"), 0);
    assert_eq!(row(&ok_json(&world, "list"), "name", "f")["state"], "connected");
    says(&run(&world, "list").stdout, "● f");
    assert!(path.exists());
}

#[test]
fn edits_tell_what_they_did_and_where() {
    let world = with(KEPT);
    let file = world.config().join("capstan/config.toml");
    for (words, verb, name) in [
        ("enable my-wiki", "enabled", "My Wiki"),
        ("disable my-wiki", "disabled", "My Wiki"),
        ("remove my-wiki", "removed", "My Wiki"),
    ] {
        let told = ok_json(&world, words);
        assert_eq!(told, json!({ verb: name, "file": file }));
    }
    let ended = ends_with(run(&world, "disable linear"), 0);
    says(&ended.stderr, &format!("disabled `linear` in {}", file.display()));
    assert_eq!(ended.stdout, "");
}

#[test]
fn c72_an_unknown_server_is_not_found_and_the_nearest_is_named() {
    let world = with(KEPT);
    for verb in ["remove", "enable", "disable", "get"] {
        let ended = ends_with(run(&world, &format!("{verb} linaer --json")), 4);
        let (code, message, hint) = failure(&ended);
        assert_eq!((code.as_str(), hint.as_str()), ("not_found", "did you mean `linear`?"));
        says(&message, "`linaer`");
        let ended = ends_with(run(&world, &format!("{verb} linaer")), 4);
        says(&ended.stderr, "did you mean `linear`?");
        let ended = ends_with(run(&world, &format!("{verb} zzz --json")), 4);
        says(&failure(&ended).2, "`capstan list`");
    }
    let ended = ends_with(run(&world, "remove -s user linaer --json"), 4);
    assert_eq!(failure(&ended).2, "did you mean `linear`?");
    assert_eq!(user_config(&world), KEPT);
}

#[test]
fn the_nearer_file_is_changed_and_a_scope_chooses_the_other() {
    let world = with_project();
    world.write_user_config("[servers.a]\ncommand = \"user\"\n");
    let ours = world.write_project_config("[servers.a]\ncommand = \"project\"\n");
    ends_with(run(&world, "disable a"), 0);
    assert_eq!(user_config(&world), "[servers.a]\ncommand = \"user\"\n");
    says(&crate::stage::read(&ours), "enabled = false");
    ends_with(run(&world, "remove -s user a"), 0);
    assert_eq!(user_config(&world), "");
    says(&crate::stage::read(&ours), "[servers.a]");
    ends_with(run(&world, "remove -s user a"), 4);
}

#[test]
fn remove_leaves_nothing_to_start() {
    let world = with(&format!("{}\n{}", fixture("a", &[]), fixture("b", &[])));
    ends_with(run(&world, "remove a"), 0);
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["b"]);
    ends_with(run(&world, "call a__echo"), 4);
}
