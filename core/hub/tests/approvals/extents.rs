//! How far a yes reaches: once, these arguments, this tool, a server's reads, a server.

use std::sync::atomic::Ordering;

use capstan_hub::Ground;
use capstan_hub::approvals::{Answer, AnswerError, Answered, Extent, NoRule, Span, Width};
use capstan_hub::ports::Approval;
use capstan_model::{CallError, Effect};

use crate::scene::{ONCE, Scene, call, says};
use crate::world::Person;

/// The calls that are tried after a yes to `files__read {"p":1}`.
const NEXT: [(&str, &str); 6] = [
    ("files__read", r#"{"p":1}"#),
    ("files__read", r#"{"p":2}"#),
    ("files__list", "{}"),
    ("files__write", "{}"),
    ("notes__read", r#"{"p":1}"#),
    ("files__pay", "{}"),
];

/// Which of these pass. The last has a rule of its own, which nothing remembered lifts.
fn passing(extent: Extent) -> [bool; 6] {
    match extent {
        Extent::Once => [false; 6],
        Extent::Wider(Width::Arguments, _) => [true, false, false, false, false, false],
        Extent::Wider(Width::Item, _) => [true, true, false, false, false, false],
        Extent::Wider(Width::ServerReads, _) => [true, true, true, false, false, false],
        Extent::Wider(Width::Server, _) => [true, true, true, true, false, false],
    }
}

fn extents() -> Vec<Extent> {
    let wider = |span| Width::ALL.map(|width| Extent::Wider(width, span));
    [[Extent::Once; 4], wider(Span::Session), wider(Span::Saved)].concat()
}

async fn check(scene: &Scene, extent: Extent) {
    for ((name, arguments), passes) in NEXT.into_iter().zip(passing(extent)) {
        let ran = scene.call(name, arguments).await;
        assert_eq!(ran.is_ok(), passes, "{extent:?}: {name} {arguments}: {ran:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_at_the_front_reaches_as_far_as_it_says() {
    for extent in extents() {
        let scene = Scene::new();
        let person = says(Approval::Yes(Ground::Asked, extent));
        let asked = call("files__read", r#"{"p":1}"#);
        scene.call_in(&scene.world.session, asked, person).await.unwrap();
        check(&scene, extent).await;
        let told = passing(extent).map(|passes| if passes { "remembered" } else { "nobody" });
        assert_eq!(scene.grounds()[1..], told, "{extent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_from_another_shell_reaches_as_far_as_it_says() {
    for extent in extents() {
        let scene = Scene::new();
        let answer = Answer::Yes(extent);
        scene.call_answered("files__read", r#"{"p":1}"#, answer).await.unwrap();
        check(&scene, extent).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wider_yes_that_comes_late_counts_too() {
    for extent in extents().into_iter().skip(4) {
        let scene = Scene::new();
        let id = scene.refused("files__read", r#"{"p":1}"#).await;
        assert_eq!(scene.answer(&id, Answer::Yes(extent)).await, Answered::RunsWhenRepeated);
        check(&scene, extent).await;
        assert!(scene.store.grants.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_for_a_session_holds_in_no_other_and_what_is_saved_does() {
    for (span, elsewhere) in [(Span::Session, false), (Span::Saved, true)] {
        let scene = Scene::new();
        let person = says(Approval::Yes(Ground::Asked, Extent::Wider(Width::Item, span)));
        let asked = || call("files__write", "{}");
        scene.call_in(&scene.world.session, asked(), person).await.unwrap();
        let other = scene.world.hub.session();
        let ran = scene.call_in(&other, asked(), Person::nobody()).await;
        assert_eq!(ran.is_ok(), elsewhere, "{span:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_saved_yes_becomes_one_rule() {
    let scene = Scene::new();
    for (width, pattern, effect) in [
        (Width::Arguments, "files__read:p=1,!", None),
        (Width::Item, "files__read", None),
        (Width::ServerReads, "files__*", Some(Effect::Read)),
        (Width::Server, "files__*", None),
    ] {
        let mut fresh = Scene::new();
        fresh.book = std::sync::Arc::clone(&scene.book);
        fresh.restart("1", crate::scene::WAIT);
        let answer = Answer::Yes(Extent::Wider(width, Span::Saved));
        fresh.call_answered("files__read", r#"{"p":1}"#, answer).await.unwrap();
        let rule = scene.book.rules.lock().unwrap().pop().unwrap();
        assert_eq!((rule.pattern.as_str(), rule.effect), (pattern, effect));
        assert_eq!(rule.server.as_str(), "files");
        assert!(scene.book.rules.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_asks_goes_on_asking_whatever_is_answered() {
    for extent in extents() {
        let scene = Scene::new();
        // At the front: the yes counts, for this one call.
        let person = says(Approval::Yes(Ground::Asked, extent));
        let ran = scene.call_in(&scene.world.session, call("files__pay", "{}"), person).await;
        ran.unwrap();
        scene.refused("files__pay", "{}").await;
        // Elsewhere: what reaches further is refused, and the question stays.
        let id = scene.refused("files__pay", "{}").await;
        let answered = scene.world.hub.approvals().answer(&id, Answer::Yes(extent)).await;
        match extent {
            Extent::Once => assert!(answered.is_ok()),
            Extent::Wider(..) => {
                let Err(AnswerError::AsksEveryTime { rule }) = answered else {
                    crate::scene::unexpected(&answered)
                };
                assert_eq!(rule, "permissions.ask: files__pay");
                scene.answer(&id, ONCE).await;
            }
        }
        scene.call("files__pay", "{}").await.unwrap();
        scene.refused("files__pay", "{}").await;
        assert!(scene.book.rules.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_a_rule_is_not_taken_and_the_question_stays() {
    let scene = Scene::new();
    let reads = Extent::Wider(Width::ServerReads, Span::Session);
    let saved = |width| Extent::Wider(width, Span::Saved);
    for (extent, arguments) in [
        (reads, "{}"),
        (saved(Width::ServerReads), "{}"),
        (saved(Width::Arguments), r#"{"password":"x"}"#),
        (saved(Width::Arguments), r#"{"list":[1]}"#),
    ] {
        let id = scene.refused("files__write", arguments).await;
        let answered = scene.world.hub.approvals().answer(&id, Answer::Yes(extent)).await;
        let refused =
            matches!(answered, Err(AnswerError::NoRule(NoRule::NotARead | NoRule::Arguments(_))));
        assert!(refused, "{extent:?} {arguments}: {answered:?}");
        assert_eq!(scene.refused("files__write", arguments).await, id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_cannot_be_written_is_said_to_be_so() {
    let scene = Scene::new();
    scene.book.closed.store(true, Ordering::Relaxed);
    let saved = Extent::Wider(Width::Item, Span::Saved);
    let id = scene.refused("files__write", "{}").await;
    let answered = scene.world.hub.approvals().answer(&id, Answer::Yes(saved)).await;
    assert_eq!(
        answered.unwrap_err().to_string(),
        "the rule could not be written: the file is read-only"
    );
    scene.refused("files__write", "{}").await;
    // At the front the call runs, and the answer holds for as long as the conversation.
    let person = says(Approval::Yes(Ground::Asked, saved));
    let ran = scene.call_in(&scene.world.session, call("files__write", "{}"), person).await;
    ran.unwrap();
    scene.call("files__write", "{}").await.unwrap();
    let other = scene.world.hub.session();
    let ran = scene.call_in(&other, call("files__write", "{}"), Person::nobody()).await;
    assert!(matches!(ran, Err(CallError::NotApproved { .. })), "{ran:?}");
}
