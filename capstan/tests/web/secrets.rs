//! Credentials of servers behind HTTP: sent with every request, shown nowhere.

use capstan_testkit::{Ended, World};

use crate::peer::{Answer, Peer, Seen};
use crate::stage::{ended, ends, legacy, run, says, world_at};

const TOKEN: &str = "xyzzy-7261-token";

fn calls(world: &World, words: &[&str]) -> Ended {
    ended(world.capstan(words).env("NOTION_TOKEN", TOKEN))
}

#[track_caller]
fn hides(ended: &Ended, secret: &str) {
    assert!(!ended.stdout.contains(secret), "{}", ended.stdout);
    assert!(!ended.stderr.contains(secret), "{}", ended.stderr);
}

/// Tells everything it knows to whoever asks.
fn chatty(seen: &Seen) -> Answer {
    match seen.method() {
        "tools/call" => {
            let all = format!("{} {:?}", seen.path, seen.header("authorization"));
            let text = serde_json::json!({"content": [{"type": "text", "text": all}]});
            Answer::json(seen.result(&text))
        }
        _ => legacy(seen),
    }
}

#[test]
fn c02_the_token_goes_out_with_every_request_and_is_masked_everywhere_else() {
    let peer = Peer::new(chatty);
    let world = World::new();
    let file = world.write(
        "project/.caliban/settings.toml",
        format!(
            "[mcp_servers.notion]\ntype = \"http\"\nurl = \"{}/v1\"\n\
             headers = {{ Authorization = \"Bearer ${{NOTION_TOKEN}}\" }}\n",
            peer.origin
        ),
    );
    let config = file.display().to_string();
    let with = |words: &[&str]| {
        let words: Vec<&str> =
            ["--config", &config].into_iter().chain(words.iter().copied()).collect();
        calls(&world, &words)
    };
    let called = ends(with(&["call", "notion__do", "--debug"]), 0);
    says(&called.stderr, "tools/call");
    says(&called.stderr, "***");
    assert!(!called.stderr.contains(TOKEN), "{}", called.stderr);
    for words in [&["config", "show"][..], &["list"], &["get", "notion"], &["list", "--debug"]] {
        hides(&ends(with(words), 0), TOKEN);
    }
    let seen = peer.seen();
    assert!(seen.len() > 8, "{}", seen.len());
    for request in &seen {
        assert_eq!(request.header("authorization"), [format!("Bearer {TOKEN}")], "{request:?}");
    }
    assert!(seen.iter().any(|seen| seen.verb == "DELETE"), "the end of the session too");
}

#[test]
fn c02_without_the_variable_only_this_server_fails() {
    let world = world_at("http://127.0.0.1:9/", "headers = { A = \"Bearer ${NOTION_TOKEN}\" }");
    let ended = ends(run(&world, &["list"]), 0);
    says(&ended.stderr, "NOTION_TOKEN");
}

#[test]
fn a_password_or_a_key_in_an_address_is_masked_too() {
    let peer = Peer::new(chatty);
    let host = peer.origin.strip_prefix("http://").unwrap();
    for (url, secret) in [
        (format!("http://me:xyzzy-7261@{host}/mcp"), "xyzzy-7261"),
        // As it is sent.
        (format!("http://me:xyzzy%2D7261@{host}/mcp"), "bWU6eHl6enktNzI2MQ=="),
        (format!("http://{host}/mcp?api_key=xyzzy-7261"), "xyzzy-7261"),
        (format!("http://{host}/a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6/mcp"), "a1b2c3d4e5f6"),
    ] {
        let world = world_at(&url, "");
        let called = ends(run(&world, &["call", "s__do", "--debug"]), 0);
        says(&called.stderr, "tools/call");
        assert!(!called.stderr.contains(secret), "{url}: {}", called.stderr);
        for words in [&["config", "show"][..], &["list"], &["get", "s"]] {
            hides(&ends(run(&world, words), 0), secret);
        }
    }
}
