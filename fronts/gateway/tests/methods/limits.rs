//! Shared resources, which no client can exhaust.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::ports::Asking;
use capstan_model::Caller;
use capstan_wire::RequestId;
use futures::FutureExt as _;

use crate::harness::{Harness, Server, finish, json, member};

/// A legacy server whose tool asks and answers with what it was told.
fn asks() -> Server {
    Server::new("a").running(|_, back| {
        async move {
            let params = json(r#"{"message":"Sure?"}"#);
            Ok(back.ask(Asking::Elicit, params).await.unwrap())
        }
        .boxed()
    })
}

#[tokio::test]
async fn a_client_with_many_calls_that_wait_leaves_room_for_others() {
    let harness = Harness::with(vec![asks()], |hub| hub.limits.max_questions = 10_000);
    let call = async |client: &str| {
        let params = format!(
            r#"{{"name":"a__t","_meta":{{"io.modelcontextprotocol/clientInfo":{{"name":"{client}"}}}}}}"#
        );
        let able = r#"{"elicitation":{}}"#;
        let said = harness.ask_modern(View::All, able, "tools/call", &params).await;
        member(&said.answer, "result.resultType")
    };
    for _ in 0..128 {
        assert_eq!(call("greedy").await, r#""input_required""#);
    }
    assert_eq!(call("greedy").await, "");
    assert_eq!(call("modest").await, r#""input_required""#);
}

#[tokio::test]
async fn a_client_with_many_open_questions_leaves_room_for_others() {
    // A quarter is one.
    let harness = Harness::with(vec![asks()], |hub| hub.limits.max_questions = 4);
    let greet = async |name: &str| {
        let able = r#"{"elicitation":{}}"#;
        harness.named(name, View::All, able).await
    };
    let (greedy, modest) = (greet("greedy").await, greet("modest").await);
    let mut waiting = Vec::new();
    for client in [&greedy, &modest] {
        let mut exchange = harness.start(client, "tools/call", r#"{"name":"a__t"}"#);
        let asked = exchange.next().await;
        assert!(matches!(asked, Some(capstan_gateway::Out::Message(_))));
        waiting.push(exchange);
    }
    let again = harness.gateway.request(
        &greedy,
        RequestId::Number(2),
        "tools/call",
        Some(json(r#"{"name":"a__t"}"#)),
    );
    let said = finish(again).await;
    assert_eq!(member(&said.answer, "result"), r#"{"action":"decline"}"#);
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_without_a_word_is_forgotten() {
    let harness = Harness::new(vec![Server::new("a")]);
    let client = harness.legacy(View::All, "{}").await;
    assert!(harness.gateway.metrics().contains("\ncapstan_sessions 1\n"));
    drop(client);
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(harness.gateway.metrics().contains("\ncapstan_sessions 0\n"));
}

/// Calls a tool as a modern client of this name from this address; whether it may.
async fn may_call(harness: &Harness, name: &str, address: &str) -> bool {
    let caller = Arc::new(Caller::stranger(Some(address.parse().unwrap())));
    let params = json(&format!(
        r#"{{"name":"a__t","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"{name}"}}}}}}"#
    ));
    let (id, context) =
        (RequestId::Number(1), harness.gateway.stateless_context(caller, View::All));
    let client = harness.gateway.modern(&id, Some(&params), context).unwrap();
    let said = finish(harness.gateway.request(&client, id, "tools/call", Some(params))).await;
    !said.answer.contains("quota")
}

#[tokio::test]
async fn a_new_name_each_time_is_no_new_quota_each_time() {
    let harness = Harness::with(vec![Server::new("a")], |hub| hub.limits.quota = Some(1));
    for name in ["honest", "1", "2", "3", "4", "5", "6", "7"] {
        assert!(may_call(&harness, name, "10.0.0.1").await, "{name}");
        assert!(!may_call(&harness, name, "10.0.0.1").await, "{name} again");
    }
    // All further names have one more together.
    assert!(may_call(&harness, "8", "10.0.0.1").await);
    for name in 9..50 {
        assert!(!may_call(&harness, &name.to_string(), "10.0.0.1").await, "{name}");
    }
    // Others are not concerned.
    for name in ["a", "b"] {
        assert!(may_call(&harness, name, "10.0.0.2").await, "{name}");
    }
    // A quota is that of caller and name, wherever they come from.
    assert!(!may_call(&harness, "honest", "10.0.0.2").await);
}
