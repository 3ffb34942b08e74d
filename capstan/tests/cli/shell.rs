//! Life in a shell: completions, manual pages, typos, closed pipes.

use capstan_testkit::{World, binary};

use crate::stage::{ends_with, failure, fixture, ok_json, quoted, run, says, with, with_fixture};

#[test]
fn every_shell_gets_a_script_that_asks_us() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = ends_with(run(&World::new(), &format!("completions {shell}")), 0);
        says(&ended.stdout, "COMPLETE");
        says(&ended.stdout, "capstan");
        assert_eq!(ended.stderr, "");
    }
    let ended = ends_with(run(&World::new(), "completions tcsh"), 2);
    says(&ended.stderr, "bash");
}

/// What the script of bash gets for the last of these words.
#[track_caller]
fn completed(world: &World, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let run = world
        .capstan(["--"].iter().chain(words))
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", index)
        .env("_CLAP_IFS", "\n");
    let ended = ends_with(run.run(), 0);
    assert_eq!(ended.stderr, "");
    ended.stdout.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn names_of_commands_servers_and_tools_are_completed() {
    let world = with(&[fixture("linear", &[]), fixture("github", &["--tools", "1"])].join("\n"));
    let commands = completed(&world, &["capstan", "en"]);
    assert_eq!(commands, ["enable"]);
    for verb in ["get", "remove", "edit", "enable", "disable", "doctor", "pins"] {
        assert_eq!(completed(&world, &["capstan", verb, "lin"]), ["linear"], "{verb}");
    }
    // Tools are known once they were listed; pressing Tab starts no server.
    assert_eq!(completed(&world, &["capstan", "call", "github__to"]), Vec::<String>::new());
    ok_json(&world, "tools");
    for verb in ["call", "why", "tools"] {
        assert_eq!(completed(&world, &["capstan", verb, "github__to"]), ["github__tool_0"]);
    }
    assert!(completed(&world, &["capstan", "tools", "git"]).contains(&"github".to_owned()));
    ends_with(run(&world, "remove github"), 0);
    assert_eq!(completed(&world, &["capstan", "call", "github__to"]), Vec::<String>::new());
}

/// The completed names, without options.
#[track_caller]
fn names(world: &World, words: &[&str]) -> Vec<String> {
    let mut names = completed(world, words);
    names.retain(|name| !name.starts_with('-'));
    names
}

#[test]
fn arguments_of_tools_and_prompts_are_completed_with_their_sign() {
    let world = with(&fixture("f", &[]));
    assert_eq!(names(&world, &["capstan", "call", "f__add", ""]), Vec::<String>::new());
    ok_json(&world, "tools");
    ok_json(&world, "prompts");
    for verb in ["call", "why"] {
        assert_eq!(names(&world, &["capstan", verb, "f__add", ""]), ["a=", "b="], "{verb}");
    }
    assert_eq!(names(&world, &["capstan", "call", "f:add", "a=1", ""]), ["b="]);
    // As bash splits words.
    assert_eq!(names(&world, &["capstan", "call", "f__add", "a", "=", "1", "b"]), ["b="]);
    let value = names(&world, &["capstan", "call", "f__add", "a", "=", ""]);
    assert_eq!(value, Vec::<String>::new());
    assert_eq!(names(&world, &["capstan", "prompt", "f__greet", "na"]), ["name="]);
}

#[test]
fn servers_and_tools_are_completed_for_pins_and_effects() {
    let world = with(&fixture("linear", &["--tools", "1"]));
    ok_json(&world, "tools");
    assert_eq!(completed(&world, &["capstan", "pins", "lin"]), ["linear"]);
    let tools = completed(&world, &["capstan", "pins", "linear", "--tool", "tool_"]);
    assert_eq!(tools, ["tool_0"]);
    assert_eq!(completed(&world, &["capstan", "acl", "classify", "lin"]), ["linear"]);
    // No gateway runs, so that no call waits.
    assert_eq!(names(&world, &["capstan", "approvals", "yes", ""]), Vec::<String>::new());
}

#[test]
fn a_broken_configuration_completes_commands_still() {
    let world = with("nonsense");
    assert_eq!(completed(&world, &["capstan", "do"]), ["doctor"]);
    assert_eq!(completed(&world, &["capstan", "get", "x"]), Vec::<String>::new());
}

#[test]
fn manual_pages_are_printed_and_written() {
    let world = World::new();
    let page = ends_with(run(&world, "man"), 0).stdout;
    says(&page, ".TH capstan 1");
    says(&page, "Exit codes");
    ends_with(run(&world, "man pages"), 0);
    for name in ["capstan", "capstan-add", "capstan-call", "capstan-config-show"] {
        let path = world.project().join(format!("pages/{name}.1"));
        says(&crate::stage::read(path), ".TH");
    }
    world.write("project/file", "");
    ends_with(run(&world, "man file"), 2);
}

#[test]
fn a_typo_gets_the_nearest_word() {
    let world = with_fixture();
    for (typed, meant) in [
        ("lst", "list"),
        ("tool", "tools"),
        ("enabel f", "enable"),
        ("config chek", "check"),
        ("list --jsno", "--json"),
        ("audit --verfy", "--verify"),
    ] {
        let ended = ends_with(run(&world, typed), 2);
        says(&ended.stderr, &format!("'{meant}'"));
        assert_eq!(ended.stdout, "");
    }
}

#[test]
fn what_is_not_understood_is_a_usage_error_for_programs_too() {
    let world = with_fixture();
    for words in ["--json", "--json nonsense", "call --json", "tools --wait soon --json"] {
        let ended = ends_with(run(&world, words), 2);
        let (code, message, _) = failure(&ended);
        assert_eq!(code, "invalid_input", "{words}");
        assert!(!message.is_empty(), "{words}");
    }
    ends_with(run(&world, ""), 2);
}

#[test]
fn help_and_version_go_to_stdout() {
    let world = World::new();
    for words in ["--help", "help call", "add --help", "-h"] {
        let ended = ends_with(run(&world, words), 0);
        says(&ended.stdout, "Usage: capstan");
        assert_eq!(ended.stderr, "");
    }
    let version = ends_with(run(&world, "--version"), 0).stdout;
    assert_eq!(version, format!("capstan {}\n", env!("CARGO_PKG_VERSION")));
}

#[cfg(unix)]
#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let world = with_fixture();
    let capstan = quoted(binary("capstan").to_str().unwrap());
    for (line, first) in [
        ("tools | head -1", "TOOL"),
        ("call f__big bytes=5000000 | head -c 4", "xxxx"),
        ("call f__big bytes=5000000 --json | head -c 4", "{\"co"),
        ("--help | head -1", "One hub"),
        ("config schema | head -1", "{"),
        ("list --json | true", ""),
    ] {
        let script = format!("{capstan} {line}");
        let ended = ends_with(world.program("sh", ["-c", &script]).run(), 0);
        says(&ended.stdout, first);
        assert!(!ended.stderr.contains("panicked"), "{line}: {}", ended.stderr);
    }
}

#[test]
fn without_a_home_there_is_a_reason() {
    let world = World::new();
    let mut command = world.capstan(["list"]).into_command();
    for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    // Some systems know a home without the variable; then it is simply used.
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
