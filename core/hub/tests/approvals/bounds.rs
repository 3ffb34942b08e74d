//! What is bounded, and what goes on when the store does not work.

use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_hub::Call;
use capstan_hub::Ground;
use capstan_hub::approvals::{AnswerError, MAX_OPEN, MAX_OWN};
use capstan_hub::ports::Approval;
use capstan_model::{CallError, Caller, Front, Target};

use crate::scene::{ONCE, Scene, call, says};
use crate::world::{Person, json};

#[tokio::test(start_paused = true)]
async fn so_many_questions_are_kept_and_of_more_the_oldest_is_given_up() {
    let mut scene = Scene::new();
    scene.restart("1", Duration::ZERO);
    let mut ids = Vec::new();
    for number in 0..=MAX_OPEN {
        ids.push(scene.refused("files__write", &format!(r#"{{"n":{number}}}"#)).await);
    }
    let open = scene.open(MAX_OPEN).await;
    assert_eq!(open.len(), MAX_OPEN);
    let gone = scene.world.hub.approvals().answer(&ids[0], ONCE).await;
    assert!(matches!(gone, Err(AnswerError::Unknown { .. })), "{gone:?}");
    scene.answer(&ids[1], ONCE).await;
}

#[tokio::test(start_paused = true)]
async fn where_all_places_are_waited_for_one_more_call_is_refused_at_once() {
    let scene = Scene::new();
    let scene = &scene;
    let calls = (0..=MAX_OPEN).map(|number| async move {
        scene.call("files__write", &format!(r#"{{"n":{number}}}"#)).await
    });
    let ran = futures::future::join_all(calls).await;
    let unlisted =
        |ran: &&Result<_, CallError>| matches!(ran, Err(CallError::NotApproved { open: None, .. }));
    assert_eq!(ran.iter().filter(unlisted).count(), 1);
    assert!(ran.iter().all(Result::is_err));
}

/// Somebody at the gateway, who is one of several.
fn remote(subject: &str, number: usize) -> Call {
    let caller = Caller { front: Front::Terminal, ..Caller::remote(subject, Vec::new()) };
    Call::new(caller, Target::tool("files__write"), Some(&json(&format!(r#"{{"n":{number}}}"#))))
}

#[tokio::test(start_paused = true)]
async fn one_caller_of_several_cannot_fill_the_desk() {
    let scene = Scene::new();
    let ask = async |call| scene.call_in(&scene.world.session, call, Person::nobody()).await;
    let listed = |ran: &Result<_, CallError>| {
        matches!(ran, Err(CallError::NotApproved { open: Some(_), .. }))
    };
    let many = (0..MAX_OPEN).map(|number| ask(remote("mallory", number)));
    let (many, ann) = futures::join!(futures::future::join_all(many), ask(remote("ann", 0)));
    assert_eq!(many.iter().filter(|ran| listed(ran)).count(), MAX_OWN);
    assert!(listed(&ann), "{ann:?}");
    // Nor does anybody lose an open question to somebody else's.
    for number in 0..2 * MAX_OWN {
        ask(remote("mallory", number)).await.unwrap_err();
    }
    let open = scene.world.hub.approvals().questions().await.1;
    assert_eq!(open.len(), MAX_OWN + 1);
    assert!(open.iter().any(|question| question.caller == "ann"));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_work_stops_nobody_who_can_be_asked() {
    let scene = Scene::new();
    scene.store.broken.store(true, Ordering::Relaxed);
    let person = says(Approval::once(Ground::Asked));
    let asked = call("files__write", "{}");
    scene.call_in(&scene.world.session, asked, person).await.unwrap();
    scene.call_answered("files__write", "{}", ONCE).await.unwrap();
    assert_eq!(scene.grounds(), ["asked", "other_shell"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_cannot_be_stored_is_not_called_one() {
    let scene = Scene::new();
    let id = scene.refused("files__write", "{}").await;
    scene.store.broken.store(true, Ordering::Relaxed);
    let answered = scene.world.hub.approvals().answer(&id, ONCE).await;
    assert!(matches!(answered, Err(AnswerError::Store(_))), "{answered:?}");
    scene.store.broken.store(false, Ordering::Relaxed);
    assert_eq!(scene.refused("files__write", "{}").await, id, "nothing was approved");
    scene.answer(&id, ONCE).await;
    scene.call("files__write", "{}").await.unwrap();
}
