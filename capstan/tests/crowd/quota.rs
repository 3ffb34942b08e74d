//! A quota that many race for.

use std::fs;

use capstan_testkit::World;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, Kind, call, gateway};
use crate::stage::{Gateway, LIMIT, fixture};

/// A gateway with a quota, and a server that writes down what reaches it.
struct Scene {
    traces: World,
    _alive: (World, Gateway),
    address: String,
}

/// What became of all attempts.
#[derive(Debug, PartialEq, Eq)]
struct Race {
    answered: usize,
    blocked: usize,
    /// How many calls the server has seen.
    served: usize,
}

// === impl Scene ===

impl Scene {
    #[track_caller]
    fn new(quota: u32) -> Self {
        let traces = World::new();
        let trace = traces.home().join("trace");
        let quota = format!("[tools]\nmax_tool_calls_per_session = {quota}\n\n");
        let server = fixture("s", &["--trace", trace.to_str().unwrap()]);
        let (world, gateway, address) = gateway(&format!("{quota}{server}"));
        Self { traces, _alive: (world, gateway), address }
    }

    /// Has all clients make `rounds` times so many calls `at_once`.
    async fn race(&self, clients: &mut [Client], rounds: usize, at_once: usize) -> Race {
        let attempts = clients.iter_mut().enumerate().map(|(number, client)| async move {
            let mut answers = Vec::new();
            for round in 0..rounds {
                // Within a session no two may have the same id.
                let id = |at: usize| (number * rounds + round) * at_once + at;
                let calls = (0..at_once).map(|at| call(id(at), "s__echo", &json!({ "text": "" })));
                answers.extend(client.ask(calls.collect()).await);
            }
            answers
        });
        let answers: Vec<Value> = join_all(attempts).await.into_iter().flatten().collect();
        let code = |answer: &Value| answer["result"]["_meta"]["capstan/error"]["code"].clone();
        let received = fs::read_to_string(self.traces.home().join("trace")).unwrap();
        Race {
            answered: answers.iter().filter(|answer| answer["result"]["isError"] != true).count(),
            blocked: answers.iter().filter(|answer| code(answer) == "quota_blocked").count(),
            served: received.lines().filter(|line| line.contains("\"tools/call\"")).count(),
        }
    }
}

#[tokio::test]
async fn c49_of_ten_thousand_attempts_in_one_session_exactly_a_hundred_reach_the_server() {
    let scene = Scene::new(100);
    let first = Client::connect(Kind::Lists, &scene.address).await;
    let mut clients = join_all((0..64).map(|_| first.again(&scene.address))).await;
    let race = timeout(LIMIT, scene.race(&mut clients, 11, 15)).await.unwrap();
    assert_eq!(race, Race { answered: 100, blocked: 64 * 11 * 15 - 100, served: 100 });
}

#[tokio::test]
async fn c49_clients_without_a_session_are_one_when_they_are_one_caller_with_one_client() {
    let scene = Scene::new(100);
    let mut clients =
        join_all((0..64).map(|_| Client::connect(Kind::Modern, &scene.address))).await;
    let race = timeout(LIMIT, scene.race(&mut clients, 1, 8)).await.unwrap();
    assert_eq!(race, Race { answered: 100, blocked: 64 * 8 - 100, served: 100 });
}

#[tokio::test]
async fn every_session_has_a_quota_of_its_own() {
    for kind in [Kind::Session, Kind::Older, Kind::Lists] {
        let scene = Scene::new(5);
        let mut clients = join_all((0..4).map(|_| Client::connect(kind, &scene.address))).await;
        let race = timeout(LIMIT, scene.race(&mut clients, 1, 8)).await.unwrap();
        assert_eq!(race, Race { answered: 20, blocked: 12, served: 20 }, "{kind:?}");
    }
}
