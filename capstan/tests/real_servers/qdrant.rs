//! The official client of Qdrant, which accepts the stand-in as the real server, and reads from it what
//! `capstan search` has stored.

use capstan_testkit::embedding_api::EmbeddingApi;
use capstan_testkit::qdrant::{QDRANT_KEY, Qdrant};
use capstan_testkit::{World, binary};
use serde_json::{Value, json};

use crate::LIMIT;

/// A program that uses the collection with the official client.
const PEER: &str = include_str!("qdrant_peer.py");

fn peer(world: &World, qdrant: &Qdrant) -> Value {
    let script = world.write("project/peer.py", PEER);
    let python = crate::dev_folder().join("py/bin/python");
    let script = script.into_os_string();
    let ended =
        world.program(python, [script, qdrant.url().into(), QDRANT_KEY.into()]).limit(LIMIT).run();
    serde_json::from_str(&ended.ok()).unwrap()
}

#[test]
fn the_official_client_reads_the_stand_in_and_the_tools_that_capstan_has_stored() {
    let (world, qdrant, api) = (World::new(), Qdrant::start(), EmbeddingApi::start());
    let alone = peer(&World::new(), &Qdrant::start());
    assert_eq!((&alone["size"], &alone["before"]), (&json!(27), &json!([])), "{alone}");
    let server = binary("capstan-fixture");
    world.write_user_config(&format!(
        "[servers.one]\ncommand = {:?}\n[search]\nembedding = \"ollama/letters\"\n\
         embedding_endpoint = \"{}\"\nqdrant_endpoint = \"{}\"\nqdrant_api_key = \"${{QDRANT_KEY}}\"\n",
        server.display().to_string(),
        api.url(),
        qdrant.url()
    ));
    world.capstan(["search", "adds two numbers"]).env("QDRANT_KEY", QDRANT_KEY).run().ok();
    let told = peer(&world, &qdrant);
    let before = told["before"].as_array().unwrap();
    assert!(before.iter().any(|one| one["server"] == "one" && one["tool"] == "add"), "{told}");
    assert_eq!(told["indexes"], json!(["hash", "model", "owner"]), "{told}");
    assert_eq!(told["after"], json!(before.len()), "{told}");
    assert_eq!(told["refused"], true, "{told}");
    assert_eq!(told["locked"], true, "{told}");
    for (key, expected) in [
        ("size", json!(27)),
        ("distance", json!("Cosine")),
        ("page", Value::Null),
        ("status", json!("completed")),
        ("score", json!(1.0)),
        ("hits", json!(1)),
        ("counted", json!(1)),
        ("late", json!(0)),
    ] {
        assert_eq!(told[key], expected, "{key}: {told}");
        assert_eq!(alone[key], expected, "{key}: {alone}");
    }
}
