//! Examples of the manuals of Caliban and of avelino's `mcp`, as they are written there.

use capstan_testkit::{Ended, World, binary};
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::stage::{ended, ends, legacy, noted, older, parsed, run, says, shim, with_shims};

/// Runs with one more configuration file.
#[track_caller]
fn with_file(world: &World, file: &str, words: &[&str]) -> Ended {
    let file = world.home().join(file).display().to_string();
    ended(with_shims(world, &[&["--config", &file], words].concat()))
}

const LINEAR: &str = "[mcp_servers.linear]\ncommand = \"npx\"\n\
    args = [\"-y\", \"@linear/mcp-server\"]\nenv = { LINEAR_API_KEY = \"${LINEAR_API_KEY}\" }\n";

#[test]
fn c01_a_server_of_caliban_gets_its_words_and_its_key_and_nothing_else() {
    let world = World::new();
    shim(&world, "npx", "");
    let file = world.write("project/.caliban/settings.toml", LINEAR).display().to_string();
    let call = |tool: &str| {
        let words = ["--config", &file, "call", tool, "text=hello"];
        let run = with_shims(&world, &words).env("LINEAR_API_KEY", "lin-7261");
        ends(ended(run.env("GITHUB_TOKEN", "ghp-7261")), 0).stdout
    };
    assert_eq!(call("linear__echo"), "{\"text\":\"hello\"}\n");
    assert_eq!(call("mcp__linear__echo"), "{\"text\":\"hello\"}\n");
    assert_eq!(noted(&world, "npx.argv"), ["-y", "@linear/mcp-server"]);
    let variables = noted(&world, "npx.env");
    assert!(variables.iter().any(|line| line == "LINEAR_API_KEY=lin-7261"), "{variables:?}");
    assert!(!variables.iter().any(|line| line.contains("ghp-7261")), "{variables:?}");
}

#[test]
fn c01_an_unset_key_fails_its_own_server_and_no_other() {
    let world = World::new();
    shim(&world, "npx", "");
    let text = format!("{LINEAR}[mcp_servers.fine]\ncommand = \"npx\"\n");
    world.write("project/.caliban/settings.toml", text);
    let listed = ends(with_file(&world, "project/.caliban/settings.toml", &["list", "--json"]), 0);
    let rows = parsed(&listed);
    assert_eq!(json!([rows[0]["state"], rows[1]["state"]]), json!(["failed", "connected"]));
    let error = rows[0]["error"].as_str().unwrap();
    for part in ["LINEAR_API_KEY", "mcp_servers.linear.env.LINEAR_API_KEY", "settings.toml"] {
        says(error, part);
    }
    ends(with_file(&world, "project/.caliban/settings.toml", &["call", "fine__echo"]), 0);
}

#[test]
fn c03_the_older_transport_is_a_stream_and_the_endpoint_that_it_names() {
    let peer = older();
    let world = World::new();
    let url = format!("{}/sse", peer.origin);
    let text = format!("[mcp_servers.legacy-api]\ntype = \"sse\"\nurl = \"{url}\"\n");
    world.write(".caliban/settings.toml", text);
    let file = ".caliban/settings.toml";
    assert_eq!(ends(with_file(&world, file, &["call", "legacy-api__do"]), 0).stdout, "done\n");
    let seen = peer.seen();
    assert_eq!((seen[0].verb.as_str(), seen[0].path.as_str()), ("GET", "/sse"));
    assert_eq!(seen[0].header("accept"), ["text/event-stream"]);
    assert!(seen[1..].iter().all(|seen| seen.verb == "POST" && seen.path == "/messages?id=7"));
    let about = parsed(&ends(with_file(&world, file, &["get", "legacy-api", "--json"]), 0));
    assert_eq!(about["protocol"], "2024-11-05", "{about}");
}

#[test]
fn c17_the_entry_of_the_project_replaces_the_whole_entry_of_the_user() {
    let world = World::new();
    world.write("project/.git/HEAD", "");
    let command = Value::from(binary("capstan-fixture").to_str().unwrap());
    let entry = |more: &str| format!("[servers.a]\ncommand = {command}\n{more}\n");
    world.write_user_config(&entry("env = { FROM_USER = \"yes\" }"));
    let variables = || {
        let said = parsed(&ends(run(&world, &["call", "a__env", "--json"]), 0));
        said["structuredContent"]["env"].clone()
    };
    assert_eq!(variables()["FROM_USER"], "yes");
    world.write_project_config(&entry("env = { FROM_PROJECT = \"yes\" }"));
    ends(run(&world, &["trust", "--yes"]), 0);
    assert_eq!(variables()["FROM_PROJECT"], "yes");
    assert_eq!(variables().get("FROM_USER"), None);
}

#[test]
fn c17_the_older_file_of_caliban_is_a_fallback_only() {
    let world = World::new();
    shim(&world, "npx", "");
    let older = world.write(".caliban/mcp.toml", "[server.old]\ncommand = \"npx\"\n");
    let newer = world.write(".caliban/settings.toml", "[mcp_servers.new]\ncommand = \"npx\"\n");
    let (older, newer) = (older.display().to_string(), newer.display().to_string());
    let names = |files: &[&str]| {
        let files = files.iter().flat_map(|file| ["--config", file]);
        let words: Vec<&str> = files.chain(["list", "--json"]).collect();
        let listed = parsed(&ends(ended(with_shims(&world, &words)), 0));
        let rows = listed.as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[&older]), ["old"]);
    assert_eq!(names(&[&older, &newer]), ["new"]);
}

#[test]
fn c20_the_rules_of_a_server_in_the_older_file_bind() {
    let world = World::new();
    shim(&world, "npx", "--tools 4");
    world.write(
        ".caliban/mcp.toml",
        "[server.linear]\ncommand = \"npx\"\n[server.linear.permissions]\n\
         allow = [\"tool_0\", \"tool_1\"]\ndeny = [\"tool_2\"]\nask = [\"tool_3\"]\n",
    );
    let table = [("tool_0", "allow"), ("tool_1", "allow"), ("tool_2", "deny"), ("tool_3", "ask")];
    for (tool, verdict) in table {
        let words = ["why", &format!("linear__{tool}"), "--json"];
        let told = parsed(&with_file(&world, ".caliban/mcp.toml", &words));
        assert_eq!(told["verdict"], verdict, "{tool}: {told}");
    }
    let denied = with_file(&world, ".caliban/mcp.toml", &["call", "linear__tool_2"]);
    ends(denied, 6);
}

#[test]
fn c21_times_of_the_environment_bind_in_their_order_and_foreign_limits_do_not() {
    let world = World::new();
    let command = Value::from(binary("capstan-fixture").to_str().unwrap());
    let entry = |args: &str| format!("[servers.s]\ncommand = {command}\nargs = [{args}]\n");
    world.write_user_config(&entry("\"--silent\""));
    let call = || world.capstan(["call", "s__echo"]).env("MCP_TIMEOUT", "2000");
    says(&ends(ended(call()), 7).stderr, "it did not answer within 2s");
    let own = ended(call().env("CAPSTAN_MCP_TIMEOUT", "1s"));
    says(&ends(own, 7).stderr, "it did not answer within 1s");

    world.write_user_config(&entry(""));
    let hang = || world.capstan(["call", "s__hang"]).env("MCP_TOOL_TIMEOUT", "2000");
    says(&ends(ended(hang()), 8).stderr, "did not answer within 2s");
    let own = ended(hang().env("CAPSTAN_MCP_TOOL_TIMEOUT", "1s"));
    says(&ends(own, 8).stderr, "did not answer within 1s");
    let run = world.capstan(["call", "s__echo", "text=more than one token of text"]);
    let said = ends(ended(run.env("MAX_MCP_OUTPUT_TOKENS", "1")), 0).stdout;
    says(&said, "more than one token of text");
}

#[test]
fn c23_what_a_server_of_avelino_is_follows_from_its_keys() {
    let peer = Peer::new(legacy);
    let world = World::new();
    shim(&world, "npx", "");
    let url = format!("{}/mcp", peer.origin);
    let servers = json!({"mcpServers": {
        "wrapped": {"command": "npx", "cli": true},
        "program": {"command": "npx", "args": ["-y", "package-name"]},
        "web": {"url": url},
        "both": {"command": "npx", "url": url},
    }});
    world.write("servers.json", servers.to_string());
    let listed = ends(with_file(&world, "servers.json", &["list", "--json"]), 0);
    let rows = parsed(&listed);
    let transports: Vec<&Value> =
        rows.as_array().unwrap().iter().map(|row| &row["transport"]).collect();
    assert_eq!(transports, ["cli", "stdio", "http", "stdio"]);
    says(&listed.stderr, "`command`");
    for (tool, said) in [
        ("program__echo", "{\"text\":\"x\"}\n"),
        ("web__do", "done\n"),
        ("both__echo", "{\"text\":\"x\"}\n"),
    ] {
        let words = ["call", tool, "text=x"];
        assert_eq!(ends(with_file(&world, "servers.json", &words), 0).stdout, said, "{tool}");
    }
}

#[test]
fn c31_an_address_that_loses_its_host_fails_alone() {
    let peer = Peer::new(legacy);
    let world = World::new();
    let text = format!(
        r#"{{"mcpServers": {{"broken": {{"url": "https://${{HOST}}/mcp"}}, "fine": {{"url": "{}/mcp"}}}}}}"#,
        peer.origin
    );
    world.write("servers.json", text);
    let listed = ends(with_file(&world, "servers.json", &["list", "--json"]), 0);
    let rows = parsed(&listed);
    assert_eq!(json!([rows[0]["state"], rows[1]["state"]]), json!(["failed", "connected"]));
    says(rows[0]["error"].as_str().unwrap(), "`HOST`");
    assert_eq!(ends(with_file(&world, "servers.json", &["call", "fine__do"]), 0).stdout, "done\n");
}

#[test]
fn c32_a_server_named_like_a_command_warns_and_works() {
    let world = World::new();
    shim(&world, "npx", "");
    world.write("servers.json", r#"{"mcpServers": {"list": {"command": "npx"}}}"#);
    let called = ends(with_file(&world, "servers.json", &["call", "list__echo", "text=x"]), 0);
    assert_eq!(called.stdout, "{\"text\":\"x\"}\n");
    says(&ends(with_file(&world, "servers.json", &["list"]), 0).stderr, "`list`");
}
