//! The first lists: they wait for servers that were never seen, once.

use std::sync::Arc;
use std::time::Duration;

use capstan_gateway::View;
use capstan_hub::Absent;
use capstan_hub::ports::{Item, Listing};
use capstan_model::ServerState;
use futures::FutureExt as _;
use futures::future::pending;
use tokio::time::{Instant, sleep};

use crate::harness::{Harness, Server, items};

const SECOND: Duration = Duration::from_secs(1);

/// The methods, with the name of the item that each lists of a server.
const METHODS: [(&str, &str); 4] = [
    ("tools/list", "slow__it"),
    ("prompts/list", "slow__it"),
    ("resources/list", "slow:it"),
    ("resources/templates/list", "slow:it"),
];

fn listed(server: &str, listing: Listing) -> Arc<[Item]> {
    items(&[match listing {
        Listing::Tools => r#"{"name":"it","inputSchema":{"type":"object"}}"#.to_owned(),
        Listing::Prompts => r#"{"name":"it"}"#.to_owned(),
        Listing::Resources => format!(r#"{{"name":"{server}:it","uri":"{server}:it"}}"#),
        Listing::Templates => format!(r#"{{"name":"{server}:it","uriTemplate":"{server}:it"}}"#),
    }])
}

/// A server that lists everything from so long after its start on.
fn starting(name: &'static str, wait: Duration) -> Server {
    let there = Instant::now() + wait;
    Server::new(name).listing(move |listing| {
        tokio::time::sleep_until(there).map(move |()| listed(name, listing)).boxed()
    })
}

fn hanging(name: &str) -> Server {
    Server::new(name).listing(|_| pending().boxed())
}

/// Lists in one era; what came, and after how long.
async fn list(harness: &Harness, method: &str, era: &str) -> (String, Duration) {
    let start = Instant::now();
    let said = if era == "modern" {
        harness.ask_modern(View::All, "{}", method, "{}").await
    } else {
        let client = harness.legacy(View::All, "{}").await;
        harness.ask(&client, method, "{}").await
    };
    (said.answer, start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn the_first_list_of_each_kind_waits_for_a_slow_server_in_both_eras() {
    for era in ["legacy", "modern"] {
        for (method, item) in METHODS {
            let harness =
                Harness::new(vec![starting("quick", SECOND / 1000), starting("slow", 7 * SECOND)]);
            // As when the gateway starts, long before its servers are there.
            let gateway = Arc::clone(&harness.gateway);
            tokio::spawn(async move { gateway.warm_up().await });
            sleep(3 * SECOND).await;
            let (answer, _) = list(&harness, method, era).await;
            assert!(answer.contains(item), "{method}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn initialize_waits_at_most_two_seconds_for_servers_that_were_never_seen() {
    let harness = Harness::new(vec![hanging("stuck"), starting("slow", 7 * SECOND)]);
    let start = Instant::now();
    let client = harness.legacy(View::All, "{}").await;
    assert!(start.elapsed() <= 2 * SECOND, "{:?}", start.elapsed());
    // The list that follows still has its own wait.
    let answer = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(answer.contains("slow__it"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_waited_for_once() {
    let harness = Harness::new(vec![starting("quick", SECOND / 1000), hanging("stuck")]);
    let (first, waited) = list(&harness, "tools/list", "modern").await;
    assert!(first.contains("quick__it"), "{first}");
    assert_eq!(waited, 8 * SECOND);
    for (method, _) in METHODS {
        let (_, waited) = list(&harness, method, "modern").await;
        assert!(waited < SECOND, "{method}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_asked_for_at_the_same_time_share_the_wait() {
    let harness = Harness::new(vec![hanging("stuck")]);
    let start = Instant::now();
    let lists = METHODS.map(|(method, _)| list(&harness, method, "modern"));
    futures::future::join_all(lists).await;
    assert_eq!(start.elapsed(), 8 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_time_is_the_operators_and_zero_waits_for_nothing_more() {
    for seconds in [0, 12] {
        let harness =
            Harness::with(vec![starting("quick", SECOND / 1000), hanging("stuck")], |hub| {
                hub.limits.first_list_wait = seconds * SECOND;
            });
        let (_, waited) = list(&harness, "tools/list", "modern").await;
        let expected = seconds * SECOND;
        assert!(waited >= expected && waited < expected + SECOND, "{seconds}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_ends_its_wait() {
    let harness = Harness::with(vec![starting("quick", SECOND / 1000)], |hub| {
        let state = ServerState::Failed("no such program".to_owned());
        hub.add(Arc::new(Absent::new("broken".parse().unwrap(), state)));
    });
    let (answer, waited) = list(&harness, "tools/list", "legacy").await;
    assert!(answer.contains("quick__it"), "{answer}");
    assert!(waited < SECOND, "{waited:?}");
}
