//! A quota that many clients race for.

use std::fs;

use capstan_testkit::World;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, Kind, call, gateway};
use crate::stage::{LIMIT, fixture};

const CLIENTS: usize = 64;

/// More than ten thousand together.
const ATTEMPTS: usize = 157;

fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["capstan/error"]["code"]
}

/// Has clients make calls at the same time under a quota; how many were answered, how many were
/// blocked, and how many calls reached the server.
async fn race(kind: Kind, clients: usize, attempts: usize, quota: u32) -> (usize, usize, usize) {
    let traces = World::new();
    let trace = traces.home().join("trace");
    let quota = format!("[tools]\nmax_tool_calls_per_session = {quota}\n\n");
    let server = fixture("s", &["--trace", trace.to_str().unwrap()]);
    let (_world, _gateway, address) = gateway(&format!("{quota}{server}"));
    let mut clients = join_all((0..clients).map(|_| Client::connect(kind, &address))).await;
    let calls = clients.iter_mut().map(|client| {
        client.ask((0..attempts).map(|id| call(id, "s__echo", &json!({ "text": id }))).collect())
    });
    let answers: Vec<Value> = join_all(calls).await.into_iter().flatten().collect();
    let blocked = answers.iter().filter(|answer| code(answer) == "quota_blocked").count();
    let answered = answers.iter().filter(|answer| answer["result"]["isError"] != true).count();
    let received = fs::read_to_string(trace).unwrap();
    (answered, blocked, received.lines().filter(|line| line.contains("\"tools/call\"")).count())
}

/// Clients without a session are one conversation when they are one caller with one client.
#[tokio::test]
async fn c49_of_ten_thousand_attempts_in_one_session_exactly_a_hundred_reach_the_server() {
    let raced = timeout(LIMIT, race(Kind::Modern, CLIENTS, ATTEMPTS, 100)).await.unwrap();
    assert_eq!(raced, (100, CLIENTS * ATTEMPTS - 100, 100));
}

#[tokio::test]
async fn every_session_has_a_quota_of_its_own() {
    for kind in [Kind::Session, Kind::Older, Kind::Lists] {
        let raced = timeout(LIMIT, race(kind, 4, 8, 5)).await.unwrap();
        assert_eq!(raced, (20, 12, 20), "{kind:?}");
    }
}
