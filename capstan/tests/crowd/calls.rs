//! Twelve thousand calls whose ids say nothing.

use std::collections::BTreeSet;
use std::fs;

use capstan_testkit::World;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, KINDS, Kind, call, gateway};
use crate::stage::{LIMIT, echoed, fixture};

const CLIENTS: usize = 64;
const SERVERS: usize = 8;

/// Has all clients make as many calls at the same time, each with the same ids, and each of all
/// servers.
async fn check(kinds: &[Kind], count: usize) {
    let traces = World::new();
    let trace = |server: usize| traces.home().join(format!("trace-{server}"));
    let servers: Vec<String> = (0..SERVERS)
        .map(|it| fixture(&format!("s{it}"), &["--trace", trace(it).to_str().unwrap()]))
        .collect();
    let (_world, _gateway, address) = gateway(&servers.concat());
    let connect = (0..CLIENTS).zip(kinds.iter().cycle());
    let mut clients = join_all(connect.map(|(_, kind)| Client::connect(*kind, &address))).await;
    let calls =
        clients.iter_mut().enumerate().map(|(number, client)| use_all(client, number, count));
    join_all(calls).await;
    for server in 0..SERVERS {
        let received = fs::read_to_string(trace(server)).unwrap();
        let calls = received.lines().filter(|line| line.contains("\"tools/call\""));
        let own = format!(" at s{server}\"");
        let (own, others): (Vec<&str>, Vec<&str>) = calls.partition(|line| line.contains(&own));
        assert_eq!((own.len(), others), (CLIENTS * count / SERVERS, vec![]), "s{server}");
    }
}

/// One client's calls: the answer of each has its id and its token.
async fn use_all(client: &mut Client, number: usize, count: usize) {
    let token = |id: usize| format!("client {number}, call {id} at s{}", id % SERVERS);
    let tool = |id: usize| format!("s{}__echo", id % SERVERS);
    // Numbers, and the same as text.
    let id = |at: usize| if at.is_multiple_of(2) { json!(at) } else { json!((at - 1).to_string()) };
    let request = |at: usize| call(id(at), &tool(at), &json!({ "text": token(at) }));
    let answers = client.ask((0..count).map(request).collect()).await;
    let expected: BTreeSet<(String, String)> =
        (0..count).map(|at| (id(at).to_string(), token(at))).collect();
    let got = |answer: &Value| (answer["id"].to_string(), echoed(answer));
    assert_eq!(answers.iter().map(got).collect::<BTreeSet<_>>(), expected);
    assert_eq!(answers.len(), count);
}

/// Neither of these waits for an answer before its next call.
#[tokio::test]
async fn every_answer_of_twelve_thousand_calls_at_once_reaches_its_caller() {
    timeout(LIMIT, check(&[Kind::Older, Kind::Lists], 200)).await.unwrap();
}

#[tokio::test]
async fn every_answer_reaches_its_caller_whatever_revision_it_speaks() {
    timeout(LIMIT, check(&KINDS, 40)).await.unwrap();
}
