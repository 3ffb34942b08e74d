//! Clients that go away, and servers that do.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use capstan_testkit::{World, alive, descendants, wait_until};
use futures::future::{join, join_all};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, KINDS, call, gateway};
use crate::stage::{Gateway, LIMIT, echoed, fixture};

/// How soon a caller hears that its server has died.
const SOON: Duration = Duration::from_secs(1);

/// The messages of a kind that a fixture has received.
fn received(trace: &Path, piece: &str) -> Vec<Value> {
    let text = fs::read_to_string(trace).unwrap_or_default();
    // The last line may be half written.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().filter(|line| line.contains(piece));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_call_and_no_other() {
    for era in ["legacy", "modern"] {
        for kind in KINDS {
            let traces = World::new();
            let trace = traces.home().join("trace");
            let options = ["--era", era, "--trace", trace.to_str().unwrap()];
            let (_world, _gateway, address) = gateway(&fixture("f", &options));
            let mut stays = Client::connect(kind, &address).await;
            stays.begin(call(1, "f__hang", &json!({ "text": "stays" }))).await;
            let mut leaves = Client::connect(kind, &address).await;
            leaves.begin(call(1, "f__hang", &json!({ "text": "leaves" }))).await;
            let both = || received(&trace, "\"tools/call\"").len() == 2;
            assert!(wait_until(both, LIMIT), "{era} {kind:?}");

            drop(leaves);
            let cancelled = || received(&trace, "\"notifications/cancelled\"");
            assert!(wait_until(|| !cancelled().is_empty(), LIMIT), "{era} {kind:?}");
            let call = received(&trace, "\"leaves\"").remove(0);
            let told = cancelled();
            assert_eq!(told.len(), 1, "{era} {kind:?}: {told:?}");
            assert_eq!(told[0]["params"]["requestId"], call["id"], "{era} {kind:?}");
        }
    }
}

/// The process of the fixture whose command line has this word.
fn process(gateway: u32, word: &str) -> u32 {
    let is_it = |pid: &u32| {
        let exe = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        exe.ends_with("capstan-fixture") && String::from_utf8_lossy(&line).contains(word)
    };
    descendants(gateway).into_iter().find(is_it).unwrap()
}

/// Two servers and their callers, of each kind one, all with a call under way.
struct Scene {
    _worlds: [World; 2],
    gateway: Gateway,
    callers: Vec<Client>,
    others: Vec<Client>,
}

// === impl Scene ===

impl Scene {
    async fn set() -> Self {
        let traces = World::new();
        let (first, second) = (traces.home().join("first"), traces.home().join("second"));
        let victim = fixture("victim", &["--trace", first.to_str().unwrap()]);
        let other = fixture("other", &["--trace", second.to_str().unwrap()]);
        let (world, gateway, address) = gateway(&format!("{victim}{other}"));
        let connect = || join_all(KINDS.map(|kind| Client::connect(kind, &address)));
        let (mut callers, mut others) = join(connect(), connect()).await;
        let slow = call(1, "other__slow", &json!({ "ms": 1500 }));
        for (caller, other) in callers.iter_mut().zip(&mut others) {
            caller.begin(call(1, "victim__hang", &json!({}))).await;
            other.begin(slow.clone()).await;
        }
        let all = |trace: &Path| received(trace, "\"tools/call\"").len() == KINDS.len();
        assert!(wait_until(|| all(&first) && all(&second), LIMIT));
        Self { _worlds: [world, traces], gateway, callers, others }
    }

    /// Kills the server of the callers, who must hear of it at once.
    async fn kill(&mut self) {
        let pid = process(self.gateway.child.id(), "first");
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
        let killed = Instant::now();
        let told = join_all(self.callers.iter_mut().map(Client::finish)).await;
        let took = killed.elapsed();
        assert!(took < SOON, "they have waited for {took:?}");
        assert!(!alive(pid));
        for answers in told {
            assert_eq!(answers.len(), 1, "{answers:?}");
            let result = &answers[0]["result"];
            assert_eq!(result["isError"], true, "{answers:?}");
            assert_eq!(result["_meta"]["capstan/error"]["code"], "outcome_unknown", "{answers:?}");
        }
    }
}

#[tokio::test]
async fn a_server_killed_in_the_middle_fails_its_callers_at_once_and_nobody_else_notices() {
    let mut scene = timeout(LIMIT, Scene::set()).await.unwrap();
    timeout(LIMIT, scene.kill()).await.unwrap();
    let others = join_all(scene.others.iter_mut().map(Client::finish));
    for answers in timeout(LIMIT, others).await.unwrap() {
        assert_eq!(answers[0]["result"]["content"][0]["text"], "done", "{answers:?}");
    }
    // Whoever calls again finds the server there again.
    for caller in &mut scene.callers {
        let again = caller.ask(vec![call(1, "victim__echo", &json!({ "text": "hi" }))]);
        assert_eq!(echoed(&timeout(LIMIT, again).await.unwrap()[0]), "hi");
    }
}
