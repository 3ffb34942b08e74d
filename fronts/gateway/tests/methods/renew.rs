//! Another hub behind the same clients.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::catalog::{Catalog, Names, Overrides};
use capstan_hub::ports::Listing;
use capstan_hub::{Ground, Hub, HubBuilder, Outcome};
use capstan_model::{CallError, Naming, ServerName, ToolOverride};
use capstan_policy::{Pattern, Rule};
use capstan_testkit::fakes::Running;
use futures::FutureExt as _;
use tokio::time::timeout;

use crate::harness::{Harness, LIMIT, Server, allowing, items, json, member};
use crate::side_requests::grant_to_readers;

/// A server with one resource.
fn library(name: &str) -> Server {
    let lists = |listing| {
        let all = match listing {
            Listing::Resources => items(&[r#"{"name":"x:1","uri":"x:1"}"#.to_owned()]),
            Listing::Tools | Listing::Prompts | Listing::Templates => Arc::from([]),
        };
        std::future::ready(all).boxed()
    };
    let able = r#"{"resources":{"subscribe":true},"logging":{}}"#;
    Server::new(name).listing(lists).able(able)
}

/// A hub with what the one in place has, and a policy of its own.
fn next(harness: &Harness, change: impl FnOnce(&mut HubBuilder)) -> Arc<Hub> {
    let hub = harness.gateway.hub();
    let mut next = HubBuilder::after(&hub);
    next.rates = Arc::default();
    for name in hub.servers() {
        next.keep(&hub, name);
    }
    change(&mut next);
    Arc::new(next.build())
}

/// Puts another server in the place of one.
fn replaced(hub: &mut HubBuilder, server: Server) {
    hub.add(Arc::new(Running(Arc::new(server))));
}

#[tokio::test(start_paused = true)]
async fn clients_are_told_if_and_only_if_they_see_something_else() {
    let harness = Harness::new(vec![Server::new("a").with_tools(&["read", "drop"])]);
    let client = harness.legacy(View::All, "{}").await;
    let mut inbox = client.open_inbox();
    harness.ask(&client, "tools/list", "{}").await;
    harness.gateway.renew(&next(&harness, |_| ()));
    let same = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(same.contains("a__drop"), "{same}");
    let denied = |hub: &mut HubBuilder| {
        let rule = Rule::new(Pattern::parse("*drop").unwrap(), "permissions.deny");
        let mut policy = allowing(hub.servers());
        policy.permissions.global.deny = vec![rule];
        hub.policy = Arc::new(policy.compile());
    };
    harness.gateway.renew(&next(&harness, denied));
    let told = timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
    assert!(told.windows(18).any(|part| part == b"tools/list_changed"));
    let fewer = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(fewer.contains("a__read") && !fewer.contains("a__drop"), "{fewer}");
    let refused = harness.ask(&client, "tools/call", r#"{"name":"a__drop","arguments":{}}"#).await;
    assert!(refused.answer.contains("Unknown tool: a__drop"), "{}", refused.answer);
    assert!(inbox.try_recv().is_err(), "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_new_server_gets_the_subscriptions_and_log_level_of_the_one_it_replaces() {
    let harness = Harness::new(vec![library("a"), Server::new("b")]);
    let client = harness.legacy(View::All, "{}").await;
    harness.ask(&client, "resources/subscribe", r#"{"uri":"x:1"}"#).await;
    harness.ask(&client, "logging/setLevel", r#"{"level":"info"}"#).await;
    tokio::task::yield_now().await;
    let mut sent = harness.take_sent();
    sent.sort();
    let asked = [r#"a logging/setLevel "info""#, r#"a resources/subscribe "x:1""#];
    assert_eq!(sent, [asked[0], asked[1], r#"b logging/setLevel "info""#]);
    let fresh = harness.joins(library("a"));
    harness.gateway.renew(&next(&harness, |hub| replaced(hub, fresh)));
    harness.ask(&client, "logging/setLevel", r#"{"level":"info"}"#).await;
    tokio::task::yield_now().await;
    let mut sent = harness.take_sent();
    sent.sort();
    assert_eq!(sent, asked, "the other server is the same, and was asked before");
    harness.gateway.renew(&next(&harness, |_| ()));
    tokio::task::yield_now().await;
    assert_eq!(harness.take_sent(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_renewed_only_as_the_new_rules_decide() {
    let rules = |text: &str| vec![Rule::new(Pattern::parse(text).unwrap(), "a rule")];
    let none = || Vec::new();
    for (deny, ask, renewed, ground) in [
        (none(), none(), true, None),
        (none(), rules("*:uri=x:2"), true, None),
        (none(), rules("*:uri=x:1"), false, Some(Ground::Nobody)),
        (rules("*:uri=x:1"), none(), false, None),
    ] {
        let harness = Harness::new(vec![library("a")]);
        let client = harness.legacy(View::All, "{}").await;
        harness.ask(&client, "resources/subscribe", r#"{"uri":"x:1"}"#).await;
        harness.take_sent();
        let fresh = harness.joins(library("a"));
        harness.gateway.renew(&next(&harness, |hub| {
            replaced(hub, fresh);
            let mut policy = allowing(hub.servers());
            (policy.permissions.global.deny, policy.permissions.global.ask) = (deny, ask);
            hub.policy = Arc::new(policy.compile());
            hub.limits.quota = Some(1);
        }));
        while harness.entries().len() < 2 {
            tokio::task::yield_now().await;
        }
        let entries = harness.entries();
        let entry = entries.last().unwrap();
        assert_eq!(entry.method, Some("resources/subscribe"));
        assert_eq!((entry.outcome == Outcome::Answered, entry.approval), (renewed, ground));
        let sent = harness.take_sent();
        let expected: &[&str] = if renewed { &[r#"a resources/subscribe "x:1""#] } else { &[] };
        assert_eq!(sent, expected);
    }
}

/// A hub whose server `a` has a tool `read` that goes by another name.
fn renamed(harness: &Harness, name: &str) -> Arc<Hub> {
    let (server, name) = ("a".parse::<ServerName>().unwrap(), Some(name.to_owned()));
    let one = ("read".to_owned(), ToolOverride { name, ..ToolOverride::default() });
    let overrides = Overrides::new([(server.clone(), [one].into_iter().collect())]);
    let overrides = Arc::new(overrides);
    let names = Names::new([(server, Naming::Prefixed)]).with(Arc::clone(&overrides));
    next(harness, |hub| hub.catalog = Arc::new(Catalog { names, overrides, ..Catalog::default() }))
}

#[tokio::test(start_paused = true)]
async fn a_tool_goes_by_its_newest_name_and_its_server_hears_its_own() {
    let harness = Harness::new(vec![Server::new("a").with_tools(&["read", "drop"])]);
    let client = harness.legacy(View::All, "{}").await;
    let mut inbox = client.open_inbox();
    harness.ask(&client, "tools/list", "{}").await;
    let mut before = Vec::<String>::new();
    for name in ["look", "see"] {
        harness.gateway.renew(&renamed(&harness, name));
        timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
        let list = harness.ask(&client, "tools/list", "{}").await.answer;
        assert!(list.contains(&format!("a__{name}")) && !list.contains("a__read"), "{list}");
        harness.take_sent();
        let call = |name: &str| format!(r#"{{"name":"a__{name}","arguments":{{}}}}"#);
        harness.ask(&client, "tools/call", &call(name)).await;
        assert_eq!(harness.take_sent(), [r#"a {"name":"read","arguments":{}}"#]);
        for old in &before {
            let said = harness.ask(&client, "tools/call", &call(old)).await.answer;
            assert!(said.contains("Unknown tool"), "{old}: {said}");
        }
        assert!(harness.take_sent().is_empty());
        before.push(name.to_owned());
    }
    // What another tool is called, none is called anew.
    harness.gateway.renew(&renamed(&harness, "drop"));
    timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
    let list = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(list.contains("a__read") && list.contains("a__drop"), "{list}");
}

#[tokio::test(start_paused = true)]
async fn who_may_use_less_than_before_is_told_and_nobody_else() {
    let servers = vec![Server::new("a"), Server::new("b")];
    let harness = Harness::with(servers, |hub| grant_to_readers(hub, "*"));
    let (reader, other) = (harness.bound("reader").await, harness.legacy(View::All, "{}").await);
    let (mut of_reader, mut of_other) = (reader.open_inbox(), other.open_inbox());
    for client in [&reader, &other] {
        let list = harness.ask(client, "tools/list", "{}").await.answer;
        assert!(list.contains("a__t") && list.contains("b__t"), "{list}");
    }
    harness.gateway.renew(&next(&harness, |hub| grant_to_readers(hub, "a")));
    let told = timeout(LIMIT, of_reader.recv()).await.unwrap().unwrap();
    assert!(told.windows(18).any(|part| part == b"tools/list_changed"));
    let list = harness.ask(&reader, "tools/list", "{}").await.answer;
    assert!(list.contains("a__t") && !list.contains("b__t"), "{list}");
    let said = harness.ask(&reader, "tools/call", r#"{"name":"b__t","arguments":{}}"#).await.answer;
    assert!(said.contains("Unknown tool"), "{said}");
    assert!(timeout(LIMIT, of_other.recv()).await.is_err(), "access rules do not bind it");
    harness.gateway.renew(&next(&harness, |hub| grant_to_readers(hub, "a")));
    assert!(timeout(LIMIT, of_reader.recv()).await.is_err(), "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_server_was_replaced_is_answered_by_the_new_one_or_reported_as_lost() {
    let made = || {
        Server::new("a")
            .able(r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#)
            .running(|_, _| {
                let task = r#"{"task":{"taskId":"1","status":"working","ttl":null}}"#;
                std::future::ready(Ok(json(task))).boxed()
            })
    };
    let knows = |_: &str, _, _| std::future::ready(Ok(json(r#"{"taskId":"1"}"#))).boxed();
    let forgot = |_: &str, _, _| {
        let (server, message) = ("a".parse().unwrap(), "no such task".to_owned());
        let error =
            CallError::Server { server, code: -32602, message, whole: None, is_modern: true };
        std::future::ready(Err(error)).boxed()
    };
    let harness = Harness::new(vec![made().answering(knows)]);
    let client = harness.legacy(View::All, "{}").await;
    let call = r#"{"name":"a__t","task":{"ttl":60000}}"#;
    let said = harness.ask(&client, "tools/call", call).await;
    let id: String = json(&member(&said.answer, "result.task.taskId")).read().unwrap();
    let get = format!(r#"{{"taskId":"{id}"}}"#);
    // One that is far away may know it still.
    let same = harness.joins(made().answering(knows));
    harness.gateway.renew(&next(&harness, |hub| replaced(hub, same)));
    let said = harness.ask(&client, "tasks/get", &get).await.answer;
    assert!(said.contains(&id), "{said}");
    let fresh = harness.joins(made().answering(forgot));
    harness.gateway.renew(&next(&harness, |hub| replaced(hub, fresh)));
    let said = harness.ask(&client, "tasks/get", &get).await.answer;
    assert!(said.contains("-32602") && said.contains("was started anew"), "{said}");
}
