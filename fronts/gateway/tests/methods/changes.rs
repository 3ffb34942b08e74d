//! Changes of lists, and the notifications about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capstan_gateway::View;
use capstan_hub::ports::{Listener as _, Listing};
use capstan_policy::{Pattern, Rule};
use futures::FutureExt as _;
use futures::future::pending;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::harness::{Harness, LIMIT, Server, allowing, items, member};

fn one(server: &str) -> View {
    View::One(server.parse().unwrap())
}

/// A server that has one more tool each time that it is asked; how often it may be, and who is
/// told when it is asked once too often.
fn growing(name: &str, answers: usize) -> (Server, Arc<Notify>) {
    let (asked, late) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let hangs = Arc::clone(&late);
    let server = Server::new(name).listing(move |listing| {
        if listing != Listing::Tools {
            return std::future::ready(Arc::from([])).boxed();
        }
        let count = asked.fetch_add(1, Ordering::Relaxed) + 1;
        if count > answers {
            hangs.notify_one();
            return pending().boxed();
        }
        let tool = |at| format!(r#"{{"name":"t{at}","inputSchema":{{"type":"object"}}}}"#);
        let tools: Vec<String> = (0..count).map(tool).collect();
        std::future::ready(items(&tools)).boxed()
    });
    (server, late)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_keeps_no_change_of_another_back() {
    let ((slow, hangs), (fast, _)) = (growing("slow", 1), growing("fast", usize::MAX));
    let harness = Harness::new(vec![slow, fast]);
    for server in ["slow", "fast"] {
        let client = harness.legacy(one(server), "{}").await;
        harness.ask(&client, "tools/list", "{}").await;
    }
    let client = harness.legacy(one("fast"), "{}").await;
    let mut inbox = client.open_inbox();
    harness.gateway.list_changed(&"slow".parse().unwrap(), Listing::Tools);
    timeout(LIMIT, hangs.notified()).await.unwrap();
    harness.gateway.list_changed(&"fast".parse().unwrap(), Listing::Tools);
    let told = timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
    assert!(told.windows(18).any(|part| part == b"tools/list_changed"));
}

#[tokio::test(start_paused = true)]
async fn of_many_changes_at_once_no_kind_is_lost() {
    let lists = |listing: Listing| {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let count = ASKED.fetch_add(1, Ordering::Relaxed);
        let item = match listing {
            Listing::Tools | Listing::Prompts => format!(r#"{{"name":"n{count}"}}"#),
            Listing::Resources | Listing::Templates => {
                format!(r#"{{"name":"x:{count}","uri":"x:{count}"}}"#)
            }
        };
        std::future::ready(items(&[item])).boxed()
    };
    let harness = Harness::new(vec![Server::new("a").listing(lists)]);
    let client = harness.legacy(one("a"), "{}").await;
    for method in ["tools/list", "prompts/list", "resources/list"] {
        harness.ask(&client, method, "{}").await;
    }
    let mut inbox = client.open_inbox();
    for _ in 0..1000 {
        harness.gateway.list_changed(&"a".parse().unwrap(), Listing::Tools);
    }
    harness.gateway.list_changed(&"a".parse().unwrap(), Listing::Prompts);
    harness.gateway.list_changed(&"a".parse().unwrap(), Listing::Resources);
    let mut told = Vec::new();
    for _ in 0..3 {
        let message = timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
        told.push(member(std::str::from_utf8(&message).unwrap(), "method"));
    }
    told.sort();
    let expected = ["prompts", "resources", "tools"];
    assert_eq!(told, expected.map(|list| format!(r#""notifications/{list}/list_changed""#)));
}

#[tokio::test(start_paused = true)]
async fn a_list_changes_when_a_rule_ceases_to_count() {
    let harness = Harness::with(vec![Server::new("a").with_tools(&["read", "drop"])], |hub| {
        let mut policy = allowing(hub.servers());
        let rule = Rule::new(Pattern::parse("*drop").unwrap(), "permissions.deny");
        let end = Some(Timestamp::from_second(60).unwrap());
        policy.permissions.global.deny = vec![Rule { expires_at: end, ..rule }];
        hub.policy = Arc::new(policy.compile());
    });
    let client = harness.legacy(View::All, "{}").await;
    let mut inbox = client.open_inbox();
    let before = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(before.contains("a__read") && !before.contains("a__drop"), "{before}");
    // Told without anybody asking.
    let told = timeout(2 * LIMIT * 2, inbox.recv()).await.unwrap().unwrap();
    assert!(told.windows(18).any(|part| part == b"tools/list_changed"));
    let after = harness.ask(&client, "tools/list", "{}").await.answer;
    assert!(after.contains("a__drop"), "{after}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_listens_and_has_not_listed_is_told_of_changes() {
    let harness = Harness::new(vec![Server::new("a"), Server::new("b")]);
    let all = harness.legacy(View::All, "{}").await;
    let (here, elsewhere) =
        (harness.legacy(one("a"), "{}").await, harness.legacy(one("b"), "{}").await);
    let mut inboxes = [&all, &here, &elsewhere].map(|client| client.open_inbox());
    for (listing, word) in [
        (Listing::Tools, "tools"),
        (Listing::Prompts, "prompts"),
        (Listing::Templates, "resources"),
    ] {
        harness.gateway.list_changed(&"a".parse().unwrap(), listing);
        for inbox in inboxes.iter_mut().take(2) {
            let told = timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
            let told = String::from_utf8(told.to_vec()).unwrap();
            assert!(told.contains(&format!("notifications/{word}/list_changed")), "{told}");
        }
    }
    assert!(inboxes.iter_mut().all(|inbox| inbox.try_recv().is_err()), "nothing else is told");
}

#[tokio::test(start_paused = true)]
async fn a_reported_change_is_passed_on_once_whether_the_list_differs_or_not() {
    let (growing, _) = growing("grows", usize::MAX);
    let harness = Harness::new(vec![Server::new("same"), growing]);
    for name in ["same", "grows"] {
        let client = harness.legacy(one(name), "{}").await;
        let mut inbox = client.open_inbox();
        harness.ask(&client, "tools/list", "{}").await;
        for reads_first in [false, true] {
            harness.gateway.list_changed(&name.parse().unwrap(), Listing::Tools);
            if reads_first {
                // The client may have read the new list before it is told of it.
                harness.ask(&client, "tools/list", "{}").await;
            }
            let told = timeout(LIMIT, inbox.recv()).await.unwrap().unwrap();
            assert!(told.windows(18).any(|part| part == b"tools/list_changed"));
            tokio::time::sleep(LIMIT).await;
            assert!(inbox.try_recv().is_err(), "{name} is told of twice");
        }
    }
}
