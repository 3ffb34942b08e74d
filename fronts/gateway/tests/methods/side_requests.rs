//! Side requests about items, under the rules for calls; and the receivers of notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use capstan_gateway::View;
use capstan_hub::ports::{Listener as _, Listing};
use capstan_hub::{HubBuilder, Rates};
use capstan_model::ServerName;
use capstan_policy::access::{AccessTo, Grant, Says};
use capstan_policy::{Access, AccessTable, Glob, Pattern, Rate, RateBy, Rule};
use futures::FutureExt as _;
use tokio::time::timeout;

use crate::harness::{Harness, LIMIT, Server, allowing, items, member};

const SUBSCRIBE: &str = r#"{"uri":"x:1"}"#;

const COMPLETE: &str =
    r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"path","value":"/a"}}"#;

/// A server with the resource `x:1` and the prompt `p`.
fn server() -> Server {
    Server::new("a").listing(|listing| {
        let item = match listing {
            Listing::Tools | Listing::Prompts => r#"{"name":"p"}"#,
            Listing::Resources | Listing::Templates => r#"{"name":"x:1","uri":"x:1"}"#,
        };
        std::future::ready(items(&[item.to_owned()])).boxed()
    })
}

fn rules(patterns: &[&str]) -> Vec<Rule> {
    let rule = |text: &&str| Rule::new(Pattern::parse(text).unwrap(), "a rule");
    patterns.iter().map(rule).collect()
}

/// The codes of the same errand, sent so often, and how many reached the server.
async fn sent(
    change: impl FnOnce(&mut HubBuilder),
    method: &str,
    params: &str,
) -> (Vec<String>, usize) {
    let harness = Harness::with(vec![server()], change);
    let client = harness.legacy(View::One("a".parse().unwrap()), "{}").await;
    let mut codes = Vec::new();
    for _ in 0..3 {
        let said = harness.ask(&client, method, params).await;
        codes.push(member(&said.answer, "error.code"));
    }
    (codes, harness.take_sent().len())
}

#[tokio::test(start_paused = true)]
async fn side_requests_obey_rates_and_quota() {
    let rate = |hub: &mut HubBuilder| {
        let (every, tools) = (Duration::from_mins(1), Vec::new());
        let rate = Rate { limit: 1, every, by: RateBy::Caller, tools, reason: None };
        hub.rates = Arc::new(Rates::new(vec![rate]));
    };
    let quota = |hub: &mut HubBuilder| hub.limits.quota = Some(1);
    for (method, params) in [("resources/subscribe", SUBSCRIBE), ("completion/complete", COMPLETE)]
    {
        for (codes, reached) in
            [sent(rate, method, params).await, sent(quota, method, params).await]
        {
            assert_eq!(codes, ["", "-32603", "-32603"], "{method}");
            assert_eq!(reached, 1, "{method}");
        }
    }
}

/// Holes 2.
#[tokio::test(start_paused = true)]
async fn an_errand_that_a_server_could_read_otherwise_is_refused() {
    let by_name =
        r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"path","value":"/a"}"#;
    for (method, params) in [
        ("resources/subscribe", r#"{"uri":"x:1","Uri":"x:2"}"#.to_owned()),
        ("resources/subscribe", r#"{"uri":"x:1","uri":"x:2"}"#.to_owned()),
        ("resources/subscribe", r#"{"uri":"x:1","_META":{}}"#.to_owned()),
        (
            "completion/complete",
            format!(r#"{{{by_name},"ref":{{"type":"ref/prompt","name":"q"}}}}"#),
        ),
        (
            "completion/complete",
            format!(r#"{{{by_name},"Ref":{{"type":"ref/prompt","name":"q"}}}}"#),
        ),
        ("completion/complete", COMPLETE.replace(r#""name":"p""#, r#""name":"p","Name":"q""#)),
        ("completion/complete", COMPLETE.replace(r#""name":"p""#, r#""name":"p","uri\u0000":"q""#)),
        (
            "completion/complete",
            COMPLETE.replace(r#""value":"/a""#, r#""value":"/a","VALUE":"/b""#),
        ),
        ("completion/complete", format!(r#"{{{by_name},"context":{{"Arguments":{{}}}}}}"#)),
    ] {
        let (codes, reached) = sent(|_| {}, method, &params).await;
        assert_eq!((codes, reached), (vec!["-32602".to_owned(); 3], 0), "{method} {params}");
    }
    for (method, params) in [("resources/subscribe", SUBSCRIBE), ("completion/complete", COMPLETE)]
    {
        let (codes, _) = sent(|_| {}, method, params).await;
        assert_eq!(codes, [""; 3], "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn side_requests_are_decided_on_with_their_arguments() {
    let ruled = |deny: &'static [&'static str], ask: &'static [&'static str]| {
        move |hub: &mut HubBuilder| {
            let mut policy = allowing(hub.servers());
            (policy.permissions.global.deny, policy.permissions.global.ask) =
                (rules(deny), rules(ask));
            hub.policy = Arc::new(policy.compile());
        }
    };
    let (subscribe, complete) = ("resources/subscribe", "completion/complete");
    for (method, params, deny, ask, code) in [
        (subscribe, SUBSCRIBE, &["*:uri=x:1"][..], &[][..], "-32002"),
        (subscribe, SUBSCRIBE, &["*:uri=x:2"], &[], ""),
        (subscribe, SUBSCRIBE, &[], &["a__x:1"], "-32603"),
        (subscribe, SUBSCRIBE, &[], &["*:uri=x:1"], "-32603"),
        (complete, COMPLETE, &["p:path=/a*"], &[], "-32602"),
        (complete, COMPLETE, &["p:path=/b*"], &[], ""),
        (complete, COMPLETE, &[], &["a__p"], "-32603"),
    ] {
        let (codes, reached) = sent(ruled(deny, ask), method, params).await;
        assert_eq!(codes, [code; 3], "{method} {deny:?} {ask:?}");
        assert_eq!(reached, if code.is_empty() { 3 } else { 0 }, "{method} {deny:?} {ask:?}");
    }
}

/// Two servers, of which the role `reader` may use `a` alone.
fn with_role(hub: &mut HubBuilder) {
    grant_to_readers(hub, "a");
}

/// The role `reader` may use the servers of these names, and no others.
pub(crate) fn grant_to_readers(hub: &mut HubBuilder, servers: &str) {
    let mut policy = allowing(hub.servers());
    let names: Vec<ServerName> = policy.servers.keys().cloned().collect();
    let grant = Grant {
        servers: vec![Glob::stars(servers)],
        access: AccessTo::All,
        tools: None,
        resources: None,
        prompts: None,
        says: Says::Allow,
    };
    let roles = vec![("reader".to_owned(), vec![grant])];
    let table = AccessTable { default: Says::Deny, roles, ..AccessTable::default() };
    policy.access = vec![Access::new(table, names.iter().map(|name| (name, name.as_str())))];
    hub.policy = Arc::new(policy.compile());
}

/// A server with one more tool each time that it is asked.
fn growing(name: &str) -> Server {
    let asked = AtomicUsize::new(0);
    Server::new(name).listing(move |_| {
        let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let tools: Vec<String> = (0..count).map(|at| format!(r#"{{"name":"t{at}"}}"#)).collect();
        std::future::ready(items(&tools)).boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn what_changes_at_a_server_out_of_reach_is_not_told() {
    let harness = Harness::with(vec![Server::new("a"), growing("b")], with_role);
    let (reader, all) = (harness.bound("reader").await, harness.legacy(View::All, "{}").await);
    for client in [&reader, &all] {
        harness.ask(client, "tools/list", "{}").await;
    }
    let (mut of_reader, mut of_all) = (reader.open_inbox(), all.open_inbox());
    harness.gateway.list_changed(&"b".parse().unwrap(), Listing::Tools);
    timeout(LIMIT, of_all.recv()).await.unwrap().unwrap();
    assert!(timeout(LIMIT, of_reader.recv()).await.is_err(), "it was told");

    let harness = Harness::with(vec![growing("a"), Server::new("b")], with_role);
    let reader = harness.bound("reader").await;
    harness.ask(&reader, "tools/list", "{}").await;
    let mut of_reader = reader.open_inbox();
    harness.gateway.list_changed(&"a".parse().unwrap(), Listing::Tools);
    timeout(LIMIT, of_reader.recv()).await.unwrap().unwrap();
    assert!(timeout(LIMIT, of_reader.recv()).await.is_err(), "it was told twice");
}

#[tokio::test(start_paused = true)]
async fn a_log_level_reaches_only_servers_within_reach() {
    let harness = Harness::with(vec![Server::new("a"), Server::new("b")], with_role);
    let reader = harness.bound("reader").await;
    harness.ask(&reader, "logging/setLevel", r#"{"level":"debug"}"#).await;
    tokio::time::sleep(LIMIT).await;
    assert_eq!(harness.take_sent(), [r#"a logging/setLevel "debug""#]);
}
