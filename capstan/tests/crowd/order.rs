//! Progress and log messages: in order, before the answer, and to nobody but the caller.

use capstan_testkit::{Remote, binary};
use futures::future::{join, join_all};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Client, KINDS, call, gateway};
use crate::stage::LIMIT;

/// The entry of a conformance server as a child.
fn child(era: &str) -> String {
    let program = Value::from(binary("capstan-conformance-server").to_str().unwrap());
    format!("[servers.f]\ncommand = {program}\nargs = [\"--stdio\", \"--era\", \"{era}\"]\n")
}

/// A call that tells of this many steps, under a token that everybody uses.
fn steps(count: usize) -> Value {
    let mut request = call(1, "f__progress", &json!({ "steps": count }));
    request["params"]["_meta"] = json!({ "progressToken": "same" });
    request
}

/// What was told before the answer: progress as its step of how many, a log message as its text.
#[track_caller]
fn told(messages: &[Value]) -> Vec<String> {
    let (answer, before) = messages.split_last().unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let tell = |message: &Value| {
        let params = &message["params"];
        if message["method"] == "notifications/message" {
            return params["data"].to_string();
        }
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(params["progressToken"], "same", "{message}");
        format!("{} of {}", params["progress"], params["total"])
    };
    before.iter().map(tell).collect()
}

/// Two clients of each kind at the same time, who differ in nothing but how far they count.
async fn together(address: &str) -> Vec<(usize, Vec<String>)> {
    let one = |(number, kind)| async move {
        let (mut short, mut long) =
            join(Client::connect(kind, address), Client::connect(kind, address)).await;
        let (few, many) = (20 + number, 40 + number);
        let both = join(short.ask(vec![steps(few)]), long.ask(vec![steps(many)])).await;
        [(few, told(&both.0)), (many, told(&both.1))]
    };
    let all = join_all(KINDS.into_iter().enumerate().map(one)).await;
    all.into_iter().flatten().collect()
}

fn progress(count: usize) -> Vec<String> {
    (1..=count).map(|step| format!("{step} of {count}")).collect()
}

fn log(step: usize) -> String {
    format!("\"log {step}\"")
}

fn with_logs(count: usize) -> Vec<String> {
    (1..=count).flat_map(|step| [format!("{step} of {count}"), log(step)]).collect()
}

async fn over_http(era: &str) {
    let remote = Remote::start(era);
    let entry = format!("[servers.f]\nurl = \"{}\"\n", remote.url);
    let (_world, _gateway, address) = gateway(&entry);
    for (count, told) in together(&address).await {
        assert_eq!(told, with_logs(count), "{era}");
    }
}

/// Over stdio a log message does not say whose it is, so it is left out unless only one can be
/// meant; progress does say.
async fn over_stdio(era: &str) {
    let (_world, _gateway, address) = gateway(&child(era));
    for (count, told) in together(&address).await {
        let (logs, steps): (Vec<String>, Vec<String>) =
            told.into_iter().partition(|told| told.starts_with('"'));
        assert_eq!(steps, progress(count), "{era}");
        assert!(is_part(&logs, &(1..=count).map(log).collect::<Vec<_>>()));
    }
    for kind in KINDS {
        let mut alone = Client::connect(kind, &address).await;
        let told = told(&alone.ask(vec![steps(9)]).await);
        assert_eq!(told, with_logs(9), "{era} {kind:?}");
    }
}

/// Whether all of `some` are in `all`, in this order.
fn is_part(some: &[String], all: &[String]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

#[tokio::test]
async fn what_servers_behind_http_tell_comes_in_order_and_to_its_caller_alone() {
    for era in ["legacy", "modern"] {
        timeout(LIMIT, over_http(era)).await.unwrap();
    }
}

#[tokio::test]
async fn what_servers_over_stdio_tell_comes_in_order_and_to_its_caller_alone() {
    for era in ["legacy", "modern"] {
        timeout(LIMIT, over_stdio(era)).await.unwrap();
    }
}
