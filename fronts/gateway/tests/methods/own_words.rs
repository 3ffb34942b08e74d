//! Descriptions of servers: in the server's own words where it is the only one shown.

use capstan_gateway::View;
use capstan_hub::ports::Caching;
use capstan_model::CallError;
use capstan_model::rpc_code::{INVALID_PARAMS, RESOURCE_NOT_FOUND};
use futures::FutureExt as _;
use futures::future::ready;

use crate::harness::{Harness, Server, json, member};

const INFO: &str = r#"{"name":"own","version":"1","icons":[ ]}"#;
const ABLE: &str = r#"{"resources":{},"tools":{"listChanged":false}}"#;
const LISTED: &str =
    r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","_meta":{"own": 1.0}}"#;

fn server(name: &str) -> Server {
    let server = Server::modern(name).able(ABLE).listing_with(LISTED);
    server.describing(|about| {
        about.info = Some(json(INFO));
        about.instructions = Some(" Mind the gap.\n".to_owned());
        about.caching = Some(Caching { ttl_ms: 7000, is_public: true });
    })
}

#[tokio::test]
async fn one_server_is_described_in_its_own_words_and_several_by_the_gateway() {
    let harness = Harness::new(vec![server("a"), server("b")]);
    let (own, all) = (View::One("a".parse().unwrap()), View::All);
    let discovered = harness.ask_modern(own.clone(), "{}", "server/discover", "{}").await.answer;
    let info = "result._meta.io.modelcontextprotocol/serverInfo";
    for (path, expected) in [
        (info, INFO),
        ("result.capabilities", ABLE),
        ("result.instructions", r#"" Mind the gap.\n""#),
        ("result.ttlMs", "7000"),
        ("result.cacheScope", r#""public""#),
    ] {
        assert_eq!(member(&discovered, path), expected, "{path}");
    }
    let (greeting, client) = harness.greet("2025-11-25", own.clone(), "{}").await;
    assert_eq!(member(&greeting, "result.serverInfo"), INFO);
    assert_eq!(member(&greeting, "result.capabilities"), ABLE);
    assert_eq!(member(&greeting, "result.instructions"), r#"" Mind the gap.\n""#);
    let listed = harness.ask_modern(own, "{}", "tools/list", "{}").await.answer;
    assert_eq!(member(&listed, "result.ttlMs"), "60000");
    assert_eq!(member(&listed, "result.cacheScope"), r#""public""#);
    assert_eq!(member(&listed, "result._meta"), r#"{"own": 1.0}"#);
    let listed = harness.ask(&client, "tools/list", "{}").await.answer;
    assert_eq!(member(&listed, "result._meta"), r#"{"own": 1.0}"#);
    assert_eq!(member(&listed, "result.ttlMs"), "");

    let discovered = harness.ask_modern(all.clone(), "{}", "server/discover", "{}").await.answer;
    assert!(member(&discovered, info).contains("capstan"), "{discovered}");
    assert_eq!(member(&discovered, "result.ttlMs"), "0");
    assert_eq!(member(&discovered, "result.capabilities.resources"), r#"{"listChanged":true}"#);
    assert_eq!(member(&discovered, "result.capabilities.logging"), "");
    let listed = harness.ask_modern(all, "{}", "tools/list", "{}").await.answer;
    assert_eq!(member(&listed, "result.ttlMs"), "0");
}

#[tokio::test]
async fn resource_not_found_keeps_the_servers_text_and_data_in_both_eras() {
    let lost = |code: i64, is_modern: bool| {
        move |_, _| {
            let message = "gone fishing".to_owned();
            let whole = format!(
                r#"{{"code":{code},"message":"gone fishing","data":{{"uri":"f://x","why":[1.0]}}}}"#
            );
            let (server, whole) = ("a".parse().unwrap(), Some(whole));
            ready(Err(CallError::Server { server, code, message, whole, is_modern })).boxed()
        }
    };
    let read = r#"{"uri":"f://x"}"#;
    // The code of a server of the other era is translated, and no other: servers of one era use
    // codes of the other one too.
    for (code, is_modern, for_modern, for_legacy) in [
        (RESOURCE_NOT_FOUND, false, INVALID_PARAMS, RESOURCE_NOT_FOUND),
        (INVALID_PARAMS, false, INVALID_PARAMS, INVALID_PARAMS),
        (INVALID_PARAMS, true, INVALID_PARAMS, RESOURCE_NOT_FOUND),
        (RESOURCE_NOT_FOUND, true, RESOURCE_NOT_FOUND, RESOURCE_NOT_FOUND),
    ] {
        let harness = Harness::new(vec![Server::new("a").running(lost(code, is_modern))]);
        let own = View::One("a".parse().unwrap());
        let modern = harness.ask_modern(own.clone(), "{}", "resources/read", read).await.answer;
        let client = harness.legacy(own, "{}").await;
        let legacy = harness.ask(&client, "resources/read", read).await.answer;
        for (answer, expected) in [(&modern, for_modern), (&legacy, for_legacy)] {
            assert_eq!(member(answer, "error.code"), expected.to_string(), "{answer}");
            assert_eq!(member(answer, "error.message"), r#""gone fishing""#);
            assert_eq!(member(answer, "error.data"), r#"{"uri":"f://x","why":[1.0]}"#);
        }
    }
}
