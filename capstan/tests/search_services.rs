//! `capstan search` with a service of embeddings and a Qdrant server, against stand-ins of both.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions, not their helpers"
)]

use capstan_testkit::embedding_api::{EMBEDDING_KEY, EmbeddingApi};
use capstan_testkit::qdrant::{QDRANT_KEY, Qdrant};
use capstan_testkit::{World, binary};
use serde_json::Value;

fn world(search: &str) -> World {
    let world = World::new();
    let server = binary("capstan-fixture").display().to_string();
    world.write_user_config(&format!("[servers.one]\ncommand = {server:?}\n[search]\n{search}\n"));
    world
}

fn first(found: &str) -> String {
    let found: Value = serde_json::from_str(found).unwrap();
    found[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_search_uses_the_configured_service_and_shares_vectors_in_qdrant() {
    let (api, qdrant) = (EmbeddingApi::start(), Qdrant::start());
    let settings = format!(
        "embedding = \"openai/letters\"\nembedding_endpoint = \"{}/v1\"\n\
         embedding_api_key_env_var = \"LETTERS_KEY\"\nqdrant_endpoint = \"{}\"\n\
         qdrant_api_key = \"${{QDRANT_KEY}}\"\nqdrant_owner = \"mine\"",
        api.url(),
        qdrant.url()
    );
    let world = world(&settings);
    let search = || {
        let run = world.capstan(["search", "--json", "adds two numbers"]);
        run.env("LETTERS_KEY", EMBEDDING_KEY).env("QDRANT_KEY", QDRANT_KEY).run()
    };
    assert_eq!(first(&search().ok()), "one__add");
    assert_eq!(api.texts().len(), 19, "18 tools and the query");
    let payloads = qdrant.payloads("capstan_tools");
    assert_eq!(payloads.len(), 18);
    assert!(payloads.iter().all(|payload| payload["owner"] == "mine"));
    assert_eq!(first(&search().ok()), "one__add");
    assert_eq!(api.texts().len(), 20, "the vectors of tools are kept");
}

#[test]
fn a_service_that_cannot_be_used_is_reported_and_tools_are_still_found() {
    let api = EmbeddingApi::start();
    let endpoint = format!("embedding_endpoint = \"{}/v1\"", api.url());
    for (settings, says) in [
        (format!("embedding = \"openai/letters\"\n{endpoint}"), "status 401"),
        ("embedding = \"openai/letters\"".to_owned(), "OPENAI_API_KEY is not set"),
        ("qdrant_endpoint = \"http://127.0.0.1:1\"".to_owned(), "the shared index"),
    ] {
        let ended = world(&settings).capstan(["search", "--json", "adds two numbers"]).run();
        assert!(ended.stderr.contains(says), "{settings}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches("warning:").count(), 1, "one note: {}", ended.stderr);
        assert_eq!(first(&ended.ok()), "one__add");
    }
    for wrong in ["embedding = \"letters\"", "embedding = \"anthropic/x\"", "model = \"x\""] {
        let ended = world(wrong).capstan(["search", "adds two numbers"]).run();
        assert_eq!(ended.status, Some(3), "{wrong}: {}", ended.stderr);
    }
}

#[test]
fn a_project_cannot_choose_the_service_that_reads_messages_and_tools() {
    let api = EmbeddingApi::start();
    let world = world("");
    world.write("project/.git/HEAD", "");
    world.write_project_config(&format!(
        "[search]\nembedding = \"ollama/letters\"\nembedding_endpoint = \"{}\"\n\
         qdrant_endpoint = \"{}\"\nmodel = \"ollama/x\"\n",
        api.url(),
        api.url()
    ));
    let ended = world.capstan(["search", "adds two numbers", "--trust-project"]).run();
    assert!(ended.stdout.contains("one__add"), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stderr.contains("`search.embedding_endpoint` in a project file is not used"));
    assert_eq!(api.requests().len(), 0);
}
