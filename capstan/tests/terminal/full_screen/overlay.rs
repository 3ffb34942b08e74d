//! The servers above the conversation.

use std::fs;

use capstan_testkit::World;
use capstan_testkit::model_api::ModelApi;

use super::{QUIT, Terminal, shown, start_sized, world};

/// Takes a snapshot; the places of programs differ between machines.
#[track_caller]
fn snapshot(world: &World, terminal: &Terminal, name: &str) {
    let mut settings = world.snapshots();
    settings.add_filter(r"│ \S*/capstan-fixture.*", "│ [TARGET]");
    settings.bind(|| insta::assert_snapshot!(name, shown(terminal)));
}

/// C13: every server with its state, and the rule that decides about the tool under the cursor.
#[test]
fn c13_the_overlay_shows_servers_and_the_rule_of_the_focused_tool() {
    for (name, size) in [("80x24", (24, 80)), ("160x50", (50, 160))] {
        let world = world();
        let config = fs::read_to_string(world.config().join("capstan/config.toml")).unwrap();
        world.write_user_config(&format!(
            "{config}\n[servers.off]\ncommand = \"nothing\"\nenabled = false\n\n\
             [servers.broken]\ncommand = \"/no/such/program\"\n\n\
             [servers.f.permissions]\nask = [\"count\"]\n"
        ));
        let api = ModelApi::start([]);
        let mut terminal = start_sized(&world, &api, "", size);
        terminal.wait_for("1 of 3 servers");
        terminal.press("/mcp\r");
        for piece in ["● f ", "○ off", "disabled", "○ broken", "failed", "prompts, ≈"] {
            terminal.wait_for(piece);
        }
        snapshot(&world, &terminal, &format!("servers_{name}"));
        terminal.press("t");
        terminal.wait_for("f: tools");
        terminal.wait_for("by permissions.default");
        snapshot(&world, &terminal, &format!("tools_{name}"));
        // The rule of a tool is told once the cursor stands on it.
        terminal.press("\u{1b}[B\u{1b}[B");
        terminal.wait_for("ask by servers.f.permissions.ask: count");
        terminal.press("\u{1b}");
        terminal.wait_for("servers ─");
        terminal.press("\u{1b}");
        terminal.wait_for("a message, / for commands");
        terminal.press(QUIT);
        assert_eq!(terminal.end(), 0);
    }
}

#[test]
fn a_server_is_switched_off_in_its_file() {
    let world = world();
    let api = ModelApi::start([]);
    let mut terminal = start_sized(&world, &api, "", (24, 80));
    terminal.wait_for("1 of 1 servers");
    terminal.press("/mcp\r");
    terminal.wait_for("● f ");
    terminal.press("e");
    terminal.wait_for("saved; conversations that begin later have it so");
    let config = fs::read_to_string(world.config().join("capstan/config.toml")).unwrap();
    assert!(config.contains("enabled = false"), "{config}");
    terminal.press("s");
    terminal.wait_for("f: messages (stderr)");
    terminal.press("\u{1b}");
    terminal.wait_for("servers ─");
    terminal.press("q");
    terminal.press(QUIT);
    assert_eq!(terminal.end(), 0);
}
