//! Audit entries of calls whose client leaves, of malformed requests, and of tasks.

use capstan_gateway::View;
use capstan_hub::Outcome;
use capstan_model::{ErrorCode, Kind};

use crate::harness::{Harness, Server, finish, json};
use crate::tasks::{ABLE, text};
use futures::FutureExt as _;
use futures::future::ready;

#[tokio::test]
async fn a_client_that_leaves_before_its_call_runs_leaves_one_abandoned_entry() {
    for (method, params, kind) in [
        ("tools/call", r#"{"name":"a__t"}"#, Kind::Tool),
        ("resources/read", r#"{"uri":"a://t"}"#, Kind::Resource),
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
