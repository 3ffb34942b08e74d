//! Calls in several parts: the server asks for input, and the client calls again with it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use capstan_hub::ports::{
    Approval, Approved, BoxFuture, Changes, Newcomer, Pin, PinOwner, PinStore, StoreError,
};
use capstan_hub::{
    Answer, Call, Continuation, Ground, HubBuilder, Limits, Part, PinRules, Pins, Requester,
};
use capstan_model::{CallError, Caller, ErrorCode};
use futures::FutureExt;
use futures::future::ready;

use super::{Scene, files, says, server, tool};
use crate::world::{Server, json};

pub(super) const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{}}"#;

/// A server that asks for input again and again.
fn asking() -> Server {
    let runs = |_, _| ready(Ok(Answer::Whole(json(ASKS)))).boxed();
    Server { runs: Box::new(runs), ..files() }
}

/// Makes a call, and returns the proof that it was made.
pub(super) async fn continuation(scene: &Scene, call: Call) -> Result<Continuation, CallError> {
    let (hub, session) = (&scene.world.hub, &scene.world.session);
    let screened = hub.call(session, call, scene.person.requester()).await?;
    Ok(screened.continuation().unwrap())
}

fn later(made: &Continuation, call: Call) -> Call {
    Call { part: Part::Later(made.clone()), ..call }
}

#[tokio::test]
async fn a_later_part_is_neither_asked_about_nor_counted() {
    let mut scene = Scene::of(asking(), says(Approval::once(Ground::Asked)));
    scene.set_limits(Limits { quota: Some(1), ..Limits::default() });
    let mut made = continuation(&scene, tool("files__write")).await.unwrap();
    for _ in 0..3 {
        made = continuation(&scene, later(&made, tool("files__write"))).await.unwrap();
    }
    assert_eq!((scene.served().len(), scene.person.seen.lock().unwrap().len()), (4, 1));
    let refused = scene.call("files__write").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::QuotaBlocked);
}

#[tokio::test]
async fn the_proof_of_a_call_holds_for_one_request_of_its_caller_for_its_item() {
    let mut scene = Scene::of(asking(), says(Approval::once(Ground::Asked)));
    scene.set_limits(Limits { quota: Some(2), ..Limits::default() });
    let made = continuation(&scene, tool("files__write")).await.unwrap();
    let other_caller =
        Arc::new(Caller { subject: "mallory".to_owned(), ..Caller::clone(&tool("x").caller) });
    let read = continuation(&scene, tool("files__read")).await.unwrap();
    for (claimed, why) in [
        (later(&read, tool("files__write")), "another item"),
        (Call { caller: other_caller, ..later(&made, tool("files__write")) }, "another caller"),
    ] {
        let asked = scene.person.seen.lock().unwrap().len();
        let refused = scene.send(claimed).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::QuotaBlocked, "{why}");
        assert_eq!(scene.person.seen.lock().unwrap().len(), asked + 1, "{why}");
    }
    scene.send(later(&made, tool("files__write"))).await.unwrap();
    let again = scene.send(later(&made, tool("files__write"))).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::QuotaBlocked);
}

#[tokio::test]
async fn an_answer_that_asks_for_nothing_proves_nothing() {
    let scene = Scene::with_server(files());
    let (hub, session) = (&scene.world.hub, &scene.world.session);
    let screened = hub.call(session, tool("files__read"), scene.person.requester()).await.unwrap();
    assert!(screened.continuation().is_none());
}

#[tokio::test]
async fn a_call_whose_client_must_visit_a_page_first_is_continued() {
    let error = || super::refused_by_server(-32042);
    let runs = move |_, _| ready(Err(error())).boxed();
    let server = Server { runs: Box::new(runs), ..files() };
    let mut scene = Scene::of(server, says(Approval::once(Ground::Asked)));
    scene.set_limits(Limits { quota: Some(1), ..Limits::default() });
    let slot = OnceLock::new();
    let requester = Requester { continued: Some(&slot), ..scene.person.requester() };
    let (hub, session) = (&scene.world.hub, &scene.world.session);
    hub.call(session, tool("files__write"), requester).await.unwrap_err();
    scene.send(later(slot.get().unwrap(), tool("files__write"))).await.unwrap_err();
    assert_eq!((scene.served().len(), scene.person.seen.lock().unwrap().len()), (2, 1));
}

/// Pins under which every tool is new: the server was seen, and had none.
struct SeenEmpty;

impl PinStore for SeenEmpty {
    fn get_ready(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    fn approved_digests(
        &self,
    ) -> BoxFuture<'_, Result<HashMap<PinOwner, Option<String>>, StoreError>> {
        let owner = PinOwner { server: server(), identity: String::new() };
        ready(Ok(HashMap::from([(owner, None)]))).boxed()
    }

    fn pins<'a>(&'a self, _: &'a PinOwner) -> BoxFuture<'a, Result<Option<Approved>, StoreError>> {
        ready(Ok(Some(Approved::default()))).boxed()
    }

    fn begin<'a>(&'a self, _: &'a [Newcomer]) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn note<'a>(
        &'a self,
        _: &'a PinOwner,
        _: &'a str,
        _: i64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn approve<'a>(
        &'a self,
        _: &'a PinOwner,
        _: &'a [Pin],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        ready(Ok(())).boxed()
    }

    fn end_loss<'a>(&'a self, _: &'a [PinOwner]) -> BoxFuture<'a, Result<bool, StoreError>> {
        ready(Ok(false)).boxed()
    }
}

#[tokio::test]
async fn the_approval_of_a_call_is_none_of_a_definition_that_has_changed_since() {
    let mut scene = Scene::of(asking(), says(Approval::once(Ground::Asked)));
    let made = continuation(&scene, tool("files__write")).await.unwrap();
    let pins = |hub: &mut HubBuilder| {
        let rules = HashMap::from([(server(), PinRules::default())]);
        let (clock, changes) = (Arc::clone(&hub.clock), Arc::new(Changes::default()));
        hub.pins = Arc::new(Pins::new(Arc::new(SeenEmpty), clock, changes, rules));
    };
    scene.world.change(pins);
    scene.send(later(&made, tool("files__write"))).await.unwrap();
    let seen = scene.person.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen.last().unwrap().contains("a new tool"), "{seen:?}");
}
