//! The first hour of a new user: suggestions, tables and messages (seed rows C05 and C62).

use std::fs;

use capstan_testkit::{World, binary};

use crate::stage::{ends_with, fixture, ok_json, quoted, row, run, says, with, with_fixture};

/// A server that prints this to stderr and ends.
fn failing(name: &str, line: &str) -> String {
    let script = quoted(&format!("echo '{line}' >&2; exit 1"));
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\n")
}

#[track_caller]
fn error_of(world: &World, server: &str) -> String {
    row(&ok_json(world, "list"), "name", server)["error"].as_str().unwrap().to_owned()
}

/// Number 15.
#[test]
fn a_server_that_lacks_a_variable_says_which_line_passes_it_on() {
    let world = with(&failing("weather", "Error: WEATHER_TOKEN is not set"));
    let unset = error_of(&world, "weather");
    says(&unset, "`WEATHER_TOKEN` is not set; set it in your shell");
    let called = world.capstan(["call", "weather__now"]).env("WEATHER_TOKEN", "s3cr3t-value").run();
    let told = ends_with(called, 7).stderr;
    says(&told, "`WEATHER_TOKEN` is set in your shell but not passed on");
    says(&told, "`env_passthrough = [\"WEATHER_TOKEN\"]` under `[servers.weather]`");
    assert!(!told.contains("s3cr3t-value"), "{told}");

    world.write_user_config(&format!(
        "{}env_passthrough = [\"WEATHER_TOKEN\"]\n",
        fixture("weather", &[])
    ));
    let called =
        world.capstan(["call", "weather__echo", "text=hi"]).env("WEATHER_TOKEN", "x").run();
    ends_with(called, 0);
}

/// Number 15: problems of other servers.
#[test]
fn problems_of_other_servers_are_one_line_and_are_not_repeated() {
    let servers: Vec<String> = (0..10).map(|n| failing(&format!("s{n}"), "boom")).collect();
    let world = with(&format!("{}{}", servers.concat(), fixture("f", &[])));
    let tools = ends_with(run(&world, "tools --wait 20s"), 0).stderr;
    says(&tools, "10 servers are not usable: `s0`, ");
    assert_eq!(tools.lines().count(), 2, "{tools}");

    let world = with("[servers.b]\ncommand = 7\n");
    for words in ["list", "tools"] {
        let told = ends_with(run(&world, words), 0).stderr;
        assert_eq!(told.matches("servers.b.command").count(), 1, "{words}: {told}");
    }
}

/// Number 17.
#[test]
fn a_program_that_repeats_its_input_is_not_an_mcp_server() {
    let world = with("[servers.a]\ncommand = \"cat\"\n");
    says(&error_of(&world, "a"), "it is not an MCP server");
}

/// Number 17.
#[test]
fn a_tool_is_shown_with_its_arguments_and_a_call_that_can_be_copied() {
    let world = World::new();
    let shown = ends_with(run(&world, "tools --demo files__read_file"), 0).stdout;
    says(&shown, "ARGUMENT");
    says(&shown, "required");
    let call = shown.lines().last().unwrap().trim();
    assert_eq!(call, "capstan call --demo files__read_file path=PATH");
    let schema = ends_with(run(&world, "tools --demo files__read_file --schema"), 0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["type"], "object");
    ends_with(run(&world, "tools --schema"), 2);
}

/// Number 17: path and alias.
#[test]
fn hints_name_the_command_as_it_was_typed() {
    let world = World::new();
    says(&run(&world, "list").stderr, "`capstan add NAME COMMAND…`");
    says(&run(&world, "mcp list").stderr, "`capstan mcp add NAME COMMAND…`");
    let path = binary("capstan");
    let by_path = world.program(&path, ["list"]).run().stderr;
    says(&by_path, &format!("`{} add NAME COMMAND…`", path.display()));
    let by_cargo = world.capstan(["list"]).env("CARGO_PKG_NAME", "capstan").run().stderr;
    says(&by_cargo, "`cargo run -- add NAME COMMAND…`");
}

/// Number 17.
#[test]
fn a_tool_without_its_server_and_one_in_two_words_get_a_suggestion() {
    let world = with_fixture();
    for seen_by in ["list", "tools"] {
        let world = with_fixture();
        ends_with(run(&world, seen_by), 0);
        for words in ["call echo text=hi", "call f echo text=hi"] {
            let told = ends_with(run(&world, words), 4).stderr;
            says(&told, "did you mean `capstan call f__echo`?");
        }
    }
    let told = ends_with(run(&world, "call nothing-like-it"), 4).stderr;
    assert!(!told.contains("f__echo"), "{told}");
}

/// C05: a disabled server has no process and no tools; `enable` starts it.
#[test]
fn c05_a_disabled_server_is_started_only_after_it_is_enabled() {
    let world = with("");
    let mark = world.home().join("started");
    let script =
        format!("touch '{}'; exec '{}'", mark.display(), binary("capstan-fixture").display());
    let script = quoted(&script);
    let entry =
        format!("[servers.f]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\ndisabled = true\n");
    world.write_user_config(&entry);
    let listed = ends_with(run(&world, "list"), 0).stdout;
    says(&listed, "○ f");
    says(&listed, "disabled");
    assert!(!ends_with(run(&world, "tools"), 0).stdout.contains("f__echo"));
    assert!(!mark.exists(), "a disabled server was started");
    ends_with(run(&world, "enable f"), 0);
    says(&ends_with(run(&world, "tools"), 0).stdout, "f__echo");
    assert!(mark.exists());
}

/// C62: the facts of `/mcp` about three servers, in `list` and `get`.
#[test]
fn c62_list_and_get_show_the_facts_of_the_mcp_command() {
    let world = World::new();
    let folder = world.home().join("mcp-servers/python");
    fs::create_dir_all(&folder).unwrap();
    let fixture = quoted(binary("capstan-fixture").to_str().unwrap());
    let folder = quoted(folder.to_str().unwrap());
    let docker = quoted(world.home().join("docker").to_str().unwrap());
    let script = format!("#!/bin/sh\nexec {fixture}\n");
    let path = world.write("docker", script);
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.write_user_config(&format!(
        "[servers.pythonTools]\ncommand = {fixture}\ncwd = {folder}\ntimeout = \"15000ms\"\n\
         env = {{ API_KEY = \"hunter22hunter\" }}\n\
         [servers.nodeServer]\nurl = \"http://127.0.0.1:9/mcp\"\n\
         [servers.dockerizedServer]\ncommand = {docker}\n\
         args = [\"run\", \"-i\", \"--rm\", \"-e\", \"API_KEY\", \"my-mcp-server:latest\"]\n"
    ));
    let rows = ok_json(&world, "list --wait 20s");
    let state = |name: &str| row(&rows, "name", name)["state"].as_str().unwrap().to_owned();
    assert_eq!(state("pythontools"), "connected");
    assert_eq!(state("nodeserver"), "failed");
    assert_eq!(state("dockerizedserver"), "connected");
    let listed = ends_with(run(&world, "list"), 0).stdout;
    for fact in ["● pythonTools", "○ nodeServer", "● dockerizedServer"] {
        says(&listed, fact);
    }
    let python = ends_with(run(&world, "get pythonTools --refresh"), 0).stdout;
    says(&python, "discovery: completed");
    says(&python, "prompts: ");
    says(&python, "resources: ");
    says(&python, "mcp-servers/python");
    says(&python, "timeout: 15s");
    says(&python, "tools: ");
    says(&python, "state: connected");
    assert!(!python.contains("hunter22hunter"), "{python}");
    let node = ends_with(run(&world, "get nodeServer"), 0).stdout;
    says(&node, "state: failed");
    says(&node, "error: ");
    let docker = ends_with(run(&world, "get dockerizedServer"), 0).stdout;
    says(&docker, "run -i --rm -e API_KEY my-mcp-server:latest");
}
