//! What a server may ask the operator, and what becomes of its questions.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use capstan_hub::ports::{Asking, Notice, Reply};
use capstan_hub::{Answer, BackChannel, Call, Outcome};
use capstan_model::{Caller, Front, Target, Trust};
use capstan_policy::PolicySource;
use capstan_policy::exposure::Exposure;
use capstan_wire::Json;
use futures::FutureExt;
use futures::future::{join, join_all, pending, ready};
use jiff::Timestamp;
use tokio::time::Instant;

use world::{Person, Server, World, json, policy, rules};

/// How long a question stays open.
const WAIT: Duration = Duration::from_mins(2);

/// Every reply that reached a server, and when, counted from the start of its call.
type Replies = Arc<Mutex<Vec<(Json, Duration)>>>;

/// Asks for a form, as a server does.
async fn ask(back: &BackChannel) -> Json {
    let params = r#"{"message":"which one?","requestedSchema":{"type":"object","properties":{}}}"#;
    back.ask(Asking::Elicit, json(params)).await.unwrap()
}

/// A server whose tool asks so many questions at once and then answers.
fn asking(questions: usize) -> (Server, Replies) {
    let replies = Replies::default();
    let kept = Arc::clone(&replies);
    let runs = move |_, back: BackChannel| {
        let kept = Arc::clone(&kept);
        let run = async move {
            let start = Instant::now();
            let ask = || async {
                let reply = ask(&back).await;
                kept.lock().unwrap().push((reply, start.elapsed()));
            };
            join_all((0..questions).map(|_| ask())).await;
            Ok(Answer::Whole(json("{}")))
        };
        run.boxed()
    };
    (Server { runs: Box::new(runs), ..Server::new("files", &["ask"]) }, replies)
}

fn accepted() -> Json {
    json(r#"{"action":"accept","content":{"b":1.0, "a":2}}"#)
}

fn declined() -> Json {
    Reply::Decline.to_json()
}

fn accepting() -> Person {
    let reply = || Reply::Accept(Some(json(r#"{"b":1.0, "a":2}"#)));
    Person { answers: Box::new(move || ready(reply()).boxed()), ..Person::nobody() }
}

fn silent() -> Person {
    Person { answers: Box::new(|| pending().boxed()), ..Person::nobody() }
}

fn call() -> Call {
    let target = Target::tool("files__ask");
    Call::new(Caller::operator(Front::Gateway), target, Some(&json("{}")))
}

/// Lets the server ask one question under these rules; gives its reply and what was shown.
async fn asked_under(policy: PolicySource) -> (Json, Vec<String>) {
    let (server, replies) = asking(1);
    let world = World::new(vec![server], policy);
    let person = Arc::new(accepting());
    world.call(&person, call()).await.unwrap();
    let entries = world.entries();
    assert!(entries.iter().map(|entry| entry.outcome).eq([Outcome::Answered]), "{entries:?}");
    let (reply, _) = replies.lock().unwrap().pop().unwrap();
    (reply, person.seen.lock().unwrap().clone())
}

#[tokio::test]
async fn a_question_reaches_the_operator_and_the_values_reach_the_server_as_written() {
    let (reply, seen) = asked_under(policy(&[], &[], &["*"])).await;
    assert_eq!(reply, accepted());
    let form = r#"Form({"type":"object","properties":{}})"#;
    assert_eq!(seen, [format!("files asks: which one? {form}")]);
}

#[tokio::test]
async fn a_rule_that_asks_or_allows_shows_the_question() {
    for rules in [
        policy(&[], &["Elicit(files)"], &["*"]),
        policy(&[], &[], &["*", "Elicit(*)"]),
        policy(&["Elicit(other)"], &[], &["*"]),
        policy(&["Elicit(file)", "Elicit()", "nothing"], &[], &["*"]),
    ] {
        let (reply, seen) = asked_under(rules).await;
        assert_eq!((reply, seen.len()), (accepted(), 1));
    }
}

#[tokio::test]
async fn a_rule_that_denies_declines_the_question_unseen() {
    for rules in [
        policy(&["Elicit(files)"], &[], &["*"]),
        policy(&["Elicit(*)"], &[], &["*"]),
        policy(&["Elicit(f?les)"], &["Elicit(files)"], &["*", "Elicit(files)"]),
    ] {
        assert_eq!(asked_under(rules).await, (declined(), Vec::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_has_expired_declines_nothing_any_more() {
    let until = |second| {
        let mut policy = policy(&[], &[], &["*"]);
        policy.permissions.global.deny = rules("permissions.deny", &["Elicit(files)"]);
        for rule in &mut policy.permissions.global.deny {
            rule.expires_at = Some(Timestamp::from_second(second).unwrap());
        }
        policy
    };
    assert_eq!(asked_under(until(0)).await.0, accepted());
    assert_eq!(asked_under(until(1)).await.0, declined());
}

#[tokio::test]
async fn a_sandboxed_server_is_declined_unseen_whatever_a_rule_allows() {
    let mut policy = policy(&[], &[], &["*", "Elicit(files)"]);
    for files in policy.servers.values_mut() {
        files.trust = Trust::Sandboxed;
        files.exposure = Exposure::new(Some(&["ask".to_owned()]), &[]).unwrap();
    }
    assert_eq!(asked_under(policy).await, (declined(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn a_no_of_the_operator_reaches_the_server_as_it_was_meant() {
    for reply in [Reply::Decline, Reply::Cancel, Reply::Accept(None)] {
        let (server, replies) = asking(1);
        let world = World::new(vec![server], policy(&[], &[], &["*"]));
        let said = reply.clone();
        let answers = move || ready(said.clone()).boxed();
        let person = Person { answers: Box::new(answers), ..Person::nobody() };
        world.call(&Arc::new(person), call()).await.unwrap();
        assert_eq!(*replies.lock().unwrap(), [(reply.to_json(), Duration::ZERO)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_is_declined() {
    let (second, just) = (Duration::from_secs(1), Duration::from_secs(119));
    for (thinks, expected) in [
        (just, (Reply::Accept(None), just)),
        (WAIT + second, (Reply::Decline, WAIT)),
        (Duration::MAX, (Reply::Decline, WAIT)),
    ] {
        let (server, replies) = asking(1);
        let world = World::new(vec![server], policy(&[], &[], &["*"]));
        let answers = move || tokio::time::sleep(thinks).map(|()| Reply::Accept(None)).boxed();
        let person = Person { answers: Box::new(answers), ..Person::nobody() };
        world.call(&Arc::new(person), call()).await.unwrap();
        let (reply, after) = expected;
        assert_eq!(*replies.lock().unwrap(), [(reply.to_json(), after)]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_seventeenth_open_question_is_declined_unseen_and_places_are_given_back() {
    let (server, replies) = asking(17);
    let world = World::new(vec![server], policy(&[], &[], &["*"]));
    let person = Arc::new(silent());
    for round in 1..=2 {
        world.call(&person, call()).await.unwrap();
        assert_eq!(person.seen.lock().unwrap().len(), 16 * round);
        let mut replies = replies.lock().unwrap();
        assert_eq!(*replies.first().unwrap(), (declined(), Duration::ZERO));
        assert!(replies.iter().skip(1).eq(vec![&(declined(), WAIT); 16]), "{replies:?}");
        replies.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn the_places_are_those_of_the_whole_hub_and_a_caller_who_goes_away_leaves_his() {
    let (server, replies) = asking(1);
    let mut world = World::new(vec![server], policy(&[], &[], &["*"]));
    world.change(|hub| hub.limits.max_questions = 1);
    let (silent, accepting) = (Arc::new(silent()), Arc::new(accepting()));
    let mut open = Box::pin(world.call(&silent, call()));
    assert!(open.as_mut().now_or_never().is_none());
    world.call(&accepting, call()).await.unwrap();
    assert_eq!(replies.lock().unwrap().pop(), Some((declined(), Duration::ZERO)));
    assert_eq!(accepting.seen.lock().unwrap().len(), 0);

    drop(open);
    world.call(&accepting, call()).await.unwrap();
    let (reply, _) = replies.lock().unwrap().pop().unwrap();
    assert_eq!(reply, accepted());
    assert_eq!(accepting.seen.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_open_delays_no_other_call() {
    let (server, _) = asking(1);
    let quick = Server::new("quick", &["go"]);
    let world = World::new(vec![server, quick], policy(&[], &[], &["*"]));
    let silent = Arc::new(silent());
    let start = Instant::now();
    let go = Call::new(Caller::operator(Front::Cli), Target::tool("quick__go"), None);
    let other = async {
        world.call(&silent, go).await.unwrap();
        start.elapsed()
    };
    let (asked, quick) = join(world.call(&silent, call()), other).await;
    assert!(asked.is_ok());
    assert_eq!((quick, start.elapsed()), (Duration::ZERO, WAIT));
}

#[tokio::test]
async fn what_a_server_tells_about_its_work_reaches_the_operator() {
    let notice = || {
        let (level, text) = ("info".to_owned(), "half done".to_owned());
        Notice::Log { server: "files".parse().unwrap(), level, text, params: json("{}") }
    };
    let runs = move |_, back: BackChannel| {
        back.notice(notice());
        ready(Ok(Answer::Whole(json("{}")))).boxed()
    };
    let server = Server { runs: Box::new(runs), ..Server::new("files", &["ask"]) };
    let world = World::new(vec![server], policy(&[], &[], &["*"]));
    let person = Arc::new(Person::nobody());
    world.call(&person, call()).await.unwrap();
    assert_eq!(*person.seen.lock().unwrap(), [format!("{:?}", notice())]);
}
