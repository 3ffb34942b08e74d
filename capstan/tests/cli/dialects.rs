//! Files of other programs: found where those programs keep them, read as they are.

use capstan_testkit::{World, binary};

use crate::stage::{ends_with, failure, quoted, read, run, says, with_project};

fn json_server(name: &str) -> String {
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    format!(r#"{{"mcpServers":{{"{name}":{{"command":{command},"args":[]}}}}}}"#)
}

#[test]
fn c22_a_shared_servers_file_is_found_and_the_variable_takes_its_place_alone() {
    let world = World::new();
    world.write(world.config().join("mcp/servers.json"), json_server("shared"));
    says(&run(&world, "tools --json").stdout, "shared__echo");

    let other = world.home().join("other.json");
    world.write(&other, json_server("other"));
    let ended = world.capstan(["tools", "--json"]).env("MCP_CONFIG_PATH", other).run();
    says(&ended.stdout, "other__echo");
    assert!(!ended.stdout.contains("shared__"), "{}", ended.stdout);
}

/// Issue "First hour" 3: the file needs no key that only avelino's program has.
#[test]
fn c22_the_file_that_the_variable_names_has_avelinos_meaning() {
    let world = World::new();
    let command = quoted(binary("capstan-fixture").to_str().unwrap());
    let text = format!(
        r#"{{"mcpServers":{{"other":{{"command":{command},"env":{{"A":"${{NOT_SET_ANYWHERE}}"}}}}}}}}"#
    );
    for place in ["other.json", ".mcp.json", "x/.cursor/mcp.json"] {
        let other = world.home().join(place);
        world.write(&other, &text);
        let shown = world.capstan(["config", "show"]).env("MCP_CONFIG_PATH", &other).run().ok();
        says(&shown, "default of avelino (");
        let ended =
            world.capstan(["call", "other__echo", "text=hi"]).env("MCP_CONFIG_PATH", other).run();
        assert_eq!(ended.status, Some(0), "{place}: {}", ended.stderr);
    }
    // A key of another program still decides.
    let other = world.home().join("other.toml");
    world.write(&other, format!("[servers.mine]\ncommand = {command}\n"));
    let shown = world.capstan(["config", "show"]).env("MCP_CONFIG_PATH", other).run().ok();
    assert!(!shown.contains("default of avelino"), "{shown}");
    says(&shown, "servers.mine.command");
}

#[test]
fn c22_a_missing_file_that_the_variable_names_is_named() {
    let world = World::new();
    for words in ["list", "config check", "tools"] {
        let command = world.capstan(words.split_whitespace());
        let ended = command.env("MCP_CONFIG_PATH", "nowhere/servers.json").run();
        let said = format!("{}{}", ended.stdout, ended.stderr);
        says(&said, "the file that `MCP_CONFIG_PATH` names does not exist: ");
        says(&said, "nowhere/servers.json");
        says(&said, "correct the variable, or unset it");
    }
}

#[test]
fn a_projects_mcp_json_starts_nothing_until_it_is_approved() {
    let world = World::new();
    world.write(world.project().join(".mcp.json"), json_server("brought"));
    says(&run(&world, "list --json").stdout, "awaiting_approval");
    assert_eq!(run(&world, "call brought__echo").status, Some(7));
    run(&world, "trust --yes").ok();
    assert_eq!(run(&world, "call brought__echo").status, Some(0));
}

#[test]
fn a_dialect_can_be_named_and_such_a_file_is_never_edited() {
    let world = World::new();
    let file = world.home().join("any.json");
    let text = json_server("mine");
    world.write(&file, &text);
    let config = format!("claude:{}", file.display());
    let with = |words: &[&str]| {
        let words: Vec<&str> =
            ["--config", &config].into_iter().chain(words.iter().copied()).collect();
        world.capstan(words).run()
    };
    says(&with(&["config", "show"]).stdout, "servers.mine.command");
    let ended = with(&["remove", "mine"]);
    assert_eq!(ended.status, Some(2));
    says(&ended.stderr, "a file of another program");
    assert_eq!(read(&file), text);
}

#[test]
fn a_dialect_that_there_is_not_is_answered_with_those_that_there_are() {
    let world = World::new();
    let ended = ends_with(run(&world, "list --config cladue:servers.json --json"), 3);
    let (_, message, hint) = failure(&ended);
    says(&message, "does not exist");
    says(&hint, "`cladue` is not a dialect; the dialects are ");
    says(&hint, "claude");
    for file in ["nowhere.json", "folder/a:b.json"] {
        let ended = ends_with(run(&world, &format!("list --config {file} --json")), 3);
        assert_eq!(failure(&ended).2, "", "{file}");
    }
}

#[test]
fn a_file_of_the_project_that_is_also_named_is_read_once() {
    let world = with_project();
    let text =
        r#"{"mcpServers":{"s":{"command":"x","bogus":1,"env":{"A":"${NOT_SET_ANYWHERE}"}}}}"#;
    world.write(world.project().join(".mcp.json"), text);
    let once = |words: &str| {
        let ended = world.capstan(words.split_whitespace()).within(world.project()).run();
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(said.matches("needs the environment variable").count(), 1, "{words}: {said}");
    };
    once("config check");
    once("config check --config .mcp.json");
    once("config check --config claude:./.mcp.json");
}
