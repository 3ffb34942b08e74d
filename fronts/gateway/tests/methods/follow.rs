//! Tasks that clients listen to: whose they are, what is told of them, and when it ends.

use std::sync::{Arc, Mutex, Weak};

use capstan_gateway::{Exchange, Out, View};
use capstan_hub::ports::Subscriber;
use capstan_model::CallError;
use capstan_policy::{Pattern, Rule};
use capstan_wire::{Json, compose, object};
use futures::FutureExt as _;
use futures::future::{pending, ready};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::harness::{Harness, LIMIT, Server, To, allowing, finish, json, member};
use crate::tasks::{ABLE, modern, text};

const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const TASKS: &str = "notifications/tasks";

/// The subscribers to a server's task notifications, while their subscriptions last.
type Subscriptions = Arc<Mutex<Vec<Weak<dyn Subscriber>>>>;

/// A server that notifies about the tasks that `accepts` selects.
fn telling(name: &str, accepts: fn(&Json) -> Json) -> (Server, Subscriptions) {
    let hearers = Subscriptions::default();
    let heard = Arc::clone(&hearers);
    let server = modern(name).answering(move |method, params, to| {
        let To::Subscriber(subscriber, capabilities) = to else {
            return ready(Ok(json("{}"))).boxed();
        };
        assert_eq!(method, LISTEN);
        assert!(capabilities.to_string().contains("io.modelcontextprotocol/tasks"));
        let accepted = compose::object(&[("taskIds", &accepts(&params))]);
        subscriber.notify(ACKNOWLEDGED, &compose::object(&[("notifications", &accepted)]));
        heard.lock().unwrap().push(Arc::downgrade(&subscriber));
        async move {
            let _hears = subscriber;
            pending().await
        }
        .boxed()
    });
    (server, hearers)
}

/// A server that tells of all tasks it is asked for.
fn willing(name: &str) -> (Server, Subscriptions) {
    telling(name, Clone::clone)
}

fn listening(hearers: &Subscriptions) -> usize {
    hearers.lock().unwrap().iter().filter(|one| one.strong_count() > 0).count()
}

#[track_caller]
fn tell(hearers: &Subscriptions, task: &str) {
    let hearer = hearers.lock().unwrap().iter().find_map(Weak::upgrade);
    hearer.unwrap().notify(TASKS, &json(task));
}

/// Has a server make a task: its id.
async fn start(harness: &Harness, server: &str) -> String {
    let call = format!(r#"{{"name":"{server}__t"}}"#);
    let said = harness.ask_modern(View::All, ABLE, "tools/call", &call).await;
    harness.take_sent();
    text(&said.answer, "result.taskId")
}

/// Listens to tasks, and to changes of tools.
fn listen(harness: &Harness, subject: &str, ids: &[&str]) -> Exchange {
    let ids: Vec<Json> = ids.iter().map(|id| compose::string(id)).collect();
    let ids = compose::array(&ids);
    let wanted = format!(r#"{{"notifications":{{"taskIds":{ids},"toolsListChanged":true}}}}"#);
    harness.start_as(subject, View::All, ABLE, LISTEN, &wanted)
}

/// The next message; `None` if it is the answer.
async fn hear(listening: &mut Exchange) -> Option<String> {
    match timeout(LIMIT, listening.next()).await.unwrap().unwrap() {
        Out::Message(message) => Some(String::from_utf8(message.to_vec()).unwrap()),
        Out::Answer(_) => None,
    }
}

/// The tasks that the first message says it will be told of.
async fn accepted(listening: &mut Exchange) -> String {
    let first = hear(listening).await.unwrap();
    assert_eq!(text(&first, "method"), ACKNOWLEDGED);
    assert_eq!(member(&first, "params.notifications.toolsListChanged"), "true");
    member(&first, "params.notifications.taskIds")
}

#[tokio::test]
async fn how_a_task_goes_is_told_byte_for_byte_until_it_is_over_or_nobody_listens() {
    let ((a, of_a), (b, of_b)) = (willing("a"), willing("b"));
    let harness = Harness::new(vec![a, b]);
    let (first, second) = (start(&harness, "a").await, start(&harness, "b").await);
    let mut stream = listen(&harness, "anonymous", &[&second, &first, &first]);
    assert_eq!(accepted(&mut stream).await, format!(r#"["{first}","{second}"]"#));
    let sent = harness.take_sent();
    assert_eq!(sent, ["a", "b"].map(|name| format!(r#"{name} {LISTEN} ["1"]"#)));

    let tag = "io.modelcontextprotocol/subscriptionId";
    let said = |id: &str, tag: &str| {
        format!(r#"{{"x":1.00,"taskId":"{id}","_meta":{{"y":2,{tag}}},"status":"working"}}"#)
    };
    for (hearers, id) in [(&of_b, &second), (&of_a, &first)] {
        tell(hearers, &said("1", &format!(r#""{tag}":77"#)));
        let told = hear(&mut stream).await.unwrap();
        assert_eq!(text(&told, "method"), TASKS);
        assert_eq!(member(&told, "params"), said(id, &format!(r#""{tag}":1"#)));
    }
    tell(&of_a, r#"{"taskId":"2","status":"working"}"#);
    for status in ["input_required", "completed"] {
        tell(&of_a, &format!(r#"{{"taskId":"1","status":"{status}"}}"#));
    }
    for status in ["input_required", "completed"] {
        assert_eq!(text(&hear(&mut stream).await.unwrap(), "params.status"), status);
    }
    // Of what is over there is nothing more to tell; the rest goes on.
    assert!((&mut Box::pin(stream.next())).now_or_never().is_none());
    assert_eq!((listening(&of_a), listening(&of_b)), (0, 1));
    drop(stream);
    while listening(&of_b) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_is_asked_about_tasks_of_others_or_of_nobody() {
    let harness = Harness::new(vec![willing("a").0]);
    let id = start(&harness, "a").await;
    for (subject, ids) in
        [("bob", [id.as_str(), "1"]), ("anonymous", ["1", "task-1"]), ("anonymous", ["", "a"])]
    {
        assert_eq!(accepted(&mut listen(&harness, subject, &ids)).await, "", "{subject} {ids:?}");
    }
    let wanted = format!(r#"{{"notifications":{{"taskIds":["{id}"]}}}}"#);
    let said = harness.ask_modern(View::All, "{}", LISTEN, &wanted).await;
    assert_eq!(member(&said.answer, "error.code"), "-32021");
    let required = member(&said.answer, "error.data.requiredCapabilities");
    assert_eq!(required, r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    assert!(harness.take_sent().is_empty());
}

#[tokio::test]
async fn what_a_server_does_not_tell_of_is_left_out() {
    let refuses = modern("a").answering(|method, _, _| {
        assert_eq!(method, LISTEN);
        let (server, message) = ("a".parse().unwrap(), "no".to_owned());
        ready(Err(CallError::Server {
            server,
            code: -32601,
            message,
            whole: None,
            is_modern: true,
        }))
        .boxed()
    });
    let (b, of_b) = telling("b", |_| json(r#"["2"]"#));
    let (c, of_c) = telling("c", |_| json("7"));
    let harness = Harness::new(vec![refuses, b, c]);
    let ids = [start(&harness, "a").await, start(&harness, "b").await, start(&harness, "c").await];
    let mut stream = listen(&harness, "anonymous", &ids.each_ref().map(String::as_str));
    assert_eq!(accepted(&mut stream).await, "");
    assert_eq!((listening(&of_b), listening(&of_c)), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_not_waited_for_for_ever() {
    let harness = Harness::new(vec![modern("a").answering(|_, _, _| pending().boxed())]);
    let id = start(&harness, "a").await;
    assert_eq!(accepted(&mut listen(&harness, "anonymous", &[&id])).await, "");
}

#[tokio::test]
async fn what_a_task_may_not_ask_is_not_told_but_declined() {
    let asked = r#"{"taskId":"1","status":"input_required","inputRequests":{"f":{"method":"elicitation/create","params":{"message":"Sure?"}},"s":{"method":"sampling/createMessage","params":{}}}}"#;
    let (a, of_a) = willing("a");
    let harness = Harness::new(vec![a]);
    let id = start(&harness, "a").await;
    let mut stream = listen(&harness, "anonymous", &[&id]);
    accepted(&mut stream).await;
    harness.take_sent();
    tell(&of_a, asked);
    assert_eq!(member(&hear(&mut stream).await.unwrap(), "params.inputRequests"), "{}");
    let declined = r#"{"taskId":"1","inputResponses":{"f":{"action":"decline"}}}"#;
    assert_eq!(harness.take_sent(), [format!("a tasks/update {declined}")]);
    // To what is left there is no answer, and a server may tell of its task for each that it gets.
    let left = object::without_member(&object::get(&json(asked), "inputRequests").unwrap(), "f");
    tell(
        &of_a,
        &object::with_member(&json(asked), "inputRequests", &left.unwrap()).unwrap().to_string(),
    );
    assert_eq!(member(&hear(&mut stream).await.unwrap(), "params.inputRequests"), "{}");
    assert!(harness.take_sent().is_empty());
}

#[tokio::test]
async fn what_may_be_asked_is_told_with_the_name_of_its_server_unless_a_rule_forbids_it() {
    let asked = r#"{"taskId":"1","status":"input_required","inputRequests":{"f":{"method":"elicitation/create","params":{"message":"Sure?"}}}}"#;
    let able = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    for (denied, message) in [("b", r#""[a] Sure?""#), ("a", "")] {
        let (a, of_a) = willing("a");
        let harness = Harness::with(vec![a, modern("b")], |hub| {
            let pattern = Pattern::parse(&format!("Elicit({denied})")).unwrap();
            let mut policy = allowing(hub.servers());
            policy.permissions.global.deny = vec![Rule::new(pattern, "permissions.deny")];
            hub.policy = Arc::new(policy.compile());
        });
        let id = start(&harness, "a").await;
        let wanted =
            format!(r#"{{"notifications":{{"toolsListChanged":true,"taskIds":["{id}"]}}}}"#);
        let mut stream = harness.start_modern(View::All, able, LISTEN, &wanted);
        accepted(&mut stream).await;
        tell(&of_a, asked);
        let told = hear(&mut stream).await.unwrap();
        assert_eq!(member(&told, "params.inputRequests.f.params.message"), message);
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_told_how_its_task_goes_on_is_sent_away() {
    let working = r#"{"taskId":"1","status":"working"}"#;
    let large = format!(r#"{{"taskId":"1","status":"working","x":"{}"}}"#, "x".repeat(600_000));
    let too_large = format!(r#"{{"taskId":"1","x":"{}"}}"#, "x".repeat(11 << 20));
    let one = std::slice::from_ref;
    // A message that is too large, and more than there is room for.
    for (said, told) in [(one(&too_large), 0), (&[large.clone(), large.clone(), large][..], 1)] {
        let (a, of_a) = willing("a");
        let harness = Harness::new(vec![a]);
        let id = start(&harness, "a").await;
        let mut stream = listen(&harness, "anonymous", &[&id]);
        accepted(&mut stream).await;
        tell(&of_a, working);
        hear(&mut stream).await.unwrap();
        for said in said {
            tell(&of_a, said);
        }
        for _ in 0..told {
            hear(&mut stream).await.unwrap();
        }
        assert_eq!(hear(&mut stream).await, None);
        assert_eq!(listening(&of_a), 0);
    }
}

#[tokio::test]
async fn a_task_whose_id_its_server_has_given_away_is_told_to_nobody_before() {
    let (a, of_a) = willing("a");
    let harness = Harness::new(vec![a]);
    let id = start(&harness, "a").await;
    let mut stream = listen(&harness, "anonymous", &[&id]);
    accepted(&mut stream).await;
    let call = r#"{"name":"a__t"}"#;
    let made = finish(harness.start_as("bob", View::All, ABLE, "tools/call", call)).await;
    assert_ne!(text(&made.answer, "result.taskId"), id);
    tell(&of_a, r#"{"taskId":"1","status":"completed","result":{"of":"bob"}}"#);
    assert_eq!(hear(&mut stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_subscription_is_the_end_of_the_stream_unless_all_was_told() {
    for (status, ends) in [("working", true), ("failed", false)] {
        let task = format!(r#"{{"taskId":"1","status":"{status}"}}"#);
        let go = Arc::new(Notify::new());
        let gone = Arc::clone(&go);
        let a = modern("a").answering(move |_, params, to| {
            let (task, gone) = (json(&task), Arc::clone(&gone));
            async move {
                let To::Subscriber(subscriber, _) = to else { unreachable!() };
                let ids = compose::object(&[("taskIds", &params)]);
                subscriber.notify(ACKNOWLEDGED, &compose::object(&[("notifications", &ids)]));
                gone.notified().await;
                subscriber.notify(TASKS, &task);
                Ok(json(r#"{"resultType":"complete"}"#))
            }
            .boxed()
        });
        let harness = Harness::new(vec![a]);
        let id = start(&harness, "a").await;
        let mut stream = listen(&harness, "anonymous", &[&id]);
        accepted(&mut stream).await;
        go.notify_one();
        assert_eq!(text(&hear(&mut stream).await.unwrap(), "params.status"), status);
        let next = timeout(LIMIT, stream.next()).await;
        assert_eq!(matches!(next, Ok(Some(Out::Answer(_)))), ends, "{status}");
    }
}
