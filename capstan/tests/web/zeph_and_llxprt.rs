//! Examples of the manuals of Zeph and of LLxprt Code, as they are written there.

use capstan_testkit::{Ended, World};
use serde_json::{Value, json};

use crate::peer::{Answer, Peer, Piece};
use crate::stage::{answering, ended, ends, legacy, noted, older, parsed, says, shim, with_shims};

/// Runs with a file of a dialect.
#[track_caller]
fn with_file(world: &World, file: &str, words: &[&str]) -> Ended {
    let (dialect, path) = file.split_once(':').unwrap();
    let file = format!("{dialect}:{}", world.home().join(path).display());
    ended(with_shims(world, &[&["--config", &file], words].concat()))
}

const ZEPH: &str = "zeph:config.toml";
const LLXPRT: &str = "llxprt:settings.json";

#[test]
fn c40_two_servers_of_zeph_connect_without_any_extra_key() {
    let peer = Peer::new(legacy);
    let world = World::new();
    shim(&world, "npx", "");
    let port = peer.address.port();
    let text = format!(
        "[[mcp.servers]]\nid = \"filesystem\"\ncommand = \"npx\"\n\
         args = [\"-y\", \"@anthropic/mcp-filesystem\"]\n\
         [[mcp.servers]]\nid = \"remote-tools\"\nurl = \"http://localhost:{port}/mcp\"\n"
    );
    world.write("config.toml", text);
    let rows = parsed(&ends(with_file(&world, ZEPH, &["list", "--json"]), 0));
    let told = |row: &Value| json!([row["name"], row["transport"], row["state"]]);
    assert_eq!(told(&rows[0]), json!(["filesystem", "stdio", "connected"]));
    assert_eq!(told(&rows[1]), json!(["remote-tools", "http", "connected"]));
    assert_eq!(noted(&world, "npx.argv"), ["-y", "@anthropic/mcp-filesystem"]);
    assert_eq!(ends(with_file(&world, ZEPH, &["call", "remote-tools__do"]), 0).stdout, "done\n");
}

#[test]
fn c54_servers_of_llxprt_are_reached_by_their_transport() {
    let (old, new) = (older(), Peer::new(legacy));
    let world = World::new();
    shim(&world, "npx", "");
    let settings = json!({"mcpServers": {
        "my-server": {"command": "npx", "args": ["-y", "@example/mcp-server"],
            "env": {"API_KEY": "your-key"}},
        "my-remote": {"url": format!("{}/sse", old.origin)},
        "my-http": {"url": format!("{}/mcp", new.origin), "transport": "streamable-http"},
        "either": {"url": format!("{}/mcp", new.origin)},
    }});
    world.write("settings.json", settings.to_string());
    let call = |tool: &str| ends(with_file(&world, LLXPRT, &["call", tool]), 0).stdout;
    call("my-server__echo");
    assert!(noted(&world, "npx.env").contains(&"API_KEY=your-key".to_owned()));
    assert_eq!(call("my-remote__do"), "done\n");
    assert_eq!(old.seen()[0].verb, "GET");
    assert_eq!(call("my-http__do"), "done\n");
    assert_eq!(new.seen()[0].verb, "POST", "the older transport is not even tried");
    let before = new.seen().len();
    assert_eq!(call("either__do"), "done\n");
    assert_eq!(new.seen()[before].verb, "GET", "the older transport is tried first");
}

#[test]
fn c55_headers_are_sent_once_and_the_time_covers_the_call_and_the_start() {
    let settings = |peer: &Peer| {
        json!({"mcpServers": {"httpServerWithAuth": {
            "httpUrl": format!("{}/mcp", peer.origin),
            "headers": {
                "Authorization": "Bearer your-api-token",
                "X-Custom-Header": "custom-value",
                "Content-Type": "application/json",
            },
            "timeout": 5000,
        }}})
        .to_string()
    };
    let call = ["call", "httpServerWithAuth__do"];
    let world = World::new();
    let slow = Peer::new(answering(|| Answer::json("").then(Piece::Hold)));
    world.write("settings.json", settings(&slow));
    says(&ends(with_file(&world, LLXPRT, &call), 8).stderr, "did not answer within 5s");
    for seen in slow.seen() {
        assert_eq!(seen.header("authorization"), ["Bearer your-api-token"], "{seen:?}");
        assert_eq!(seen.header("x-custom-header"), ["custom-value"], "{seen:?}");
        assert!(seen.header("content-type").len() <= 1, "{seen:?}");
        if seen.verb == "POST" {
            assert_eq!(seen.header("content-type"), ["application/json"], "{seen:?}");
        }
    }
    let silent = Peer::new(|_| Answer::json("").then(Piece::Hold));
    world.write("settings.json", settings(&silent));
    says(&ends(with_file(&world, LLXPRT, &call), 7).stderr, "did not answer within 5s");
}

#[test]
fn c56_a_filter_with_a_comment_beside_it_leaves_only_what_it_lists() {
    let world = World::new();
    shim(&world, "python", "");
    let text = r#"{
"mcpServers": {
"filteredServer": {
"command": "python",
"args": ["-m", "my_mcp_server"],
"includeTools": ["echo", "add", "env"],
// "excludeTools": ["dangerous_tool", "file_deleter"],
"timeout": 30000
}
}
}"#;
    world.write("settings.json", text);
    let tools = parsed(&ends(with_file(&world, LLXPRT, &["tools", "--json"]), 0));
    let mut names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["add", "echo", "env"]);
    assert_eq!(noted(&world, "python.argv"), ["-m", "my_mcp_server"]);
    ends(with_file(&world, LLXPRT, &["call", "filteredServer__hang"]), 6);
    // The comment survives a change of the file.
    let file = world.write(world.home().join(".llxprt/settings.json"), text);
    ends(world.capstan(["install", "llxprt"]).run(), 0);
    let changed = std::fs::read_to_string(file).unwrap();
    let comment = "// \"excludeTools\": [\"dangerous_tool\", \"file_deleter\"],\n";
    assert!(changed.contains(comment) && changed.contains("\"serve\""), "{changed}");
}

#[test]
fn c66_a_prompt_server_in_a_file_with_a_trailing_comma_loads() {
    let world = World::new();
    shim(&world, "node", "--no-tools");
    let text = r#"{
"mcpServers": {
"nodeServer": {
"command": "node",
"args": ["filename.ts"],
}
}
}"#;
    world.write("settings.json", text);
    let said = ends(with_file(&world, LLXPRT, &["prompt", "nodeServer:greet", "Ada"]), 0).stdout;
    says(&said, "user: Greet Ada.");
    assert_eq!(noted(&world, "node.argv"), ["filename.ts"]);
}
