//! `adopt`: a person sees the plan, chooses servers, says who confirms writes, and says yes.

use std::fs;

use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use super::Terminal;

/// Presses the key for the next choice.
const DOWN: &str = "\u{1b}[B";

/// A world in which Claude Code has two servers, and its file.
fn world() -> (World, std::path::PathBuf) {
    let world = World::new();
    let server = |args: &[&str]| json!({ "command": binary("capstan-fixture"), "args": args });
    let servers = json!({ "one": server(&[]), "two": server(&["--era", "legacy"]) });
    let text = json!({ "mcpServers": servers }).to_string();
    let path = world.write(world.home().join(".claude.json"), text);
    (world, path)
}

#[test]
fn a_person_chooses_servers_and_who_confirms_and_sees_that_they_answer() {
    let (world, path) = world();
    let mut terminal = Terminal::start(&world, "adopt claude-code");
    terminal.wait_for("Which servers move to Capstan?");
    // The first one stays.
    terminal.press(" \r");
    terminal.wait_for("Who asks you before a call");
    terminal.press(&format!("{DOWN}\r"));
    terminal.wait_for("Move 1 server of Claude Code to Capstan?");
    terminal.press("y\r");
    terminal.wait_for("`two` answers: ");
    assert_eq!(terminal.end(), 0, "{}", terminal.screen());
    let file: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let names: Vec<&String> = file["mcpServers"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["one", "capstan"]);
    let args = &file["mcpServers"]["capstan"]["args"];
    assert_eq!(args, &json!(["serve", "--confirm", "client"]));
}

#[test]
fn a_move_that_is_refused_writes_nothing() {
    for (question, keys) in [
        ("Which servers move to Capstan?", "\u{1b}"),
        ("Which servers move to Capstan?", " \u{1b}[B \r"),
    ] {
        let (world, path) = world();
        let before = fs::read_to_string(&path).unwrap();
        let mut terminal = Terminal::start(&world, "adopt claude-code");
        terminal.wait_for(question);
        terminal.press(keys);
        assert_eq!(terminal.end(), 6, "{}", terminal.screen());
        assert_eq!(fs::read_to_string(path).unwrap(), before);
    }
    let (world, path) = world();
    let before = fs::read_to_string(&path).unwrap();
    let mut terminal = Terminal::start(&world, "adopt claude-code one --confirm capstan");
    terminal.wait_for("Move 1 server of Claude Code to Capstan?");
    terminal.press("n\r");
    assert_eq!(terminal.end(), 6, "{}", terminal.screen());
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}
