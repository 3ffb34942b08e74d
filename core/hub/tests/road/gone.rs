//! Callers who go away, at every place where a call waits.

use capstan_hub::BackChannel;
use capstan_hub::ports::{Approval, Asking};
use capstan_hub::{Answer, Ground, Limits};
use futures::FutureExt;
use futures::future::{pending, ready};

use super::{Scene, files, says, tool, unreachable};
use crate::world::{Person, Server, json};

/// Starts a call, lets it come as far as it can, and goes away.
#[track_caller]
fn abandon(scene: &Scene, name: &str) {
    assert!(scene.call(name).now_or_never().is_none(), "the call did not wait anywhere");
}

#[test]
fn a_caller_who_goes_away_while_the_server_lists_leaves_one_abandoned_entry() {
    let lists = |_| pending().boxed();
    let scene = Scene::with_server(Server { lists: Box::new(lists), ..files() });
    abandon(&scene, "files__read");
    assert_eq!(scene.entry(), "tool files read; - - by -, -; abandoned -; 37>0");
}

#[test]
fn a_caller_who_goes_away_before_the_call_is_put_together_leaves_one_abandoned_entry() {
    let scene = Scene::with_server(files());
    drop(scene.world.hub.begin(&tool("files__read")));
    assert_eq!(scene.entry(), "tool files read; - - by -, -; abandoned -; 37>0");
}

#[test]
fn a_caller_who_goes_away_before_the_call_runs_leaves_one_abandoned_entry() {
    let scene = Scene::with_server(files());
    let (hub, session) = (&scene.world.hub, scene.world.hub.session());
    drop(hub.call(&session, tool("files__read"), scene.person.requester()));
    assert_eq!(scene.entry(), "tool - files__read; - - by -, -; abandoned -; 37>0");
    assert_eq!(scene.served(), [""; 0]);
}

#[test]
fn a_call_that_cannot_be_put_together_leaves_one_failed_entry() {
    let scene = Scene::with_server(files());
    let error = scene.world.hub.begin(&tool("files__read")).refuse(unreachable());
    assert_eq!(error.to_string(), unreachable().to_string());
    assert_eq!(scene.entry(), "tool files read; - - by -, -; failed transient; 37>0");
}

#[test]
fn a_call_that_was_begun_and_then_made_leaves_one_entry_like_any_other() {
    let scene = Scene::with_server(files());
    scene.call("files__read").now_or_never().unwrap().unwrap();
    let usual = scene.entry();
    let scene = Scene::with_server(files());
    let (attempt, session) =
        (scene.world.hub.begin(&tool("files__other")), scene.world.hub.session());
    let call = attempt.call(&session, tool("files__read"), scene.person.requester());
    call.now_or_never().unwrap().unwrap();
    assert_eq!(scene.entry(), usual);
}

#[test]
fn a_caller_who_goes_away_while_the_operator_thinks_leaves_one_abandoned_entry() {
    let person = Person { approves: Box::new(|| pending().boxed()), ..Person::nobody() };
    let scene = Scene::with_person(person);
    abandon(&scene, "files__write");
    assert_eq!(scene.served(), [""; 0]);
    let head = "tool files write; write ask by permissions.ask: write, -;";
    assert_eq!(scene.entry(), format!("{head} abandoned -; 38>0"));
}

#[test]
fn a_caller_who_goes_away_while_the_server_works_leaves_one_abandoned_entry() {
    let server = Server { runs: Box::new(|_, _| pending().boxed()), ..files() };
    let scene = Scene::of(server, says(Approval::once(Ground::Asked)));
    abandon(&scene, "files__write");
    assert_eq!(scene.served().len(), 1);
    let head = "tool files write; write ask by permissions.ask: write, asked;";
    assert_eq!(scene.entry(), format!("{head} abandoned -; 38>0"));
}

#[test]
fn a_caller_who_goes_away_during_the_second_try_leaves_one_abandoned_entry() {
    let runs = |count: usize, _| match count {
        1 => ready(Err(unreachable())).boxed(),
        _ => pending().boxed(),
    };
    let scene = Scene::with_server(Server { runs: Box::new(runs), ..files() });
    abandon(&scene, "files__read");
    assert_eq!(scene.served().len(), 2);
    let head = "tool files read; read allow by permissions.allow: read, -;";
    assert_eq!(scene.entry(), format!("{head} abandoned -; 37>0"));
}

#[tokio::test]
async fn a_caller_who_goes_away_while_the_server_asks_back_leaves_one_abandoned_entry() {
    let runs = |_, back: BackChannel| {
        let asks = async move {
            let question = json(r#"{"message":"which?","requestedSchema":{}}"#);
            let _reply = back.ask(Asking::Elicit, question).await;
            Ok(Answer::Whole(json("{}")))
        };
        asks.boxed()
    };
    let person = Person { answers: Box::new(|| pending().boxed()), ..Person::nobody() };
    let scene = Scene::of(Server { runs: Box::new(runs), ..files() }, person);
    abandon(&scene, "files__read");
    assert_eq!(scene.person.seen.lock().unwrap().len(), 1);
    let head = "tool files read; read allow by permissions.allow: read, -;";
    assert_eq!(scene.entry(), format!("{head} abandoned -; 37>0"));
}

#[test]
fn an_abandoned_call_counts_towards_the_quota_only_once_it_was_sent() {
    let server = Server { runs: Box::new(|_, _| pending().boxed()), ..files() };
    let person = Person { approves: Box::new(|| pending().boxed()), ..Person::nobody() };
    let mut scene = Scene::of(server, person);
    scene.set_limits(Limits { quota: Some(1), ..Limits::default() });
    abandon(&scene, "files__write");
    abandon(&scene, "files__read");
    let blocked = scene.send(tool("files__read")).now_or_never().unwrap().unwrap_err();
    assert_eq!(blocked.code().as_str(), "quota_blocked");
    let entries = scene.world.entries();
    let outcomes: Vec<_> = entries.iter().map(|entry| entry.outcome.as_str()).collect();
    assert_eq!(outcomes, ["abandoned", "abandoned", "failed"]);
}
