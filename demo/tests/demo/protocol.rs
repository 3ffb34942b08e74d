//! What all servers share: framing, both eras, errors.

use capstan_demo::Demo;
use serde_json::{Value, json};

use crate::world::{World, lines, modern_request, request};

#[test]
fn initialize_answers_with_a_known_version_and_else_with_the_newest() {
    let world = World::new();
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ] {
        let params = json!({ "protocolVersion": asked, "capabilities": {} });
        let said = world.raw(Demo::Time, lines([&request(1, "initialize", params)]));
        assert_eq!(said[0]["result"]["protocolVersion"], agreed);
        assert_eq!(said[0]["result"]["serverInfo"]["name"], "capstan-demo-time");
    }
}

#[test]
fn discover_tells_versions_capabilities_and_how_long_that_holds() {
    let world = World::new();
    for (demo, capabilities) in [
        (Demo::Files, json!({ "tools": {}, "resources": {} })),
        (Demo::Time, json!({ "tools": {} })),
        (Demo::Notes, json!({ "tools": {}, "resources": { "listChanged": true }, "prompts": {} })),
    ] {
        let result = world.modern(demo, "server/discover", json!({}));
        assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(result["capabilities"], capabilities);
        assert_eq!(result["resultType"], "complete");
        assert_eq!(result["cacheScope"], "public");
        assert!(result["ttlMs"].is_u64() && result["instructions"].is_string());
    }
}

#[test]
fn modern_results_carry_what_legacy_results_do_not() {
    let world = World::new();
    let lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
    for method in lists {
        let modern = world.modern(Demo::Notes, method, json!({}));
        assert_eq!(modern["resultType"], "complete", "{method}");
        assert!(modern["ttlMs"].is_u64() && modern["cacheScope"].is_string(), "{method}");
        let legacy = &world.legacy(Demo::Notes, &[request(1, method, json!({}))])[0]["result"];
        for key in ["resultType", "ttlMs", "cacheScope", "_meta"] {
            assert_eq!(legacy.get(key), None, "{method} {key}");
        }
    }
}

#[test]
fn every_tool_has_a_closed_schema_with_descriptions_and_says_what_it_does() {
    let world = World::new();
    for demo in Demo::ALL {
        let listed = world.modern(demo, "tools/list", json!({}));
        for tool in listed["tools"].as_array().unwrap() {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["additionalProperties"], false, "{tool}");
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{tool} {name}");
            }
            assert!(tool["title"].is_string() && tool["description"].is_string());
            assert!(tool["annotations"]["readOnlyHint"].is_boolean());
        }
    }
}

#[test]
fn arguments_outside_the_schema_are_refused_by_every_tool() {
    let world = World::new();
    for demo in Demo::ALL {
        let listed = world.modern(demo, "tools/list", json!({}));
        for tool in listed["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let said = world.call(demo, name, json!({ "surprise": 1 }));
            crate::world::refused(said, "invalid arguments");
        }
    }
}

#[test]
fn ping_is_answered_in_the_legacy_era_only() {
    let world = World::new();
    assert_eq!(world.legacy(Demo::Time, &[request(1, "ping", json!({}))])[0]["result"], json!({}));
    assert_eq!(world.modern(Demo::Time, "ping", json!({}))["code"], -32601);
    assert_eq!(world.modern(Demo::Time, "initialize", json!({}))["code"], -32601);
}

#[test]
fn malformed_lines_are_answered_and_the_next_one_is_served() {
    let world = World::new();
    let cases: [(&[u8], i64); 9] = [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"nonsense", -32700),
        (b"1", -32600),
        (b"[]", -32600),
        (br#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
    ];
    for (line, code) in cases {
        let ping = br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#;
        let said = world.raw(Demo::Time, [line, b"\n\n", ping].concat());
        let shown = String::from_utf8_lossy(line);
        assert_eq!(said[0]["error"]["code"], code, "{shown}");
        assert_eq!(said[0]["id"], Value::Null, "{shown}");
        assert_eq!(said[1], json!({ "jsonrpc": "2.0", "id": 7, "result": {} }), "{shown}");
    }
}

#[test]
fn a_message_beyond_the_limit_is_refused_and_skipped() {
    let world = World::new();
    let long = request(1, "ping", json!({ "x": "y".repeat(1024 * 1024) }));
    let said = world.raw(Demo::Time, lines([&long, &request(2, "ping", json!({}))]));
    assert_eq!(said[0]["error"]["code"], -32700);
    assert_eq!((said.len(), &said[1]["id"]), (2, &json!(2)));
}

#[test]
fn requests_that_make_no_sense_are_refused_with_their_code() {
    let world = World::new();
    let cases = [
        ("tools/teleport", json!({}), -32601),
        ("resources/list", json!({}), -32601),
        ("logging/setLevel", json!({ "level": "info" }), -32601),
        ("tools/call", json!({}), -32602),
        ("tools/call", json!({ "name": 1 }), -32602),
        ("tools/call", json!({ "name": "teleport" }), -32602),
        ("tools/call", json!({ "name": "now", "arguments": [] }), -32602),
        ("tools/list", json!({ "cursor": "elsewhere" }), -32602),
        ("tools/list", json!({ "cursor": 3 }), -32602),
        ("tools/list", json!([]), -32602),
    ];
    for (method, params, code) in cases {
        let legacy = world.legacy(Demo::Time, &[request(1, method, params.clone())]);
        assert_eq!(legacy[0]["error"]["code"], code, "{method} {params}");
        if params.is_object() {
            let modern = world.modern(Demo::Time, method, params.clone());
            assert_eq!(modern["code"], code, "{method} {params}");
        }
    }
}

#[test]
fn metadata_that_is_missing_or_of_another_version_is_refused() {
    let world = World::new();
    let list = |meta: Value| {
        let message = request(1, "tools/list", json!({ "_meta": meta }));
        world.raw(Demo::Time, lines([&message]))[0]["error"].clone()
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    assert_eq!(list(json!({}))["code"], -32602);
    assert_eq!(list(json!({ version: "2026-07-28" }))["code"], -32602);
    assert_eq!(list(json!({ version: 20_260_728, capabilities: {} }))["code"], -32602);
    let error = list(json!({ version: "2099-01-01", capabilities: {} }));
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({ "supported": ["2026-07-28"], "requested": "2099-01-01" }));
}

#[test]
fn notifications_and_responses_get_no_answer() {
    let world = World::new();
    let silent = [
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 9 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unheard_of" }),
        json!({ "jsonrpc": "2.0", "id": 5, "result": {} }),
    ];
    assert_eq!(world.legacy(Demo::Time, &silent), Vec::<Value>::new());
}

#[test]
fn ids_come_back_as_they_were() {
    let world = World::new();
    for id in [json!("a"), json!(0), json!(-3), json!(u64::MAX)] {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        assert_eq!(world.raw(Demo::Time, lines([&message]))[0]["id"], id);
    }
}

#[test]
fn one_process_serves_both_eras() {
    let world = World::new();
    let said = world.legacy(
        Demo::Time,
        &[
            modern_request(1, "tools/list", json!({})),
            request(2, "tools/list", json!({})),
            request(3, "server/discover", json!({})),
        ],
    );
    assert_eq!(said[0]["result"]["resultType"], "complete");
    assert_eq!(said[1]["result"].get("resultType"), None);
    assert_eq!(said[2]["error"]["code"], -32601);
}

#[test]
fn batches_belong_to_the_one_version_that_has_them() {
    let world = World::new();
    let batch = json!([
        request(1, "ping", json!({})),
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        request(2, "ping", json!({})),
    ]);
    let open = |version| {
        let opening = request(0, "initialize", json!({ "protocolVersion": version }));
        world.raw(Demo::Time, lines([&opening, &batch])).remove(1)
    };
    assert_eq!(open("2025-03-26").as_array().map(Vec::len), Some(2));
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(open(version)["error"]["code"], -32600, "{version}");
    }
}
