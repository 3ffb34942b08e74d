//! Answers above the limit in tokens, at a gateway where one is set.

use serde_json::{Value, json};

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

const LIMIT: &str = "[screen]\nmax_tokens = 100\n\n";

fn big() -> Value {
    json!({ "name": "f__big", "arguments": { "bytes": 1600 } })
}

/// The address of the page after a result.
#[track_caller]
fn next(result: &Value) -> String {
    result["_meta"]["capstan/page"]["next"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_reads_the_pages_of_its_own_answer_as_resources() {
    for era in ["2025-11-25", "2025-06-18"] {
        let world = with(&format!("{ALL}{LIMIT}{}", fixture("f", &[])));
        let mut gateway = Gateway::start(&world, "");
        gateway.initialize(era);
        let first = gateway.ask(1, "tools/call", &big())["result"].clone();
        assert_eq!(first["content"][0]["text"], "x".repeat(400), "{first}");
        let note = first["content"][1]["text"].as_str().unwrap();
        assert!(note.contains(&next(&first)) && note.contains("page 1 of 4"), "{note}");
        let mut page = first;
        for id in 2..=4 {
            let read = gateway.ask(id, "resources/read", &json!({ "uri": next(&page) }));
            page = read["result"].clone();
            assert_eq!(page["contents"][0]["text"], "x".repeat(400), "{read}");
        }
        assert_eq!(page["_meta"]["capstan/page"], json!({ "page": 4, "pages": 4 }));
    }
}

#[test]
fn the_answer_of_another_caller_is_one_that_does_not_exist() {
    let world = with(&format!("{ALL}{LIMIT}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let theirs = next(&gateway.ask(1, "tools/call", &big())["result"]);
    let made_up = format!("capstan://answers/{}?page=2", "0".repeat(32));
    // Over the network, and by the command line of the same user.
    let (_other, address) = Gateway::listening(&world, "");
    let ask = |uri: &str| {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: resources/read\r\nMcp-Name: {uri}"
        );
        let params = modern(json!({ "uri": uri }));
        let read =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params });
        let (status, body) = http(&address, &head, &read.to_string());
        (status, body.replace(uri, "URI"))
    };
    assert_eq!(ask(&theirs), ask(&made_up));
    assert!(ask(&theirs).1.contains("not_found"), "{:?}", ask(&theirs));
    let read = |uri: &str| {
        let ended = world.capstan(["read", uri, "--json"]).run();
        (ended.status, ended.stdout.replace(uri, "URI"))
    };
    assert_eq!(read(&theirs), read(&made_up));
    assert_eq!(read(&theirs).0, Some(4));
}

#[test]
fn without_a_limit_a_client_gets_the_whole_answer() {
    let world = with(&format!("{ALL}{}", fixture("f", &[])));
    let mut gateway = Gateway::start(&world, "");
    gateway.initialize("2025-11-25");
    let call = json!({ "name": "f__big", "arguments": { "bytes": 400_000 } });
    let answer = gateway.ask(1, "tools/call", &call);
    assert_eq!(answer["result"]["content"][0]["text"], "x".repeat(400_000));
}
