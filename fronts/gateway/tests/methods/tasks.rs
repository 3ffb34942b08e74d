//! Tasks: whose they are, and how each era carries them.

use std::sync::{Arc, Mutex};

use capstan_gateway::{Client, View};
use capstan_hub::BackChannel;
use capstan_hub::ports::{Asking, Listener as _, Notice};
use capstan_model::{CallError, ServerName};
use capstan_wire::{Json, compose, object};
use futures::FutureExt as _;
use futures::future::ready;

use crate::harness::{Given, Harness, Server, To, finish, follow, json, member};

/// A client of the extension of 2026-07-28.
pub(crate) const ABLE: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// A server of the extension, which calls its only task `1`, like every other of its kind.
pub(crate) fn modern(name: &str) -> Server {
    let made = r#"{"resultType":"task","taskId":"1","status":"working","ttlMs":60000}"#;
    Server::modern(name)
        .able(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#)
        .running(move |_, _| ready(Ok(json(made))).boxed())
        .answering(state(name))
}

/// A server of 2025-11-25 with tasks, which does the same.
fn legacy(name: &str) -> Server {
    let runs = |params: Json, _| {
        let task = r#"{"task":{"taskId":"1","status":"working","ttl":null}}"#;
        let task = if object::get(&params, "task").is_some() { task } else { r#"{"content":[]}"# };
        ready(Ok(json(task))).boxed()
    };
    Server::new(name)
        .able(r#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#)
        .running(runs)
        .answering(state(name))
}

/// Says how task `1` goes, and by whom.
fn state(name: &str) -> impl Fn(&str, Json, To) -> Given + use<> {
    let name = name.to_owned();
    move |_, params, _| {
        let server = name.parse().unwrap();
        let text = format!(r#"{{"taskId":"1","status":"working","by":"{name}"}}"#);
        ready(match object::get_string(&params, "taskId").as_deref() {
            Some("1") => Ok(json(&text)),
            _ => Err(CallError::Server {
                server,
                code: -32602,
                message: "no such task".to_owned(),
                whole: None,
                is_modern: false,
            }),
        })
        .boxed()
    }
}

fn of(id: &str) -> String {
    compose::object(&[("taskId", &compose::string(id))]).to_string()
}

pub(crate) fn text(message: &str, path: &str) -> String {
    json(&member(message, path)).read().unwrap()
}

/// Starts a task as a client of 2025-11-25.
async fn start(harness: &Harness, client: &Arc<Client>, tool: &str) -> String {
    let params = format!(r#"{{"name":"{tool}","task":{{"ttl":60000}}}}"#);
    let said = harness.ask(client, "tools/call", &params).await;
    text(&said.answer, "result.task.taskId")
}

/// Holes 2.
#[tokio::test]
async fn no_second_id_of_a_task_reaches_a_server() {
    let harness = Harness::new(vec![modern("a")]);
    let said = harness.ask_modern(View::All, ABLE, "tools/call", r#"{"name":"a__t"}"#).await;
    let id = text(&said.answer, "result.taskId");
    harness.take_sent();
    for other in [r#""taskId":"1""#, r#""taskid":"1""#, r#""TaskId":"1""#, r#""taskId\u0000":"1""#]
    {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = format!(r#"{{"taskId":"{id}",{other}}}"#);
            let said = harness.ask_modern(View::All, ABLE, method, &params).await;
            assert_eq!(member(&said.answer, "error.code"), "-32602", "{params}");
            assert_eq!(harness.take_sent(), [""; 0], "{params}");
        }
    }
}

#[tokio::test]
async fn where_all_servers_are_shown_a_task_finds_its_own() {
    let harness = Harness::new(vec![modern("a"), modern("b")]);
    for server in ["a", "b"] {
        let call = format!(r#"{{"name":"{server}__t"}}"#);
        let said = harness.ask_modern(View::All, ABLE, "tools/call", &call).await;
        let id = text(&said.answer, "result.taskId");
        assert_ne!(id, "1");
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            harness.take_sent();
            let said = harness.ask_modern(View::All, ABLE, method, &of(&id)).await;
            assert_eq!(text(&said.answer, "result.by"), server);
            assert_eq!(text(&said.answer, "result.taskId"), id);
            assert_eq!(harness.take_sent(), [format!(r#"{server} {method} {{"taskId":"1"}}"#)]);
        }
    }
}

#[tokio::test]
async fn nobody_reaches_the_task_of_another() {
    let harness = Harness::new(vec![modern("a"), legacy("l")]);
    let said = harness.ask_modern(View::All, ABLE, "tools/call", r#"{"name":"a__t"}"#).await;
    let id = text(&said.answer, "result.taskId");
    let (ann, bob) = (harness.legacy(View::All, "{}").await, harness.legacy(View::All, "{}").await);
    let anns = start(&harness, &ann, "l__t").await;
    harness.take_sent();
    for other in ["1", "task-1", "", id.as_str()] {
        let said = finish(harness.start_as("bob", View::All, ABLE, "tasks/get", &of(other))).await;
        assert_eq!(member(&said.answer, "error.code"), "-32602", "{other}");
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for other in ["1", &anns, &id] {
            let said = harness.ask(&bob, method, &of(other)).await;
            assert_eq!(member(&said.answer, "error.code"), "-32602", "{method} {other}");
        }
    }
    let said = harness.ask(&bob, "tasks/list", "{}").await;
    assert_eq!(member(&said.answer, "result"), r#"{"tasks":[]}"#);
    assert!(harness.take_sent().is_empty());
    let said = harness.ask(&ann, "tasks/list", "{}").await;
    assert_eq!(
        member(&said.answer, "result"),
        format!(r#"{{"tasks":[{{"taskId":"{anns}","status":"working","by":"l"}}]}}"#)
    );
    harness.gateway.leave(&ann);
    let said = harness.ask(&ann, "tasks/get", &of(&anns)).await;
    assert_eq!(member(&said.answer, "error.code"), "-32602");
}

#[tokio::test]
async fn how_a_task_goes_is_told_to_its_owner_alone() {
    let harness = Harness::new(vec![legacy("l"), legacy("m")]);
    let (ann, bob) = (harness.legacy(View::All, "{}").await, harness.legacy(View::All, "{}").await);
    let id = start(&harness, &ann, "l__t").await;
    let (mut anns, mut bobs) = (ann.open_inbox(), bob.open_inbox());
    let (status, params) =
        ("notifications/tasks/status", json(r#"{"taskId":"1","status":"completed"}"#));
    harness.gateway.told(&"m".parse().unwrap(), status, Some(&params));
    harness.gateway.told(&"l".parse().unwrap(), status, Some(&params));
    let told = String::from_utf8(anns.try_recv().unwrap().to_vec()).unwrap();
    assert_eq!(member(&told, "params"), format!(r#"{{"taskId":"{id}","status":"completed"}}"#));
    assert!(anns.try_recv().is_err() && bobs.try_recv().is_err());
}

#[tokio::test]
async fn what_a_task_asks_for_goes_to_whoever_fetches_its_result() {
    let fetch = |method: &str, params: Json, to: To| {
        let method = method.to_owned();
        async move {
            assert_eq!((method.as_str(), params.to_string()), ("tasks/result", of("1")));
            let params = r#"{"message":"Sure?","requestedSchema":{},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#;
            let answer = to.client().unwrap().ask(Asking::Elicit, json(params)).await.unwrap();
            Ok(compose::object(&[("answered", &answer)]))
        }
        .boxed()
    };
    let harness = Harness::new(vec![legacy("l").answering(fetch)]);
    let ann = harness.legacy(View::All, r#"{"elicitation":{}}"#).await;
    let id = start(&harness, &ann, "l__t").await;
    let said = follow(harness.start(&ann, "tasks/result", &of(&id)), |question| {
        assert_eq!(text(question, "method"), "elicitation/create");
        assert!(question.contains(&id), "{question}");
        let reply = capstan_wire::Reply::Result(json(r#"{"action":"accept"}"#));
        ann.take_reply(&capstan_wire::RequestId::Number(1), reply);
    })
    .await;
    assert_eq!(member(&said.answer, "result"), r#"{"answered":{"action":"accept"}}"#);
}

#[tokio::test]
async fn a_question_that_nobody_could_come_back_to_is_declined_and_the_answer_still_comes() {
    let asks = |_: &str, _: Json, to: To| {
        async move {
            let params = json(r#"{"messages":[],"maxTokens":1}"#);
            let asked = to.client().unwrap().ask(Asking::Sample, params).await;
            assert!(asked.is_err());
            Ok(json(r#"{"taskId":"1","status":"working"}"#))
        }
        .boxed()
    };
    let harness = Harness::new(vec![modern("a").answering(asks)]);
    let able = r#"{"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let said = harness.ask_modern(View::All, able, "tools/call", r#"{"name":"a__t"}"#).await;
    let id = text(&said.answer, "result.taskId");
    let said = harness.ask_modern(View::All, able, "tasks/get", &of(&id)).await;
    assert_eq!(text(&said.answer, "result.status"), "working");
}

#[tokio::test]
async fn what_one_era_has_no_words_for_is_neither_offered_nor_sent() {
    let harness = Harness::new(vec![modern("a"), legacy("l")]);
    let (hello, client) = harness.greet("2025-11-25", View::All, ABLE).await;
    assert_eq!(
        member(&hello, "result.capabilities.tasks"),
        r#"{"list":{},"requests":{"tools":{"call":{}}},"cancel":{}}"#
    );
    assert_eq!(member(&hello, "result.capabilities.extensions"), "");
    let said = harness.ask(&client, "tools/call", r#"{"name":"a__t"}"#).await;
    assert!(said.answer.contains("not offered"), "a server that does it anyway: {}", said.answer);

    let (hello, old) = harness.greet("2025-06-18", View::All, "{}").await;
    assert_eq!(member(&hello, "result.capabilities.tasks"), "");
    let said = harness.ask(&old, "tasks/list", "{}").await;
    assert_eq!(member(&said.answer, "error.code"), "-32601");
    harness.take_sent();
    let call = r#"{"name":"l__t","task":{}}"#;
    harness.ask(&old, "tools/call", call).await;
    let said = harness.ask_modern(View::All, ABLE, "tools/call", call).await;
    assert_eq!(member(&said.answer, "result.content"), "[]");
    assert!(harness.take_sent().iter().all(|sent| !sent.contains("task\":")));

    let said = harness.ask_modern(View::All, ABLE, "server/discover", "{}").await;
    assert_eq!(member(&said.answer, "result.capabilities.tasks"), "");
    assert!(said.answer.contains("io.modelcontextprotocol/tasks"));
    let said = harness.ask_modern(View::All, "{}", "tasks/get", &of("1")).await;
    assert_eq!(member(&said.answer, "error.code"), "-32021");
}

#[tokio::test]
async fn what_a_task_asks_for_that_its_client_cannot_be_asked_is_declined_here() {
    let asks = |method: &str, params: Json, _: To| {
        let questions = r#""f":{"method":"elicitation/create","params":{"message":"Sure?"}},"u":{"method":"elicitation/create","params":{"mode":"url","message":"Visit"}},"s":{"method":"sampling/createMessage","params":{}}"#;
        let asked = format!(
            r#"{{"taskId":"1","status":"input_required","inputRequests":{{{questions}}}}}"#
        );
        let answer = if method == "tasks/get" { asked } else { params.to_string() };
        ready(Ok(json(&answer))).boxed()
    };
    let no = r#"{"action":"decline"}"#;
    let form = r#""f":{"method":"elicitation/create","params":{"message":"[a] Sure?"}}"#;
    for (able, shown, declined) in [
        (r#""elicitation":{},"#, form, format!(r#"{{"u":{no}}}"#)),
        ("", "", format!(r#"{{"f":{no},"u":{no}}}"#)),
    ] {
        let harness = Harness::new(vec![modern("a").answering(asks), modern("b")]);
        let able = format!(r#"{{{able}"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}}"#);
        let said = harness.ask_modern(View::All, &able, "tools/call", r#"{"name":"a__t"}"#).await;
        let id = text(&said.answer, "result.taskId");
        harness.take_sent();
        let said = harness.ask_modern(View::All, &able, "tasks/get", &of(&id)).await;
        assert_eq!(member(&said.answer, "result.inputRequests"), format!("{{{shown}}}"));
        let update = format!(r#"a tasks/update {{"taskId":"1","inputResponses":{declined}}}"#);
        assert_eq!(harness.take_sent().last(), Some(&update));
    }
}

#[tokio::test]
async fn what_a_task_says_and_asks_after_its_call_is_answered_goes_to_its_owner_alone() {
    let kept = Arc::<Mutex<Option<BackChannel>>>::default();
    let keeps = Arc::clone(&kept);
    let runs = move |_, back: BackChannel| {
        *keeps.lock().unwrap() = Some(back);
        ready(Ok(json(r#"{"task":{"taskId":"1","status":"working"}}"#))).boxed()
    };
    let harness = Harness::new(vec![legacy("l").running(runs), legacy("m")]);
    let able = r#"{"elicitation":{}}"#;
    let (ann, bob) = (harness.legacy(View::All, able).await, harness.legacy(View::All, able).await);
    let (mut anns, mut bobs) = (ann.open_inbox(), bob.open_inbox());
    let call = r#"{"name":"l__t","task":{},"_meta":{"progressToken":"p"}}"#;
    let id = text(&harness.ask(&ann, "tools/call", call).await.answer, "result.task.taskId");
    let back = kept.lock().unwrap().take().unwrap();
    assert!(back.outlives_answer());

    let server: ServerName = "l".parse().unwrap();
    let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}"#;
    let params = json(&format!(r#"{{"progressToken":7,"progress":1,{related}}}"#));
    let progress = || Notice::Progress {
        server: server.clone(),
        done: 1.0,
        total: None,
        message: None,
        params: params.clone(),
    };
    back.notice(progress());
    let told = String::from_utf8(anns.try_recv().unwrap().to_vec()).unwrap();
    assert_eq!(text(&told, "method"), "notifications/progress");
    assert_eq!(text(&told, "params.progressToken"), "p");
    assert!(told.contains(&id) && !told.contains(r#""taskId":"1""#), "{told}");

    let params = json(r#"{"message":"Sure?","requestedSchema":{}}"#);
    let asked = back.ask(Asking::Elicit, params);
    let answered = async {
        let asked = String::from_utf8(anns.recv().await.unwrap().to_vec()).unwrap();
        assert_eq!(text(&asked, "params.message"), "[l] Sure?");
        let reply = capstan_wire::Reply::Result(json(r#"{"action":"accept"}"#));
        ann.take_reply(&capstan_wire::RequestId::Number(1), reply);
    };
    let (answer, ()) = tokio::join!(asked, answered);
    assert_eq!(answer.unwrap().to_string(), r#"{"action":"accept"}"#);

    // With its client the task is gone.
    harness.gateway.leave(&ann);
    assert!(!back.outlives_answer());
    back.notice(progress());
    assert!(anns.try_recv().is_err() && bobs.try_recv().is_err());
}
