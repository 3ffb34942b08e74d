//! What is there for all, and that no client can use it up.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::ports::Asking;
use capstan_model::Caller;
use capstan_wire::RequestId;
use futures::FutureExt as _;

use crate::world::{Server, World, finish, json, member};

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
    let world = World::with(vec![asks()], |hub| hub.limits.max_questions = 10_000);
    let call = async |client: &str| {
        let params = format!(
            r#"{{"name":"a__t","_meta":{{"io.modelcontextprotocol/clientInfo":{{"name":"{client}"}}}}}}"#
        );
        let who = (View::All, r#"{"elicitation":{}}"#);
        let said = world.ask_modern(who, "tools/call", &params).await;
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
    let world = World::with(vec![asks()], |hub| hub.limits.max_questions = 4);
    let greet = async |name: &str| {
        let able = r#"{"elicitation":{}}"#;
        world.named(name, View::All, able).await
    };
    let (greedy, modest) = (greet("greedy").await, greet("modest").await);
    let mut waiting = Vec::new();
    for client in [&greedy, &modest] {
        let mut exchange = world.start(client, "tools/call", r#"{"name":"a__t"}"#);
        let asked = exchange.next().await;
        assert!(matches!(asked, Some(capstan_gateway::Out::Message(_))));
        waiting.push(exchange);
    }
    let again = world.gateway.request(
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
    let world = World::new(vec![Server::new("a")]);
    let client = world.legacy(View::All, "{}").await;
    assert!(world.gateway.metrics().contains("\ncapstan_sessions 1\n"));
    drop(client);
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
    assert!(world.gateway.metrics().contains("\ncapstan_sessions 0\n"));
}

/// Calls a tool as a modern client of this name from this address; whether it may.
async fn may_call(world: &World, name: &str, address: &str) -> bool {
    let caller = Arc::new(Caller::stranger(Some(address.parse().unwrap())));
    let params = json(&format!(
        r#"{{"name":"a__t","arguments":{{}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"{name}"}}}}}}"#
    ));
    let (id, party) = (RequestId::Number(1), world.gateway.stateless(caller, View::All));
    let client = world.gateway.modern(&id, Some(&params), party).unwrap();
    let said = finish(world.gateway.request(&client, id, "tools/call", Some(params))).await;
    !said.answer.contains("quota")
}

#[tokio::test]
async fn a_new_name_each_time_is_no_new_quota_each_time() {
    let world = World::with(vec![Server::new("a")], |hub| hub.limits.quota = Some(1));
    for name in ["honest", "1", "2", "3", "4", "5", "6", "7"] {
        assert!(may_call(&world, name, "10.0.0.1").await, "{name}");
        assert!(!may_call(&world, name, "10.0.0.1").await, "{name} again");
    }
    // All further names have one more together.
    assert!(may_call(&world, "8", "10.0.0.1").await);
    for name in 9..50 {
        assert!(!may_call(&world, &name.to_string(), "10.0.0.1").await, "{name}");
    }
    // Others are not concerned.
    for name in ["a", "b"] {
        assert!(may_call(&world, name, "10.0.0.2").await, "{name}");
    }
    // A quota is that of caller and name, wherever they come from.
    assert!(!may_call(&world, "honest", "10.0.0.2").await);
}
