//! Audit entries of calls whose client leaves, of malformed requests, and of tasks.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::Outcome;
use capstan_model::{ErrorCode, Kind, Verdict};
use capstan_policy::access::Says;
use capstan_policy::{Access, AccessTable};

use crate::harness::{Harness, Server, allowing, finish, json};
use crate::tasks::{ABLE, modern, text};
use futures::FutureExt as _;
use futures::future::ready;

/// The capabilities of a server with an extension.
const EXTENDED: &str = r#"{"tools":{},"extensions":{"com.acme/search":{}}}"#;

#[tokio::test]
async fn a_client_that_leaves_before_its_call_runs_leaves_one_abandoned_entry() {
    let prompt = r#"{"ref":{"type":"ref/prompt","name":"a__t"}}"#;
    let template = r#"{"ref":{"type":"ref/resource","uri":"a://t"}}"#;
    for (method, params, kind) in [
        ("tools/call", r#"{"name":"a__t"}"#, Kind::Tool),
        ("resources/read", r#"{"uri":"a://t"}"#, Kind::Resource),
        ("completion/complete", prompt, Kind::Prompt),
        ("completion/complete", template, Kind::Resource),
        ("resources/subscribe", r#"{"uri":"a://t"}"#, Kind::Resource),
    ] {
        let harness = Harness::new(vec![Server::new("a")]);
        let client = harness.legacy(View::All, "{}").await;
        harness.take_sent();
        drop(harness.start(&client, method, params));
        while harness.entries().is_empty() {
            tokio::task::yield_now().await;
        }
        let entries = harness.entries();
        let seen: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.outcome)).collect();
        assert_eq!(seen, [(kind, Outcome::Abandoned)], "{method}");
        assert_eq!(harness.take_sent(), [""; 0], "{method}");
    }
}

#[tokio::test]
async fn a_modern_client_that_leaves_before_its_request_runs_leaves_one_abandoned_entry_for_each_item()
 {
    let one = || View::One("a".parse().unwrap());
    let listen = r#"{"notifications":{"resourceSubscriptions":["a://t","a://u"]}}"#;
    let skill = r#"{"uri":"skill://pdf"}"#;
    for (view, method, params, items) in [
        (one(), "acme/search", "{}", &["method:acme/search"][..]),
        (View::All, "skills/get", skill, &["method:skills/get"]),
        (View::All, "subscriptions/listen", listen, &["a://t", "a://u"]),
    ] {
        let harness = Harness::new(vec![Server::modern("a")]);
        drop(harness.start_modern(view, ABLE, method, params));
        while harness.entries().len() < items.len() {
            tokio::task::yield_now().await;
        }
        let entries = harness.entries();
        let seen: Vec<_> =
            entries.iter().map(|entry| (entry.item.as_str(), entry.outcome)).collect();
        let expected: Vec<_> = items.iter().map(|item| (*item, Outcome::Abandoned)).collect();
        assert_eq!(seen, expected, "{method}");
        assert_eq!(harness.take_sent(), [""; 0], "{method}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_its_operation_on_a_task_runs_leaves_one_abandoned_entry() {
    let harness = Harness::new(vec![modern("a")]);
    let call = harness.start_modern(View::All, ABLE, "tools/call", r#"{"name":"a__t"}"#);
    let id = text(&finish(call).await.answer, "result.taskId");
    harness.take_sent();
    let params = format!(r#"{{"taskId":"{id}"}}"#);
    drop(harness.start_modern(View::All, ABLE, "tasks/cancel", &params));
    while harness.entries().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen(&harness)[1], (Kind::Tool, Some("tasks/cancel"), Outcome::Abandoned));
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn a_request_that_the_client_has_no_room_for_leaves_an_entry() {
    let harness = Harness::new(vec![Server::new("a")]);
    let client = harness.legacy(View::All, "{}").await;
    let first = harness.start(&client, "tools/call", r#"{"name":"a__t"}"#);
    for (at, (method, params)) in
        [("tools/call", r#"{"name":"a__u"}"#), ("resources/subscribe", r#"{"uri":"a://t"}"#)]
            .into_iter()
            .enumerate()
    {
        let answer = harness.ask(&client, method, params).await.answer;
        assert!(answer.contains("a request with this id is still running"), "{answer}");
        assert_eq!(harness.entries().len(), at + 1, "{method}");
    }
    drop(first);
}

#[tokio::test]
async fn a_request_for_tasks_of_a_client_that_declares_none_leaves_an_entry() {
    let listen = r#"{"notifications":{"taskIds":["1"]}}"#;
    for (method, params) in [("tasks/get", r#"{"taskId":"1"}"#), ("subscriptions/listen", listen)] {
        let harness = Harness::new(vec![Server::modern("a")]);
        let answer = harness.ask_modern(View::All, "{}", method, params).await.answer;
        assert!(answer.contains("declare it in the client's capabilities"), "{answer}");
        let methods: Vec<_> = seen(&harness).into_iter().map(|(_, method, _)| method).collect();
        assert_eq!(methods, [Some(method)]);
    }
}

#[tokio::test]
async fn a_request_while_the_gateway_shuts_down_leaves_an_entry() {
    let harness = Harness::new(vec![Server::new("a")]);
    let client = harness.legacy(View::All, "{}").await;
    harness.gateway.drain().await;
    let answer = harness.ask(&client, "tools/call", r#"{"name":"a__t"}"#).await.answer;
    assert!(answer.contains("shutting down"), "{answer}");
    let entries = harness.entries();
    assert_eq!(entries.iter().map(|entry| entry.item.as_str()).collect::<Vec<_>>(), ["a__t"]);
}

#[tokio::test]
async fn an_extension_starts_no_server_that_is_out_of_the_callers_reach() {
    let harness = Harness::with(vec![Server::modern("a").able(EXTENDED)], |hub| {
        let mut source = allowing(hub.servers());
        let none = AccessTable { default: Says::Deny, ..AccessTable::default() };
        let server = "a".parse().unwrap();
        source.access = vec![Access::new(none, [(&server, "a")])];
        hub.policy = Arc::new(source.compile());
    });
    let client = harness.bound_to("a").await;
    let answer = harness.ask(&client, "acme/search", "{}").await.answer;
    assert!(answer.contains("-32601"), "{answer}");
    assert_eq!(harness.take_sent(), [""; 0]);
    let entries = harness.entries();
    let entry = entries.first().unwrap();
    let code = Outcome::Failed(ErrorCode::PolicyBlocked);
    assert_eq!((entries.len(), entry.outcome, entry.verdict), (1, code, Some(Verdict::Deny)));
}

#[tokio::test]
async fn an_operation_on_an_unknown_task_leaves_an_entry() {
    let harness = Harness::new(vec![Server::new("a")]);
    let client = harness.legacy(View::All, "{}").await;
    let mut asked = harness.start(&client, "tasks/get", r#"{"taskId":"of-another-client"}"#);
    while asked.next().await.is_some() {}
    let entries = harness.entries();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.method, entry.outcome)).collect();
    assert_eq!(seen, [(Some("tasks/get"), Outcome::Failed(ErrorCode::NotFound))]);
}

/// The method and the outcome of each entry.
fn seen(harness: &Harness) -> Vec<(Kind, Option<&'static str>, Outcome)> {
    harness.entries().iter().map(|entry| (entry.kind, entry.method, entry.outcome)).collect()
}

#[tokio::test]
async fn a_malformed_request_leaves_one_entry_with_its_method_and_reaches_no_server() {
    let complete = Some("completion/complete");
    let (subscribe, listen) = (Some("resources/subscribe"), Some("subscriptions/listen"));
    for (method, params, kind, recorded) in [
        ("completion/complete", "{}", Kind::Prompt, complete),
        ("completion/complete", r#"{"ref":7}"#, Kind::Prompt, complete),
        ("completion/complete", r#"{"ref":{"type":"ref/x"}}"#, Kind::Prompt, complete),
        ("completion/complete", r#"{"ref":{"type":"ref/prompt"}}"#, Kind::Prompt, complete),
        ("completion/complete", r#"{"ref":{},"REF":{}}"#, Kind::Prompt, complete),
        ("resources/subscribe", "{}", Kind::Resource, subscribe),
        ("resources/subscribe", r#"{"uri":7}"#, Kind::Resource, subscribe),
        ("resources/subscribe", r#"{"uri":"a:1","URI":"a:2"}"#, Kind::Resource, subscribe),
        ("tools/call", r#"{"name":7}"#, Kind::Tool, None),
        ("prompts/get", "{}", Kind::Prompt, None),
        ("resources/read", r#"{"uri":[]}"#, Kind::Resource, None),
        ("tasks/get", "{}", Kind::Tool, Some("tasks/get")),
        ("tasks/cancel", r#"{"taskId":7}"#, Kind::Tool, Some("tasks/cancel")),
    ] {
        let harness = Harness::new(vec![Server::new("a")]);
        let client = harness.legacy(View::All, "{}").await;
        harness.take_sent();
        let answer = harness.ask(&client, method, params).await.answer;
        assert!(answer.contains("-32602"), "{method} {params}: {answer}");
        let expected = (kind, recorded, Outcome::Failed(ErrorCode::InvalidInput));
        assert_eq!(seen(&harness), [expected], "{method} {params}");
        let size = harness.entries().first().map(|entry| entry.request_bytes);
        assert_eq!(size, Some(params.len()), "{method} {params}");
        assert_eq!(harness.take_sent(), [""; 0], "{method} {params}");
    }
    for params in [
        "{}",
        r#"{"notifications":{"resourceSubscriptions":"a:1"}}"#,
        r#"{"notifications":{"taskIds":[7]}}"#,
    ] {
        let harness = Harness::new(vec![Server::new("a")]);
        let answer =
            harness.ask_modern(View::All, ABLE, "subscriptions/listen", params).await.answer;
        assert!(answer.contains("-32602"), "{params}: {answer}");
        let expected = (Kind::Resource, listen, Outcome::Failed(ErrorCode::InvalidInput));
        assert_eq!(seen(&harness), [expected], "{params}");
    }
}

#[tokio::test]
async fn a_call_with_a_forged_state_leaves_an_entry_with_its_tool() {
    let harness = Harness::new(vec![Server::new("a")]);
    let params = r#"{"name":"a__t","requestState":"forged","inputResponses":{}}"#;
    let answer = harness.ask_modern(View::All, "{}", "tools/call", params).await.answer;
    assert!(answer.contains("-32602"), "{answer}");
    assert_eq!(seen(&harness), [(Kind::Tool, None, Outcome::Failed(ErrorCode::InvalidInput))]);
    assert_eq!(harness.entries().first().map(|entry| entry.item.clone()), Some("a__t".to_owned()));
    assert_eq!(harness.take_sent(), [""; 0]);
}

#[tokio::test]
async fn the_entry_of_a_task_operation_has_sizes_and_tells_a_failure_of_the_tool() {
    let (made, works) = (
        r#"{"resultType":"task","taskId":"1","status":"working","ttlMs":60000}"#,
        r#"{"taskId":"1","status":"working"}"#,
    );
    let done = |flag: &str| {
        let result = format!(r#"{{"content":[],"isError":{flag}}}"#);
        format!(r#"{{"taskId":"1","status":"completed","result":{result}}}"#)
    };
    for (state, outcome) in [
        (works.to_owned(), Outcome::Answered),
        (done("false"), Outcome::Answered),
        (done("true"), Outcome::ToolError),
        (r#"{"taskId":"1","status":"completed","isError":true}"#.to_owned(), Outcome::ToolError),
    ] {
        let answered = json(&state);
        let server = Server::modern("a")
            .able(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
            .running(move |_, _| ready(Ok(json(made))).boxed())
            .answering(move |_, _, _| ready(Ok(answered.clone())).boxed());
        let harness = Harness::new(vec![server]);
        let call = harness.start_modern(View::All, ABLE, "tools/call", r#"{"name":"a__t"}"#);
        let id = text(&finish(call).await.answer, "result.taskId");
        let params = format!(r#"{{"taskId":"{id}"}}"#);
        finish(harness.start_modern(View::All, ABLE, "tasks/get", &params)).await;
        let entries = harness.entries();
        let entry = entries.last().unwrap();
        assert_eq!((entry.method, entry.outcome), (Some("tasks/get"), outcome), "{state}");
        assert_eq!(entry.answer_bytes, state.len(), "{state}");
        assert!(entry.request_bytes > params.len(), "{state}: with the client's metadata");
    }
}
