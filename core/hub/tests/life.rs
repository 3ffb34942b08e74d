//! Servers that come and go: listed from memory, started when needed, stopped when idle.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

#[path = "life/care.rs"]
mod care;
#[path = "life/lanes.rs"]
mod lanes;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use capstan_hub::catalog::{Ask, Patience};
use capstan_hub::life::{IdleRule, Start};
use capstan_hub::ports::{Lane, Listing, UsageRow};
use capstan_hub::{ApprovalFrom, Call, Freshness, SideOp};
use capstan_model::{CallError, Caller, Front, ItemId, Kind, ServerState, Target};

use care::{Care, SAVED, fixed, items};

const MINUTE: Duration = Duration::from_mins(1);
const ADAPTIVE: IdleRule = IdleRule::Adaptive { min: MINUTE, max: Duration::from_mins(5) };

#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_listed_without_a_start_and_is_the_same_byte_by_byte() {
    let care = Care::default();
    let first = care.take("s", ADAPTIVE);
    assert_eq!(first.state(), ServerState::Idle);
    let listed = first.list(Listing::Tools).await.unwrap();
    care.settle().await;
    assert_eq!(care.server.starts(), 1);

    let next = care.restarted();
    let warm = next.take("s", ADAPTIVE);
    assert_eq!(warm.state(), ServerState::Cached);
    for listing in Listing::ALL {
        let expected: Vec<_> = if listing == Listing::Tools { listed.to_vec() } else { vec![] };
        assert_eq!(warm.list(listing).await.unwrap().to_vec(), expected);
    }
    assert_eq!(
        warm.hub.introduce(&warm.name, Lane::ANY).await.unwrap(),
        warm.hub.about(&warm.name).unwrap()
    );
    assert_eq!(next.server.starts(), 0);
    assert_eq!(warm.state(), ServerState::Cached);

    warm.call().await.unwrap();
    assert_eq!((next.server.starts(), warm.state()), (1, ServerState::Connected));
}

#[tokio::test(start_paused = true)]
async fn a_saved_list_has_an_age_until_the_server_is_connected_and_confirms_it() {
    let care = Care::default();
    let first = care.take("s", ADAPTIVE);
    assert_eq!(first.hub.saved_at(&first.name, Listing::Tools), None, "it was never seen");
    first.list(Listing::Tools).await.unwrap();
    care.settle().await;

    let next = care.restarted();
    let warm = next.take("s", ADAPTIVE);
    assert_eq!(warm.hub.saved_at(&warm.name, Listing::Tools), Some(SAVED));
    warm.hub.save_lists().await;
    assert_eq!(next.server.starts(), 0, "only connected servers are asked");
    warm.current().await.unwrap();
    next.settle().await;
    assert_eq!(warm.hub.saved_at(&warm.name, Listing::Tools), None, "it is connected");
    assert_eq!(next.manifests.1.load(Ordering::Relaxed), 1, "confirmed once, not for each list");
}

#[tokio::test(start_paused = true)]
async fn a_hub_without_background_work_saves_all_lists_when_it_is_asked_to() {
    let care = Care::default();
    let cold = care.take("s", ADAPTIVE);
    cold.list(Listing::Tools).await.unwrap();
    cold.hub.save_lists().await;
    let next = care.restarted();
    let warm = next.take("s", ADAPTIVE);
    for listing in Listing::ALL {
        assert_eq!(warm.hub.saved_at(&warm.name, listing), Some(SAVED), "{listing:?}");
    }
    assert_eq!(next.server.starts(), 0);
}

#[tokio::test(start_paused = true)]
async fn another_key_and_a_text_that_is_not_whole_are_not_remembered() {
    let care = Care::default();
    care.take("s", ADAPTIVE).list(Listing::Tools).await.unwrap();
    care.settle().await;
    let other = care.restarted();
    let missed = other.take_as("s", "other", ADAPTIVE, Start::Lazy);
    assert_eq!((missed.state(), missed.hub.about(&missed.name)), (ServerState::Idle, None));
    missed.list(Listing::Tools).await.unwrap();
    assert_eq!(other.server.starts(), 1);

    care.manifests.0.lock().unwrap().values_mut().for_each(|text| *text.last_mut().unwrap() ^= 1);
    let bent = care.restarted();
    let missed = bent.take("s", ADAPTIVE);
    assert_eq!((missed.state(), missed.hub.about(&missed.name)), (ServerState::Idle, None));
}

#[tokio::test(start_paused = true)]
async fn only_a_real_change_is_told_and_the_road_sees_it_at_once() {
    let care = Care::default();
    care.take("s", ADAPTIVE).list(Listing::Tools).await.unwrap();
    care.settle().await;

    let same = care.restarted();
    let warm = same.take("s", ADAPTIVE);
    let before = warm.list(Listing::Tools).await.unwrap();
    let now = warm.current().await.unwrap();
    same.settle().await;
    assert!(Arc::ptr_eq(&before, &now), "the same list stays the same object");
    assert_eq!(same.told(), []);

    let changed = care.restarted();
    *changed.server.tools.lock().unwrap() = items(&["do", "undo"]);
    let warm = changed.take("s", ADAPTIVE);
    assert_eq!(warm.list(Listing::Tools).await.unwrap().len(), 1);
    assert_eq!(warm.current().await.unwrap().len(), 2);
    changed.settle().await;
    assert_eq!(changed.told(), [Listing::Tools]);
    assert_eq!(warm.list(Listing::Tools).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_is_started_with_us_on_a_list_or_on_first_use() {
    for (start, at_once, on_list) in
        [(Start::Eager, 1, 1), (Start::OnList, 0, 1), (Start::Lazy, 0, 0)]
    {
        let care = Care::default();
        care.take("s", ADAPTIVE).list(Listing::Tools).await.unwrap();
        care.settle().await;
        let next = care.restarted();
        *next.server.tools.lock().unwrap() = items(&[]);
        let warm = next.take_as("s", "key", ADAPTIVE, start);
        next.settle().await;
        assert_eq!(next.server.starts(), at_once, "{start:?}");
        // As it was, unless it was asked already.
        let shown =
            warm.hub.list(&warm.name, Listing::Tools, Freshness::Remembered).await.unwrap().len();
        assert_eq!(shown + at_once, 1, "{start:?}");
        next.settle().await;
        assert_eq!(next.server.starts(), at_once, "{start:?}: that was nobody's list");
        warm.list(Listing::Tools).await.unwrap();
        next.settle().await;
        assert_eq!(next.server.starts(), on_list, "{start:?}");
        let told = if on_list == 1 { vec![Listing::Tools] } else { vec![] };
        assert_eq!(next.told(), told, "{start:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c28_what_was_stopped_stays_listed_and_a_call_starts_it_again_with_its_rate_kept() {
    let care = Care::default();
    let server = care.take("s", ADAPTIVE);
    for _ in 0..21 {
        server.call().await.unwrap();
    }
    let rate = || server.pace().calls_per_hour;
    care.pass(4 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Connected, "21 calls an hour are many");
    care.pass(2 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Idle);
    let kept = rate();
    assert!(kept > 20.0, "{kept}");
    assert_eq!(server.list(Listing::Tools).await.unwrap().len(), 1);
    assert_eq!((care.server.starts(), server.pace().stops_in), (1, None));
    server.call().await.unwrap();
    assert_eq!((care.server.starts(), server.state()), (2, ServerState::Connected));
    assert!(rate() > kept);
    assert_eq!(care.told(), [], "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn c27_how_long_a_server_is_kept_follows_how_often_it_was_called_before_we_were_started() {
    let minutes = |number| number * MINUTE;
    for (calls, kept) in [(21, minutes(5)), (20, minutes(3)), (5, minutes(3)), (4, minutes(1))] {
        let care = Care::default();
        // A day of it, so that this hour makes no difference.
        let row = |hour| {
            let (server, seconds) = ("s".parse().unwrap(), 3600);
            UsageRow { server, hour, calls, seconds }
        };
        care.usage.0.lock().unwrap().extend((-23..0).map(row));
        // One more, because time passes while nobody calls.
        let extra = u64::from(calls == 5);
        care.usage.0.lock().unwrap().push(UsageRow { calls: extra, seconds: 0, ..row(-1) });
        let server = care.take("s", ADAPTIVE);
        care.pass(Duration::from_secs(2)).await;
        server.list(Listing::Tools).await.unwrap();
        let before = server.pace();
        assert!((before.calls_per_hour - f64::from(u32::try_from(calls).unwrap())).abs() < 0.1);
        care.pass(kept.checked_sub(Duration::from_secs(3)).unwrap()).await;
        assert_eq!(server.state(), ServerState::Connected, "{calls} an hour, before {kept:?}");
        care.pass(Duration::from_secs(5)).await;
        assert_eq!(server.state(), ServerState::Idle, "{calls} an hour, after {kept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c25_never_is_never_and_a_fixed_time_is_kept_to() {
    let care = Care::default();
    let (never, fixed) = (care.take("never", IdleRule::Never), care.other("fixed", fixed(120)));
    never.list(Listing::Tools).await.unwrap();
    fixed.list(Listing::Tools).await.unwrap();
    let left = fixed.pace().stops_in.unwrap();
    assert!(left > MINUTE && left <= 2 * MINUTE, "{left:?}");
    assert_eq!(never.pace().stops_in, None);
    care.pass(MINUTE).await;
    assert_eq!(fixed.state(), ServerState::Connected);
    care.pass(2 * MINUTE).await;
    assert_eq!((fixed.state(), never.state()), (ServerState::Idle, ServerState::Connected));
    care.pass(100 * MINUTE).await;
    assert_eq!(never.state(), ServerState::Connected);
}

#[tokio::test(start_paused = true)]
async fn a_call_longer_than_the_idle_time_is_not_cut() {
    let care = Care::default();
    let server = care.take("s", fixed(1));
    *care.server.takes.lock().unwrap() = 10 * MINUTE;
    let call = tokio::spawn({
        let server = server.clone();
        async move { server.call().await }
    });
    care.pass(9 * MINUTE).await;
    assert_eq!(server.pace().stops_in, None);
    call.await.unwrap().unwrap();
    assert_eq!(care.server.starts(), 1);
    care.pass(Duration::from_secs(5)).await;
    assert_eq!(server.state(), ServerState::Idle);
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_about_a_call_uses_the_server_that_it_is_for() {
    let care = Care::default();
    let server = care.take("s", fixed(60));
    server.call().await.unwrap();
    care.pass(Duration::from_secs(50)).await;
    // Somebody may now be asked about the call, and take a while.
    let caller = Caller::operator(Front::Cli);
    server.hub.find(&caller, server.target()).await.unwrap();
    care.pass(Duration::from_secs(50)).await;
    assert_eq!(server.state(), ServerState::Connected);
    care.pass(Duration::from_secs(20)).await;
    assert_eq!(server.state(), ServerState::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_and_a_question_keep_a_server() {
    let care = Care::default();
    let server = care.take("s", fixed(1));
    let id = ItemId { server: server.name.clone(), item: "f://x".to_owned() };
    let target = Target::exact(Kind::Resource, id.clone());
    let call = Call::new(Caller::operator(Front::Cli), target, None);
    let (hub, session) = (&server.hub, server.hub.session());
    hub.begin(&call)
        .side(&session, call, SideOp::Subscribe, ApprovalFrom::Memory, None)
        .await
        .unwrap();
    care.pass(5 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Connected);
    hub.unsubscribe(&server.name, &id.item).await.unwrap();
    care.pass(Duration::from_secs(5)).await;
    assert_eq!(server.state(), ServerState::Idle);

    *care.server.answer.lock().unwrap() = r#"{"resultType":"input_required"}"#.to_owned();
    server.call().await.unwrap();
    care.pass(5 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Connected);
    care.pass(6 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_that_nobody_waits_for_is_replaced_and_one_that_works_is_only_told_of() {
    let care = Care::default();
    let server = care.take("s", IdleRule::Never);
    server.list(Listing::Tools).await.unwrap();
    care.pass(3 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Connected, "it answers");
    care.server.hangs.store(true, Ordering::Relaxed);
    care.pass(2 * MINUTE).await;
    assert_eq!(server.state(), ServerState::Idle);

    *care.server.takes.lock().unwrap() = 2 * MINUTE;
    let call = tokio::spawn({
        let server = server.clone();
        async move { server.call().await }
    });
    care.pass(MINUTE).await;
    assert!(matches!(server.state(), ServerState::Degraded(_)), "{:?}", server.state());
    call.await.unwrap().unwrap();
    assert_eq!(server.state(), ServerState::Connected);
    assert_eq!(care.server.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_is_still_listed_and_one_that_was_never_there_is_not() {
    let care = Care::default();
    care.take("s", ADAPTIVE).list(Listing::Tools).await.unwrap();
    care.settle().await;
    let next = care.restarted();
    next.server.broken.store(true, Ordering::Relaxed);
    let warm = next.take("s", ADAPTIVE);
    assert_eq!(warm.list(Listing::Tools).await.unwrap().len(), 1);
    let refused = warm.current().await;
    assert!(matches!(refused, Err(CallError::Unreachable { .. })), "{refused:?}");
    assert_eq!(warm.list(Listing::Tools).await.unwrap().len(), 1);
    let cold = next.take_as("s", "other", ADAPTIVE, Start::Lazy);
    assert!(cold.list(Listing::Tools).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn how_servers_were_used_is_kept_at_the_end_and_from_time_to_time() {
    let care = Care::default();
    let server = care.take("s", ADAPTIVE);
    care.settle().await;
    server.call().await.unwrap();
    let calls = || care.usage.0.lock().unwrap().iter().map(|row| row.calls).sum::<u64>();
    assert_eq!(calls(), 0);
    care.pass(6 * MINUTE).await;
    assert_eq!(calls(), 1);
    server.call().await.unwrap();
    care.supervisor.close().await;
    assert_eq!(calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_later_is_known_by_how_it_was_used_before() {
    let care = Care::default();
    care.take("first", ADAPTIVE);
    care.pass(MINUTE).await;
    let row = |hour| UsageRow { server: "s".parse().unwrap(), hour, calls: 30, seconds: 3600 };
    care.usage.0.lock().unwrap().extend((-23..0).map(row));
    let server = care.other("s", ADAPTIVE);
    care.pass(Duration::from_secs(2)).await;
    let rate = server.pace().calls_per_hour;
    assert!((rate - 30.0).abs() < 0.5, "{rate}");
    // Once only, however often the same name is taken.
    let again = care.other("s", ADAPTIVE);
    care.pass(Duration::from_secs(2)).await;
    let rate = again.pace().calls_per_hour;
    assert!((rate - 30.0).abs() < 0.5, "{rate}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_is_forgotten_and_known_again_when_it_comes_back() {
    let care = Care::default();
    let stays = care.other("stays", ADAPTIVE);
    let server = care.take("s", ADAPTIVE);
    care.settle().await;
    for _ in 0..21 {
        server.call().await.unwrap();
    }
    drop(server);
    let kept = || {
        let rows = care.usage.0.lock().unwrap();
        let of = |row: &&UsageRow| row.server.as_str() == "s";
        let sum = |(calls, time), row: &UsageRow| (calls + row.calls, time + row.seconds);
        rows.iter().filter(of).fold((0, 0), sum)
    };
    care.pass(6 * MINUTE).await;
    let before = kept();
    assert_eq!(before.0, 21, "what was counted is kept");
    care.pass(60 * MINUTE).await;
    assert_eq!(kept(), before, "no time passes for what is not there");
    let server = care.take("s", ADAPTIVE);
    care.pass(Duration::from_secs(2)).await;
    assert!(server.pace().calls_per_hour > 20.0);
    drop(stays);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_connection_is_counted_and_left_alone() {
    let care = Care::default();
    let server = care.counted("s");
    for _ in 0..3 {
        server.call().await.unwrap();
    }
    let pace = server.pace();
    assert!((pace.calls_per_hour - 3.0).abs() < 1e-9 && pace.stops_in.is_none(), "{pace:?}");
    care.pass(30 * MINUTE).await;
    assert_eq!((server.state(), care.server.starts()), (ServerState::Connected, 1));
    let kept = care.usage.0.lock().unwrap().iter().map(|row| row.calls).sum::<u64>();
    assert_eq!(kept, 3, "also for those who come after us");
    let again = care.restarted().counted("s");
    care.pass(Duration::from_secs(2)).await;
    assert!(again.pace().calls_per_hour > 2.9, "{:?}", again.pace());
}

#[tokio::test(start_paused = true)]
async fn c60_an_unused_server_without_items_is_closed_and_asked_again_by_the_next_gateway() {
    let care = Care::default();
    *care.server.tools.lock().unwrap() = items(&[]);
    let server = care.take("s", ADAPTIVE);
    assert_eq!(server.list(Listing::Tools).await.unwrap().len(), 0);
    care.pass(Duration::from_secs(5)).await;
    assert_eq!(server.state(), ServerState::Connected, "it may be about to add its items");
    care.pass(Duration::from_secs(8)).await;
    assert_eq!(server.state(), ServerState::Idle);

    let next = care.restarted();
    let server = next.take("s", ADAPTIVE);
    next.settle().await;
    assert_eq!(next.server.starts(), 1, "it has items by now");
    assert_eq!(next.told(), [Listing::Tools]);
    assert_eq!(server.list(Listing::Tools).await.unwrap().len(), 1);
    next.pass(Duration::from_secs(50)).await;
    assert_eq!(server.state(), ServerState::Connected, "one with items is kept for longer");
}

#[tokio::test(start_paused = true)]
async fn c60_a_server_without_items_that_never_stops_and_one_with_prompts_only_are_kept() {
    for (idle, has_prompts) in [(IdleRule::Never, false), (ADAPTIVE, true)] {
        let care = Care::default();
        *care.server.tools.lock().unwrap() = items(&[]);
        care.server.has_prompts.store(has_prompts, Ordering::Relaxed);
        let server = care.take("s", idle);
        server.list(Listing::Tools).await.unwrap();
        care.pass(Duration::from_secs(50)).await;
        assert_eq!(server.state(), ServerState::Connected, "{idle:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_seen_delays_no_list_and_keeps_its_items_while_it_does_not_answer() {
    let care = Care::default();
    let server = care.take("s", ADAPTIVE);
    assert!(!server.hub.has_seen(&server.name, Listing::Tools));
    server.list(Listing::Tools).await.unwrap();
    care.settle().await;
    assert!(server.hub.has_seen(&server.name, Listing::Tools));
    care.server.lists_hang.store(true, Ordering::Relaxed);
    let least = Duration::from_millis(25);
    let patience = Patience::Quiet { least, after: 2 * least, most: MINUTE };
    let start = tokio::time::Instant::now();
    let gathered = server.hub.gather_from(Listing::Tools, patience, &|_| Ask::List).await;
    assert_eq!(start.elapsed(), least);
    assert_eq!(gathered.lists[&server.name].len(), 1, "as it was");
    assert_eq!(gathered.pending, [server.name], "its answer is still awaited");
}
