//! Lists of many servers: the slow, the hanging and the broken hold up nobody.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Ask, Gathered, Patience, names};
use capstan_hub::ports::Listing;
use capstan_hub::{Absent, Call};
use capstan_model::{CallError, Caller, Front, ServerName, ServerState, Target};
use futures::FutureExt;
use futures::future::{pending, ready};
use tokio::time::Instant;

use world::{Listed, Person, Server, World, items, json, policy, rules};

const LIMIT: Duration = Duration::from_secs(2);
const UP_TO: Patience = Patience::UpTo(LIMIT);
const UNTIL_FIRST: Patience = Patience::UntilFirstOr(LIMIT);

/// A server that lists one tool after so long.
fn after(name: &str, wait: Duration) -> Server {
    listing(name, wait, || Ok(items(&["tool"])))
}

/// A server that fails after so long.
fn broken(name: &str, wait: Duration) -> Server {
    let server: ServerName = name.parse().unwrap();
    listing(name, wait, move || {
        Err(CallError::Unreachable { server: server.clone(), reason: "it ended".to_owned() })
    })
}

/// A server that never answers.
fn hanging(name: &str) -> Server {
    Server { lists: Box::new(|_| pending().boxed()), ..Server::new(name, &[]) }
}

fn listing(
    name: &str,
    wait: Duration,
    listed: impl Fn() -> Listed + Send + Sync + 'static,
) -> Server {
    let there = Instant::now() + wait;
    let lists = move |_| {
        let listed = listed();
        tokio::time::sleep_until(there).map(|()| listed).boxed()
    };
    Server { lists: Box::new(lists), ..Server::new(name, &[]) }
}

/// What came, how long that took, and in which order it came.
struct Waited {
    gathered: Gathered,
    time: Duration,
    arrived: Vec<String>,
}

async fn wait(servers: Vec<Server>, patience: Patience) -> Waited {
    let world = World::new(servers, policy(&[], &[], &["*"]));
    let start = Instant::now();
    let mut arrived = Vec::new();
    let mut note = |name: &ServerName| arrived.push(name.to_string());
    let gathered = world.hub.gather(Listing::Tools, patience, &mut note).await;
    assert!(world.entries().is_empty(), "listing is not a call");
    Waited { gathered, time: start.elapsed(), arrived }
}

fn words<'a>(names: impl IntoIterator<Item = &'a ServerName>) -> Vec<&'a str> {
    names.into_iter().map(ServerName::as_str).collect()
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[tokio::test(start_paused = true)]
async fn twenty_hanging_servers_of_twenty_five_cost_the_limit_and_no_more() {
    let name = |number: usize| format!("s{number}");
    for patience in [UP_TO, UNTIL_FIRST] {
        let server = |number: usize| match number % 5 {
            0 => after(&name(number), ms(10)),
            _ => hanging(&name(number)),
        };
        let waited = wait((0..25).map(server).collect(), patience).await;
        assert_eq!(waited.time, LIMIT);
        assert_eq!(words(waited.gathered.lists.keys()), ["s0", "s5", "s10", "s15", "s20"]);
        let pending: Vec<_> = (0..25).filter(|number| number % 5 != 0).map(name).collect();
        assert_eq!(words(&waited.gathered.pending), pending);
        assert!(waited.gathered.failed.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn all_servers_are_asked_at_the_same_time_and_nobody_waits_once_all_have_answered() {
    let servers = (0..25).map(|number| after(&format!("s{number}"), ms(1000))).collect();
    let waited = wait(servers, UP_TO).await;
    assert_eq!((waited.time, waited.gathered.lists.len()), (ms(1000), 25));
    let nobody = wait(Vec::new(), UNTIL_FIRST).await;
    assert_eq!((nobody.time, nobody.gathered.lists.len()), (Duration::ZERO, 0));
}

#[tokio::test(start_paused = true)]
async fn one_slow_server_alone_is_waited_for_beyond_the_limit() {
    let waited = wait(vec![after("slow", LIMIT * 5)], UNTIL_FIRST).await;
    assert_eq!(waited.time, LIMIT * 5);
    assert_eq!(words(waited.gathered.lists.keys()), ["slow"]);
}

#[tokio::test(start_paused = true)]
async fn patience_that_ends_at_the_limit_goes_on_without_the_slow_one() {
    let waited = wait(vec![after("slow", LIMIT * 5)], UP_TO).await;
    assert_eq!((waited.time, waited.gathered.lists.len()), (LIMIT, 0));
    assert_eq!(words(&waited.gathered.pending), ["slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_not_the_answer_that_is_waited_for() {
    let servers = vec![broken("bad", ms(1)), after("slow", LIMIT * 2), after("slower", LIMIT * 3)];
    let waited = wait(servers, UNTIL_FIRST).await;
    // Once the first has come, the next is waited for a little.
    assert_eq!(waited.time, LIMIT * 2 + ms(400));
    assert_eq!(words(waited.gathered.lists.keys()), ["slow"]);
    assert_eq!(words(waited.gathered.failed.keys()), ["bad"]);
    assert_eq!(words(&waited.gathered.pending), ["slower"]);
}

#[tokio::test(start_paused = true)]
async fn when_all_are_broken_nobody_waits_for_the_limit() {
    let waited = wait(vec![broken("a", ms(5)), broken("b", ms(7))], UNTIL_FIRST).await;
    assert_eq!((waited.time, waited.gathered.failed.len()), (ms(7), 2));
}

#[tokio::test(start_paused = true)]
async fn broken_servers_are_reported_and_break_no_other() {
    let servers = vec![broken("a", ms(1)), after("b", ms(3)), broken("c", ms(2))];
    let waited = wait(servers, UP_TO).await;
    assert_eq!(words(waited.gathered.lists.keys()), ["b"]);
    let told: Vec<_> = waited.gathered.failed.values().map(ToString::to_string).collect();
    let expected = ["a", "c"].map(|name| format!("server `{name}` is not usable: it ended"));
    assert_eq!(told, expected);
    assert!(waited.gathered.pending.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_order_is_that_of_the_configuration_however_they_arrive() {
    let servers = vec![after("z", ms(30)), after("m", ms(10)), after("a", ms(20))];
    let waited = wait(servers, UP_TO).await;
    assert_eq!(words(waited.gathered.lists.keys()), ["z", "m", "a"]);
    assert_eq!(waited.arrived, ["m", "a", "z"]);
}

#[tokio::test(start_paused = true)]
async fn the_tools_that_are_shown_keep_that_order_and_leave_out_what_is_denied() {
    let servers =
        vec![Server::new("z", &["b", "a"]), hanging("y"), Server::new("files", &["drop", "read"])];
    let mut denying = policy(&[], &[], &["*"]);
    denying.permissions.global.deny = rules("permissions.deny", &["drop"]);
    let world = World::new(servers, denying);
    let patience = Patience::UpTo(Duration::ZERO);
    let gathered = world.hub.gather(Listing::Tools, patience, &mut |_| {}).await;
    let tools = world.hub.visible_tools(&gathered, &Caller::anonymous());
    let ids: Vec<_> = tools.iter().map(|tool| tool.id.to_string()).collect();
    assert_eq!(ids, ["z__b", "z__a", "files__read"]);
    assert!(gathered.lists.values().flat_map(|items| names(items)).eq(["b", "a", "drop", "read"]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_says_why() {
    let table = [
        (ServerState::Disabled, "it is disabled; `capstan enable off` starts it"),
        (ServerState::AwaitingApproval, "its file is not trusted; run `capstan trust`"),
        (ServerState::NeedsLogin, "it needs a login"),
        (ServerState::Failed("no such command".to_owned()), "no such command"),
    ];
    for (state, reason) in table {
        let mut world = World::new(vec![Server::new("on", &["tool"])], policy(&[], &[], &["*"]));
        let off: ServerName = "off".parse().unwrap();
        world.change(|hub| hub.add(Arc::new(Absent::new(off.clone(), state))));
        let gathered = world.hub.gather(Listing::Tools, UP_TO, &mut |_| {}).await;
        assert_eq!(words(gathered.lists.keys()), ["on"]);
        let told = format!("server `off` is not usable: {reason}");
        assert_eq!(gathered.failed.get(&off).unwrap().to_string(), told);
        let error = world.call(&Arc::new(Person::nobody()), tool("off__tool")).await.unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

fn tool(name: &str) -> Call {
    Call::new(Caller::operator(Front::Cli), Target::tool(name), Some(&json("{}")))
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_own_server_and_asks_no_other() {
    let lists = |_| -> futures::future::BoxFuture<'static, Listed> {
        panic!("a server that was not called was asked for its tools")
    };
    let others = (0..24)
        .map(|number| Server { lists: Box::new(lists), ..Server::new(&format!("s{number}"), &[]) });
    let servers = others.chain([after("mine", LIMIT * 10)]).collect();
    let world = World::new(servers, policy(&[], &[], &["*"]));
    let start = Instant::now();
    world.call(&Arc::new(Person::nobody()), tool("mine__tool")).await.unwrap();
    assert_eq!(start.elapsed(), LIMIT * 10);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_at_once_is_never_late() {
    let lists = |_| ready(Ok(items(&["tool"]))).boxed();
    let server = Server { lists: Box::new(lists), ..Server::new("quick", &[]) };
    let waited = wait(vec![server], Patience::UpTo(Duration::ZERO)).await;
    assert_eq!(words(waited.gathered.lists.keys()), ["quick"]);
}

/// The patience of a gateway.
const QUIET: Patience = Patience::Quiet { least: ms(25), after: ms(50), most: LIMIT };

/// Lists with a longer wait for some servers.
async fn wait_for_first(servers: Vec<Server>, firsts: &[(&str, Duration)]) -> Waited {
    let world = World::new(servers, policy(&[], &[], &["*"]));
    let start = Instant::now();
    let how = |server: &ServerName| {
        let first = firsts.iter().find(|(name, _)| *name == server.as_str());
        first.map_or(Ask::List, |(_, wait)| Ask::Await(*wait))
    };
    let gathered = world.hub.gather_from(Listing::Tools, QUIET, &how).await;
    Waited { gathered, time: start.elapsed(), arrived: Vec::new() }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_seen_is_waited_for_until_it_answers() {
    let servers = vec![after("quick", ms(1)), after("slow", LIMIT * 2)];
    let waited = wait_for_first(servers, &[("slow", LIMIT * 4)]).await;
    assert_eq!(waited.time, LIMIT * 2);
    assert_eq!(words(waited.gathered.lists.keys()), ["quick", "slow"]);
}

#[tokio::test(start_paused = true)]
async fn the_longer_wait_for_one_server_ends_with_its_answer_its_failure_or_its_time() {
    let firsts = [("first", LIMIT * 4)];
    let first: [(&dyn Fn() -> Server, Duration); 3] = [
        (&|| after("first", LIMIT * 3), LIMIT * 3),
        (&|| broken("first", LIMIT * 3), LIMIT * 3),
        (&|| hanging("first"), LIMIT * 4),
    ];
    for (first, time) in first {
        let servers = vec![first(), after("quick", ms(1)), hanging("known")];
        assert_eq!(wait_for_first(servers, &firsts).await.time, time);
    }
    let firsts = [("a", LIMIT * 2), ("b", LIMIT * 4)];
    let waited = wait_for_first(vec![hanging("a"), after("b", LIMIT * 3)], &firsts).await;
    assert_eq!(waited.time, LIMIT * 3, "the time of `a` is over by then");
    assert_eq!(words(&waited.gathered.pending), ["a"]);
}
