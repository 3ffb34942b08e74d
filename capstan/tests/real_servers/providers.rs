//! The SDKs of model providers, which accept the stand-in for their interfaces as the real one.

use capstan_testkit::World;
use capstan_testkit::model_api::{MODEL_KEY, ModelApi, ModelStep};
use serde_json::{Value, json};

use crate::LIMIT;

/// A program that asks all three SDKs and prints what they understood.
const PEER: &str = include_str!("providers_peer.cjs");

#[test]
fn the_sdks_of_the_providers_read_the_stand_in_as_they_read_the_real_one() {
    let world = World::new();
    let text = "Grüße, let me look.";
    let calls = [("weather", json!({"city": "Köln"})), ("weather", json!({"city": "Bonn"}))];
    let step = || ModelStep {
        text: text.to_owned(),
        reasoning: Some("Two places.".to_owned()),
        ..ModelStep::calls(calls.clone())
    };
    let api = ModelApi::start([
        step(),
        step(),
        step(),
        ModelStep::text("a"),
        ModelStep::text("b"),
        ModelStep::text("c"),
        ModelStep::status(401, "no"),
        ModelStep::status(401, "no"),
        ModelStep::status(401, "no"),
    ]);
    let script = world.write("project/peer.cjs", PEER);
    let modules = crate::dev_folder().join("providers/node_modules");
    let ended = world
        .program(crate::installed("node"), [script.as_os_str()])
        .env("NODE_PATH", modules)
        .env("MODEL_URL", api.url())
        .env("MODEL_KEY", MODEL_KEY)
        .limit(LIMIT)
        .run();
    let told: Value = serde_json::from_str(&ended.ok()).unwrap();
    for sdk in ["anthropic", "openai", "gemini"] {
        let told = &told[sdk];
        assert_eq!(told["text"], text, "{sdk}");
        assert_eq!(
            told["calls"],
            json!([["weather", {"city": "Köln"}], ["weather", {"city": "Bonn"}]]),
            "{sdk}"
        );
        assert_eq!(told["output_tokens"], 20, "{sdk}: {told}");
        assert!(["a", "b", "c"].contains(&told["after"].as_str().unwrap()), "{sdk}: {told}");
        assert_eq!(told["status"], 401, "{sdk}: {told}");
    }
}
