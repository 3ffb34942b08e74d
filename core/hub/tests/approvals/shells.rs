//! Questions that are answered in another shell, in time and too late.

use std::time::Duration;

use capstan_hub::Ground;
use capstan_hub::approvals::{
    Answer, AnswerError, Answered, GOOD_FOR, Layout, Masks, ShownArguments,
};
use capstan_hub::ports::Approval;
use capstan_model::CallError;
use futures::FutureExt;
use futures::channel::oneshot;
use tokio::time::{Instant, sleep};

use crate::scene::{ONCE, Scene, WAIT, call, call_of, says};
use crate::world::Person;

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_another_shell_and_runs_once_it_says_yes() {
    let scene = Scene::new();
    let ran = scene.call_answered("files__write", r#"{"path":"x"}"#, ONCE).await;
    ran.unwrap();
    assert_eq!(scene.grounds(), ["other_shell"]);
    assert!(scene.world.hub.approvals().questions().await.1.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_another_shell_says_no_to_does_not_run() {
    let scene = Scene::new();
    let ran = scene.call_answered("files__write", "{}", Answer::No).await;
    let error = ran.unwrap_err();
    let text = "`files__write` was refused by the operator, who was asked because of rule \
                `permissions.default: ask`";
    assert_eq!((error.to_string().as_str(), error.hint()), (text, None));
    assert_eq!(scene.grounds(), ["refused"]);
}

/// A gateway on standard input ends with its client; the operator answers later.
#[tokio::test(start_paused = true)]
async fn a_refused_call_leaves_its_question_in_the_store_until_it_is_answered() {
    for answer in [ONCE, Answer::No] {
        let scene = Scene::new();
        let id = scene.refused("files__write", r#"{"token":"hunter2"}"#).await;
        let kept = scene.store.questions.lock().unwrap().clone();
        let [kept] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!(kept.grant.id, id);
        assert!(kept.shown.contains("files__write") && !kept.shown.contains("hunter2"), "{kept:?}");
        scene.answer(&id, answer).await;
        assert!(scene.store.questions.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_takes_back_an_approval_that_is_not_used_yet() {
    let scene = Scene::new();
    let id = scene.refused("files__write", "{}").await;
    scene.answer(&id, ONCE).await;
    assert_eq!(scene.answer(&id, Answer::No).await, Answered::Refused);
    assert!(scene.store.grants.lock().unwrap().is_empty());
    let again = scene.world.hub.approvals().answer(&id, Answer::No).await;
    assert!(matches!(again, Err(AnswerError::Unknown { .. })), "{again:?}");
}

/// Both answers are there before the call looks again; whichever it looks at first, it is a no.
#[tokio::test(start_paused = true)]
async fn of_two_answers_at_once_a_no_counts() {
    for (at_the_front, elsewhere) in
        [(Approval::once(Ground::Asked), Answer::No), (Approval::No(Ground::Refused), ONCE)]
    {
        let scene = Scene::new();
        let (say, said) = oneshot::channel();
        let said = std::sync::Mutex::new(Some(said));
        let approves = move || {
            let said = said.lock().unwrap().take().unwrap();
            async move { said.await.unwrap() }.boxed()
        };
        let person = Person { approves: Box::new(approves), ..Person::nobody() };
        let calling = scene.call_in(&scene.world.session, call("files__write", "{}"), person);
        let answering = async {
            let question = scene.open(1).await.remove(0);
            say.send(at_the_front).unwrap();
            scene.answer(&question.id, elsewhere).await
        };
        let (ran, _) = futures::join!(calling, answering);
        assert!(matches!(ran, Err(CallError::Refused { .. })), "{ran:?}");
        assert_eq!(scene.grounds(), ["refused"]);
    }
}

/// Issue 15, number 19: a client without a user declines by itself.
#[tokio::test(start_paused = true)]
async fn a_call_that_its_client_declines_does_not_run_until_the_operator_approves_it() {
    let scene = Scene::new();
    let declines = || says(Approval::No(Ground::ClientDeclined));
    let calling =
        || scene.call_in(&scene.world.session, call("files__write", r#"{"path":"x"}"#), declines());
    let error = calling().await.unwrap_err();
    let text = "`files__write` needs an approval by rule `permissions.default: ask`, and the client \
                declined; a client that runs without a user declines by itself";
    assert_eq!(error.to_string(), text);
    let CallError::NotApproved { open: Some(id), .. } = &error else { panic!("{error:?}") };
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("`capstan approvals yes {id}`")), "{hint}");
    assert!(hint.contains("write `allow = [\"files__write\"]` under `[permissions]`"), "{hint}");
    let other =
        scene.call_in(&scene.world.session, call("files__write", r#"{"path":"y"}"#), declines());
    scene.answer(id, ONCE).await;
    other.await.unwrap_err();
    calling().await.unwrap();
    calling().await.unwrap_err();
    let no = "client_declined";
    assert_eq!(scene.grounds(), [no, no, "other_shell", no]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_how_long_nobody_answered() {
    let mut scene = Scene::new();
    let waited = scene.call("files__write", "{}").await.unwrap_err().to_string();
    assert!(waited.ends_with(", and no answer came within 15s"), "{waited}");
    scene.restart("1", Duration::ZERO);
    let at_once = scene.call("files__write", "{}").await.unwrap_err().to_string();
    assert!(at_once.ends_with(", and no approver is available"), "{at_once}");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_the_operator_wants() {
    let mut scene = Scene::new();
    let began = Instant::now();
    scene.refused("files__write", "{}").await;
    assert_eq!(began.elapsed(), WAIT);
    scene.restart("1", Duration::ZERO);
    let began = Instant::now();
    scene.refused("files__write", "{}").await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(scene.grounds(), ["nobody", "nobody"]);
}

#[tokio::test(start_paused = true)]
async fn a_yes_that_comes_late_lets_the_same_call_pass_when_it_is_repeated_and_only_once() {
    let scene = Scene::new();
    let id = scene.refused("files__write", r#"{"a":1,"b":2}"#).await;
    assert_eq!(scene.answer(&id, ONCE).await, Answered::RunsWhenRepeated);
    scene.call("files__write", r#"{ "b":2, "a":1 }"#).await.unwrap();
    scene.refused("files__write", r#"{"a":1,"b":2}"#).await;
    assert_eq!(scene.grounds(), ["nobody", "other_shell", "nobody"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_good_for_its_caller_tool_arguments_policy_and_time_and_nothing_else() {
    for (case, name, arguments, subject, policy, late) in [
        ("the same", "files__write", r#"{"a":1}"#, "operator", "1", Duration::ZERO),
        ("another caller", "files__write", r#"{"a":1}"#, "ann", "1", Duration::ZERO),
        ("another tool", "files__drop", r#"{"a":1}"#, "operator", "1", Duration::ZERO),
        ("another server", "notes__write", r#"{"a":1}"#, "operator", "1", Duration::ZERO),
        ("other arguments", "files__write", r#"{"a":2}"#, "operator", "1", Duration::ZERO),
        ("one more", "files__write", r#"{"a":1,"b":1}"#, "operator", "1", Duration::ZERO),
        ("another policy", "files__write", r#"{"a":1}"#, "operator", "2", Duration::ZERO),
        ("too late", "files__write", r#"{"a":1}"#, "operator", "1", GOOD_FOR),
    ] {
        let mut scene = Scene::new();
        let id = scene.refused("files__write", r#"{"a":1}"#).await;
        scene.answer(&id, ONCE).await;
        scene.restart(policy, Duration::ZERO);
        sleep(late).await;
        let repeated = call_of(subject, name, arguments);
        let ran = scene.call_in(&scene.world.session, repeated, Person::nobody()).await;
        assert_eq!(ran.is_ok(), case == "the same", "{case}: {ran:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_calls_alike_one_approval_lets_one_pass() {
    let scene = Scene::new();
    let id = scene.refused("files__write", "{}").await;
    scene.answer(&id, ONCE).await;
    let calls = [scene.call("files__write", "{}"), scene.call("files__write", "{}")];
    let ran = futures::future::join_all(calls).await;
    assert_eq!(ran.iter().filter(|ran| ran.is_ok()).count(), 1, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn of_two_waiting_calls_alike_each_has_a_question_of_its_own() {
    let scene = Scene::new();
    let answering = async {
        let questions = scene.open(2).await;
        assert_ne!(questions[0].id, questions[1].id);
        scene.answer(&questions[0].id, ONCE).await
    };
    let calls = [scene.call("files__write", "{}"), scene.call("files__write", "{}")];
    let (ran, answered) = futures::join!(futures::future::join_all(calls), answering);
    assert_eq!(answered, Answered::Runs);
    assert_eq!(ran.iter().filter(|ran| ran.is_ok()).count(), 1, "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_takes_its_open_question_up_again() {
    let scene = Scene::new();
    let first = scene.refused("files__write", "{}").await;
    let second = scene.refused("files__write", "{}").await;
    let other = scene.refused("files__write", r#"{"a":1}"#).await;
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert_eq!(scene.open(2).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_once_and_not_after_its_time() {
    let scene = Scene::new();
    let id = scene.refused("files__write", "{}").await;
    scene.answer(&id, ONCE).await;
    let late = scene.refused("files__drop", "{}").await;
    sleep(GOOD_FOR + Duration::from_secs(1)).await;
    for id in [id.as_str(), late.as_str(), "zzzz", ""] {
        let answered = scene.world.hub.approvals().answer(id, ONCE).await;
        assert!(matches!(answered, Err(AnswerError::Unknown { .. })), "{id}: {answered:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_front_answers_first_is_no_longer_asked_elsewhere() {
    for (approval, runs) in
        [(Approval::once(Ground::Asked), true), (Approval::No(Ground::Refused), false)]
    {
        let scene = Scene::new();
        let asked = call("files__write", "{}");
        let ran = scene.call_in(&scene.world.session, asked, says(approval)).await;
        assert_eq!(ran.is_ok(), runs);
        assert!(scene.world.hub.approvals().questions().await.1.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_elsewhere_first_is_no_longer_asked_at_the_front() {
    let scene = Scene::new();
    let (here, gone) = oneshot::channel::<()>();
    let here = std::sync::Mutex::new(Some(here));
    // A person who never answers; whoever watches learns when the question is taken away.
    let thinks = move || {
        let here = here.lock().unwrap().take();
        async move {
            let _here = here;
            std::future::pending().await
        }
        .boxed()
    };
    let person = Person { approves: Box::new(thinks), ..Person::nobody() };
    let calling = scene.call_in(&scene.world.session, call("files__write", "{}"), person);
    let answering = async {
        let question = scene.open(1).await.remove(0);
        scene.answer(&question.id, ONCE).await
    };
    let (ran, answered) = futures::join!(calling, answering);
    ran.unwrap();
    assert_eq!(answered, Answered::Runs);
    assert!(gone.await.is_err(), "the question at the front was dropped");
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_leaves_a_question_that_can_be_answered() {
    let scene = Scene::new();
    {
        let calling = scene.call("files__write", "{}");
        futures::pin_mut!(calling);
        let waits = futures::future::select(calling, scene.open(1).boxed_local()).await;
        assert!(matches!(waits, futures::future::Either::Right(_)));
    }
    let question = scene.open(1).await.remove(0);
    assert_eq!(question.stands.as_str(), "open");
    assert_eq!(scene.answer(&question.id, ONCE).await, Answered::RunsWhenRepeated);
    scene.call("files__write", "{}").await.unwrap();
    assert_eq!(scene.grounds(), ["-", "other_shell"]);
}

#[tokio::test(start_paused = true)]
async fn the_operator_sees_what_is_asked_and_no_secrets() {
    let scene = Scene::new();
    scene.refused("files__write", r#"{"path":"x","api_key":"hunter2"}"#).await;
    let question = scene.open(1).await.remove(0);
    assert_eq!(question.arguments.text, r#"{"path":"x","api_key":"***"}"#);
    assert_eq!((question.caller.as_str(), question.item.as_str()), ("operator", "files__write"));
    assert_eq!(question.rule, "permissions.default: ask");
    let long = format!(r#"{{"path":"{}"}}"#, "é".repeat(5000));
    scene.refused("files__write", &long).await;
    let listed = scene.open(2).await.remove(1);
    assert!(listed.arguments.shortened && listed.arguments.text.len() < 600);
}

/// Holes 9.
#[tokio::test(start_paused = true)]
async fn the_operator_can_see_all_of_the_arguments_and_their_digest() {
    let scene = Scene::new();
    let long = format!(r#"{{"text":"{}","path":"/x","api_key":"hunter2"}}"#, "é".repeat(5000));
    scene.refused("files__write", &long).await;
    let listed = scene.open(1).await.remove(0);
    let full = scene.world.hub.approvals().question(&listed.id).await.unwrap();
    let raw = full.raw.as_ref().unwrap();
    let sha256 = full.arguments.sha256.clone();
    let shown = ShownArguments::of(raw, sha256, Layout::Full, Masks::Secrets);
    assert!(!shown.shortened && shown.bytes == long.len());
    assert!(shown.text.contains(&"é".repeat(5000)), "{}", shown.text);
    assert!(shown.text.contains("\n  \"path\": \"/x\","), "{}", shown.text);
    assert!(!shown.text.contains("hunter2"));
    assert_eq!((full.server.as_str(), full.name.as_str()), ("files", "write"));
    assert_eq!(full.arguments.sha256, listed.arguments.sha256);
    assert!(full.expires <= GOOD_FOR && !full.expires.is_zero());
    // What is approved and not used is known by the same digest.
    scene.answer(&listed.id, ONCE).await;
    let approved = scene.world.hub.approvals().question(&listed.id).await.unwrap();
    assert_eq!(approved.stands.as_str(), "approved");
    assert_eq!(approved.arguments.sha256, full.arguments.sha256);
    assert!(approved.arguments.text.is_empty());
    assert!(scene.world.hub.approvals().question("none").await.is_err());
}
