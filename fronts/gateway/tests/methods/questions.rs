//! Questions of servers: who is asked, on whose behalf, and the end of abandoned questions.

use std::sync::Arc;

use capstan_gateway::View;
use capstan_hub::BackChannel;
use capstan_hub::ports::{Asking, Notice};
use capstan_model::CallError;
use capstan_policy::{Pattern, Rule};
use capstan_wire::Json;
use futures::FutureExt as _;
use futures::future::{ready, select};
use tokio::sync::Notify;

use crate::harness::{Given, Harness, Server, allowing, follow, json, member};

const FORMS: &str = r#"{"elicitation":{}}"#;

fn ask(back: &BackChannel, asking: Asking) -> Given {
    let back = back.clone();
    let params = json(r#"{"message":"Sure?","requestedSchema":{}}"#);
    async move {
        let answer = back.ask(asking, params).await;
        Ok(answer.unwrap_or_else(|error| json(&format!(r#"{{"code":{}}}"#, error.code))))
    }
    .boxed()
}

/// A legacy server whose tool asks, and goes on when it is told to.
fn impatient(go: &Arc<Notify>) -> Server {
    let go = Arc::clone(go);
    Server::new("a").running(move |_, back| {
        let go = Arc::clone(&go);
        async move {
            let asked = ask(&back, Asking::Elicit);
            drop(select(asked, Box::pin(go.notified())).await);
            Ok(json(r#"{"content":[]}"#))
        }
        .boxed()
    })
}

#[tokio::test]
async fn a_question_of_a_call_that_is_over_is_taken_back() {
    let go = Arc::new(Notify::new());
    let harness = Harness::new(vec![impatient(&go)]);
    let client = harness.legacy(View::All, FORMS).await;
    let said = follow(harness.start(&client, "tools/call", r#"{"name":"a__t"}"#), |message| {
        if message.contains("elicitation/create") {
            go.notify_one();
        }
    })
    .await;
    let [question, taken_back] = said.messages.as_slice() else { panic!("{said:?}") };
    assert!(taken_back.contains("notifications/cancelled"), "{taken_back}");
    assert_eq!(member(taken_back, "params.requestId"), member(question, "id"));
    assert_eq!(member(&said.answer, "result.content"), "[]");
}

#[tokio::test]
async fn a_question_of_a_call_that_its_client_gives_up_is_taken_back() {
    let harness = Harness::new(vec![impatient(&Arc::default())]);
    let client = harness.legacy(View::All, FORMS).await;
    let said = follow(harness.start(&client, "tools/call", r#"{"name":"a__t"}"#), |message| {
        if message.contains("elicitation/create") {
            client.cancel(&capstan_wire::RequestId::Number(1));
        }
    })
    .await;
    assert!(said.messages.last().unwrap().contains("notifications/cancelled"), "{said:?}");
    assert_eq!(said.answer, "");
}

#[tokio::test]
async fn a_question_that_was_answered_is_not_taken_back() {
    let server = Server::new("a").running(|_, back| ask(&back, Asking::Elicit));
    let harness = Harness::new(vec![server]);
    let client = harness.legacy(View::All, FORMS).await;
    let said = follow(harness.start(&client, "tools/call", r#"{"name":"a__t"}"#), |_| {
        let reply = capstan_wire::Reply::Result(json(r#"{"action":"accept"}"#));
        client.take_reply(&capstan_wire::RequestId::Number(1), reply);
    })
    .await;
    assert_eq!(said.messages.len(), 1, "{said:?}");
}

#[tokio::test]
async fn a_question_that_cannot_be_told_is_declined_in_its_own_words() {
    for (asking, told) in [
        (Asking::Elicit, r#"{"action":"decline"}"#),
        (Asking::Sample, r#"{"code":-1}"#),
        (Asking::Roots, r#"{"code":-1}"#),
    ] {
        let server = Server::new("a").running(move |_, back| ask(&back, asking));
        let harness = Harness::new(vec![server]);
        let client = harness.legacy(View::All, FORMS).await;
        let said = follow(harness.start(&client, "tools/call", r#"{"name":"a__t"}"#), |message| {
            client.unheard(&message.to_owned().into());
        })
        .await;
        assert_eq!(member(&said.answer, "result"), told);
        assert_eq!(said.messages.len(), 1, "{said:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_none() {
    for odd in [r#""foo""#, "5", "null", "[]"] {
        let server = || Server::new("a").running(|_, back| ask(&back, Asking::Elicit));
        let harness = Harness::new(vec![server()]);
        let client = harness.legacy(View::All, FORMS).await;
        let said = follow(harness.start(&client, "tools/call", r#"{"name":"a__t"}"#), |_| {
            let reply = capstan_wire::Reply::Result(json(odd));
            client.take_reply(&capstan_wire::RequestId::Number(1), reply);
        })
        .await;
        assert_eq!(member(&said.answer, "result"), r#"{"code":-32603}"#, "{odd}");

        let said = harness.ask_modern(View::All, FORMS, "tools/call", r#"{"name":"a__t"}"#).await;
        let state = member(&said.answer, "result.requestState");
        let again = format!(
            r#"{{"name":"a__t","requestState":{state},"inputResponses":{{"capstan-1":{odd}}}}}"#
        );
        let said = harness.ask_modern(View::All, FORMS, "tools/call", &again).await;
        assert_eq!(member(&said.answer, "result.code"), "-32603", "{odd}");
    }
}

#[tokio::test]
async fn a_call_that_goes_on_is_told_of_by_what_its_client_said_last() {
    let runs = |_: Json, back: BackChannel| {
        async move {
            ask(&back, Asking::Elicit).await.unwrap();
            let server = || "a".parse().unwrap();
            let params = json(r#"{"progressToken":1,"progress":1}"#);
            let (total, message) = (None, None);
            back.notice(Notice::Progress { server: server(), done: 1.0, total, message, params });
            for level in ["info", "error"] {
                let params = json(&format!(r#"{{"level":"{level}","data":"x"}}"#));
                let (level, text) = (level.to_owned(), "x".to_owned());
                back.notice(Notice::Log { server: server(), level, text, params });
            }
            Ok(json(r#"{"content":[]}"#))
        }
        .boxed()
    };
    let harness = Harness::new(vec![Server::new("a").running(runs)]);
    let first = r#"{"name":"a__t","_meta":{"progressToken":"one","io.modelcontextprotocol/logLevel":"debug"}}"#;
    let said = harness.ask_modern(View::All, FORMS, "tools/call", first).await;
    let state = member(&said.answer, "result.requestState");
    let again = format!(
        r#"{{"name":"a__t","requestState":{state},"inputResponses":{{"capstan-1":{{"action":"accept"}}}},"_meta":{{"progressToken":"two","io.modelcontextprotocol/logLevel":"error"}}}}"#
    );
    let said = harness.ask_modern(View::All, FORMS, "tools/call", &again).await;
    let [progress, log] = said.messages.as_slice() else { panic!("{said:?}") };
    assert_eq!(member(progress, "params.progressToken"), r#""two""#);
    assert_eq!(member(log, "params.level"), r#""error""#);
}

/// A modern server that asks before it does anything.
fn asks(name: &str) -> Server {
    let asks = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Sure?","x":1.0}},"r":{"method":"roots/list"}},"requestState":"s"}"#;
    Server::modern(name).running(move |_, _| ready(Ok(json(asks))).boxed())
}

#[tokio::test]
async fn a_question_that_is_passed_on_says_whose_it_is_where_there_are_several() {
    for (servers, view, message) in [
        (vec![asks("a"), asks("b")], View::All, r#""[a] Sure?""#),
        (vec![asks("a")], View::All, r#""Sure?""#),
        (vec![asks("a"), asks("b")], View::One("a".parse().unwrap()), r#""Sure?""#),
    ] {
        let harness = Harness::new(servers);
        let tool = if view == View::All { "a__t" } else { "t" };
        let call = format!(r#"{{"name":"{tool}"}}"#);
        let said = harness.ask_modern(view, FORMS, "tools/call", &call).await;
        assert_eq!(
            member(&said.answer, "result.inputRequests"),
            format!(
                r#"{{"q":{{"method":"elicitation/create","params":{{"message":{message},"x":1.0}}}},"r":{{"method":"roots/list"}}}}"#
            )
        );
    }
}

/// A server that wants a page to be visited first.
fn wants_visit() -> Server {
    let whole = r#"{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","url":"https://example.com","message":"Visit","elicitationId":"7"}]}}"#;
    Server::new("a").running(move |_, _| {
        let (server, whole) = ("a".parse().unwrap(), Some(whole.to_owned()));
        let message = "visit".to_owned();
        let is_modern = false;
        ready(Err(CallError::Server { server, code: -32042, message, whole, is_modern })).boxed()
    })
}

#[tokio::test]
async fn a_page_is_asked_for_only_where_it_may_be_and_can_be() {
    const PAGES: &str = r#"{"elicitation":{"url":{}}}"#;
    let call = async |harness: &Harness, able: &str| {
        let said = harness.ask_modern(View::All, able, "tools/call", r#"{"name":"a__t"}"#).await;
        member(&said.answer, "error.code")
    };
    let harness = Harness::new(vec![wants_visit()]);
    assert_eq!(call(&harness, PAGES).await, "");
    assert_eq!(call(&harness, FORMS).await, "-32042");
    let harness = Harness::with(vec![wants_visit()], |hub| {
        let mut policy = allowing(hub.servers());
        let rule = Rule::new(Pattern::parse("Elicit(a)").unwrap(), "permissions.deny");
        policy.permissions.global.deny = vec![rule];
        hub.policy = Arc::new(policy.compile());
    });
    assert_eq!(call(&harness, PAGES).await, "-32042");
}
