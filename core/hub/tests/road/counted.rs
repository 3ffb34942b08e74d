//! Rates and quotas, and calls that cannot be written down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use capstan_hub::ports::{AuditLog, Settling, Unwritten};
use capstan_hub::{Answer, Call, Entry, Limits, Part, Rates};
use capstan_model::{CallError, Caller, ErrorCode, Front, Target};
use capstan_policy::{Pattern, Rate, RateBy};
use futures::FutureExt;
use futures::future::ready;

use crate::parts::{ASKS, continuation};
use crate::world::{Person, Server, json};
use crate::{Scene, files, tool, unreachable};

fn rate(limit: u32, by: RateBy, tools: &[&str]) -> Rate {
    let tools = tools.iter().map(|text| Pattern::parse(text).unwrap()).collect();
    Rate { limit, every: Duration::from_mins(1), by, tools, reason: None }
}

fn scene(server: Server, rates: Vec<Rate>) -> Scene {
    let mut scene = Scene::with_server(server);
    scene.world.change(|hub| hub.rates = Arc::new(Rates::new(rates)));
    scene
}

fn by(caller: &str, name: &str) -> Call {
    let caller = Caller::named(caller, Front::Gateway);
    Call::new(caller, Target::tool(name), Some(&json("{}")))
}

fn code(result: &Result<capstan_wire::Json, CallError>) -> Option<ErrorCode> {
    result.as_ref().err().map(CallError::code)
}

#[tokio::test(start_paused = true)]
async fn a_rate_counts_by_what_it_says_and_frees_itself() {
    let blocked = Some(ErrorCode::QuotaBlocked);
    for (counts_by, of_bob, of_another_item) in [
        (RateBy::Caller, None, blocked),
        (RateBy::Server, blocked, blocked),
        (RateBy::Tool, blocked, None),
        (RateBy::All, blocked, blocked),
    ] {
        let scene = scene(files(), vec![rate(1, counts_by, &[])]);
        let call = async |caller, name| code(&scene.send(by(caller, name)).await);
        assert_eq!(call("ann", "files__read").await, None);
        assert_eq!(call("ann", "files__read").await, blocked, "{counts_by:?}");
        assert_eq!(call("bob", "files__read").await, of_bob, "{counts_by:?}");
        let another = scene.send(Call::new(
            Caller::named("ann", Front::Gateway),
            Target::resource("files:read_too"),
            None,
        ));
        assert_eq!(code(&another.await), of_another_item, "{counts_by:?}");
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(call("ann", "files__read").await, None, "{counts_by:?}");
    }
}

#[tokio::test]
async fn a_rate_of_some_tools_says_nothing_of_others_nor_of_resources() {
    let scene = scene(files(), vec![rate(1, RateBy::All, &["files__wr*", "re?d"])]);
    assert_eq!(code(&scene.call("files__read").await), None);
    let refused = scene.call("mcp__files__read").await.unwrap_err();
    assert_eq!(refused.to_string(), "the rate of 1 call in 60s in all is used up");
    assert!(refused.hint().unwrap().starts_with("try again in 60s"), "{:?}", refused.hint());
    assert!(refused.retryable());
    let resource = Target::resource("files:read");
    let resource = Call::new(Caller::operator(Front::Cli), resource, None);
    let asked = scene.send(resource).await;
    assert_ne!(code(&asked), Some(ErrorCode::QuotaBlocked));
}

#[tokio::test]
async fn trying_again_and_later_parts_are_free_and_refusals_cost_nothing() {
    let first_fails = Server {
        runs: Box::new(|count, _| {
            let fails = count == 1;
            let answer = Answer::Whole(json(ASKS));
            ready(if fails { Err(unreachable()) } else { Ok(answer) }).boxed()
        }),
        ..files()
    };
    let mut scene = scene(first_fails, vec![rate(2, RateBy::Caller, &[])]);
    scene.set_limits(Limits { quota: Some(2), ..Limits::default() });
    // Denied: neither rate nor quota hears of it.
    assert_eq!(code(&scene.call("files__drop").await), Some(ErrorCode::PolicyBlocked));
    let mut made = continuation(&scene, tool("files__read")).await.unwrap();
    assert_eq!(scene.served().len(), 2, "tried twice, counted once");
    let later = |made| Call { part: Part::Later(made), ..tool("files__read") };
    for _ in 0..5 {
        made = continuation(&scene, later(made)).await.unwrap();
    }
    assert_eq!(code(&scene.call("files__read").await), None);
    assert_eq!(code(&scene.call("files__read").await), Some(ErrorCode::QuotaBlocked));
    // The later parts stay free when both are spent.
    assert_eq!(code(&scene.send(later(made)).await), None);
}

/// Makes calls in 64 threads at once; how many were answered.
fn crowd(scene: &Scene, calls: usize) -> usize {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answered = async |_: usize| scene.call("files__read").await.is_ok();
        (0..calls / 64).filter(|call| runtime.block_on(answered(*call))).count()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn c49_of_ten_thousand_attempts_at_once_exactly_a_hundred_reach_the_server() {
    let mut by_quota = scene(files(), Vec::new());
    by_quota.set_limits(Limits { quota: Some(100), ..Limits::default() });
    assert_eq!((crowd(&by_quota, 10_048), by_quota.served().len()), (100, 100));
    assert_eq!(by_quota.world.entries().len(), 10_048);
    let mut by_rate = scene(
        files(),
        vec![Rate { every: Duration::from_hours(1), ..rate(100, RateBy::Caller, &[]) }],
    );
    by_rate.set_limits(Limits { quota: Some(10_000), ..Limits::default() });
    assert_eq!((crowd(&by_rate, 10_048), by_rate.served().len()), (100, 100));
}

/// A log that takes entries, or does not.
#[derive(Default)]
struct Fickle {
    ready: AtomicBool,
    keeps: AtomicBool,
    entries: Mutex<Vec<Entry>>,
}

impl AuditLog for Fickle {
    fn record(&self, entry: Entry) {
        self.entries.lock().unwrap().push(entry);
    }

    fn settle(&self, entry: Entry) -> Settling {
        self.record(entry);
        let kept = self.keeps.load(Ordering::Relaxed);
        let kept = if kept { Ok(()) } else { Err(Unwritten("no space left".to_owned())) };
        Settling::Waits(ready(kept).boxed())
    }

    fn ready(&self) -> Result<(), Unwritten> {
        let ready = self.ready.load(Ordering::Relaxed);
        if ready { Ok(()) } else { Err(Unwritten("no space left".to_owned())) }
    }
}

#[tokio::test]
async fn a_call_that_could_not_be_written_down_is_not_made_and_costs_no_quota() {
    let mut scene = Scene::with_person(Person::nobody());
    scene.set_limits(Limits { quota: Some(1), ..Limits::default() });
    let log = Arc::new(Fickle::default());
    log.keeps.store(true, Ordering::Relaxed);
    scene.world.change(|hub| hub.audit = Arc::clone(&log) as Arc<dyn AuditLog>);
    let refused = scene.call("files__read").await.unwrap_err();
    assert_eq!((refused.code(), refused.retryable()), (ErrorCode::Transient, true));
    assert!(
        refused.to_string().contains("the audit log cannot be written: no space left"),
        "{refused}"
    );
    assert_eq!(scene.served().len(), 0);
    assert_eq!(log.entries.lock().unwrap().len(), 1, "what is refused is recorded too");
    log.ready.store(true, Ordering::Relaxed);
    assert!(scene.call("files__read").await.is_ok());
}

#[tokio::test]
async fn an_answer_whose_entry_is_not_kept_is_withheld_and_a_failure_is_told_all_the_same() {
    let mut scene = Scene::with_person(Person::nobody());
    let log = Arc::new(Fickle::default());
    log.ready.store(true, Ordering::Relaxed);
    scene.world.change(|hub| hub.audit = Arc::clone(&log) as Arc<dyn AuditLog>);
    let withheld = scene.call("files__read").await.unwrap_err();
    assert_eq!((withheld.code(), withheld.retryable()), (ErrorCode::OutcomeUnknown, false));
    assert_eq!(code(&scene.call("files__drop").await), Some(ErrorCode::PolicyBlocked));
    log.keeps.store(true, Ordering::Relaxed);
    assert!(scene.call("files__read").await.is_ok());
    assert_eq!(log.entries.lock().unwrap().len(), 3);
}
