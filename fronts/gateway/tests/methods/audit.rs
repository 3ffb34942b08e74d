//! Audit entries of calls whose client leaves, and of tasks that are unknown.

use capstan_gateway::View;
use capstan_hub::Outcome;
use capstan_model::{ErrorCode, Kind};

use crate::harness::{Harness, Server};

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
