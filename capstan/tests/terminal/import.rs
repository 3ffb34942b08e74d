//! `import`: a person sees the plan, says what becomes of secrets, and says yes.

use std::fs;

use capstan_testkit::World;

use super::Terminal;

const CURSOR: &str = r#"{"mcpServers": {"docs": {
    "url": "https://docs.example.com/mcp",
    "headers": {"Authorization": "Bearer canary-0123456789"}
}}}"#;

/// Presses the key for the next choice.
const DOWN: &str = "\u{1b}[B";

/// Imports from one client, choosing what becomes of its secret, then answering the question.
#[track_caller]
fn import(choice: usize, answer: &str) -> (u32, Option<String>) {
    let world = World::new();
    world.write(world.home().join(".cursor/mcp.json"), CURSOR);
    let mut terminal = Terminal::start(&world, "import --no-check");
    terminal.wait_for("Copy them?");
    terminal.wait_for("use variables");
    terminal.press(&format!("{}\r", DOWN.repeat(choice)));
    terminal.wait_for("Write 1 server to");
    terminal.press(answer);
    let exit = terminal.end();
    assert!(!terminal.written().contains("canary"), "{}", terminal.screen());
    (exit, fs::read_to_string(world.config().join("capstan/config.toml")).ok())
}

#[test]
fn an_import_asks_what_becomes_of_secrets_and_then_whether_to_write() {
    let (exit, text) = import(0, "y\r");
    assert!(exit == 0 && text.is_some_and(|text| text.contains("canary")));
    let (exit, text) = import(1, "y\r");
    let text = text.unwrap();
    assert!(exit == 0 && text.contains("${DOCS_TOKEN}") && !text.contains("canary"), "{text}");
}

#[test]
fn an_import_that_is_refused_writes_nothing() {
    assert_eq!(import(0, "n\r"), (6, None));
    assert_eq!(import(1, "\u{1b}"), (6, None));
}
