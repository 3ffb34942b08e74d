//! Another configuration in the same process: what stays of questions and answers.

use std::sync::Arc;

use capstan_hub::approvals::{Answer, Answered, Extent, Span, Width};

use crate::scene::{ONCE, Scene, call};
use crate::world::Person;

#[tokio::test(start_paused = true)]
async fn a_question_stays_open_as_long_as_the_policy_is_the_same() {
    let mut scene = Scene::new();
    let id = scene.refused("files__write", "{}").await;
    scene.change("1");
    assert_eq!(scene.open(1).await[0].id, id, "it is the same desk");
    assert_eq!(scene.answer(&id, ONCE).await, Answered::RunsWhenRepeated);

    // Under other rules nobody can say yes to what was asked before.
    let id = scene.refused("files__write", r#"{"a":1}"#).await;
    scene.change("2");
    let open = scene.world.hub.approvals().questions().await.1;
    assert!(open.iter().all(|question| question.id != id), "{open:?}");
    let again = scene.refused("files__write", r#"{"a":1}"#).await;
    assert_ne!(again, id);
}

#[tokio::test(start_paused = true)]
async fn a_yes_for_longer_holds_on_as_long_as_the_policy_is_the_same() {
    for (span, policy, runs) in [
        (Span::Session, "1", true),
        (Span::Session, "2", false),
        (Span::Saved, "1", true),
        (Span::Saved, "2", false),
    ] {
        let mut scene = Scene::new();
        let wider = Answer::Yes(Extent::Wider(Width::Item, span));
        scene.call_answered("files__write", "{}", wider).await.unwrap();
        scene.change(policy);
        let nobody = Arc::new(Person::nobody());
        let ran = scene.world.call(&nobody, call("files__write", r#"{"a":1}"#)).await;
        assert_eq!(ran.is_ok(), runs, "{span:?} under {policy}: {ran:?}");
    }
}
