//! Laws that hold for every set of rules, and for callers who race.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use capstan_hub::catalog::Patience;
use capstan_hub::ports::{Approval, Listing};
use capstan_hub::{Call, Entry, Ground, Limits, Session};
use capstan_model::{Caller, ErrorCode, Front, Target, Trust, Verdict};
use capstan_policy::exposure::Exposure;
use capstan_policy::{DefaultRule, PolicySource, RuleList, ServerPolicy};
use futures::FutureExt;
use futures::future::ready;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tokio::runtime::Builder;

use super::{Scene, says, server, tool};
use crate::world::{Person, Server, World, json, policy, rules};

pub(super) const TOOLS: &[&str] = &["read", "write", "drop"];

/// What is written in rules; the last three speak of arguments.
const PATTERNS: &[&str] = &[
    "read",
    "files__write",
    "Files:drop",
    "mcp__files__*",
    "other__*",
    "read:x=1",
    "*:x=2",
    "write:x=*",
];

pub(super) const ARGUMENTS: &[&str] = &["{}", r#"{"x":1}"#, r#"{"x":2}"#];

/// A policy as it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    trust: Trust,
    expose: Option<Vec<&'static str>>,
    hide: Vec<&'static str>,
    tool_policy: Lists,
    global: Lists,
    own: Lists,
    default: Option<DefaultRule>,
}

/// Patterns that deny, that ask and that allow.
#[derive(Clone, Debug)]
struct Lists([Vec<&'static str>; 3]);

// === impl Draft ===

impl Draft {
    pub(super) fn any() -> impl Strategy<Value = Self> {
        let trust = select(vec![Trust::Trusted, Trust::Untrusted, Trust::Sandboxed]);
        let shown = (trust, option::of(subsequence(TOOLS, 0..=3)), subsequence(TOOLS, 0..2));
        let default = option::of(select(vec![
            DefaultRule::Always(Verdict::Allow),
            DefaultRule::Always(Verdict::Ask),
            DefaultRule::Always(Verdict::Deny),
            DefaultRule::AskWrites,
        ]));
        let lists = (Lists::any(), Lists::any(), Lists::any());
        (shown, lists, default).prop_map(|(shown, lists, default)| {
            let ((trust, expose, hide), (tool_policy, mut global, mut own)) = (shown, lists);
            if default == Some(DefaultRule::Always(Verdict::Deny)) {
                global.forget_arguments();
                own.forget_arguments();
            }
            Self { trust, expose, hide, tool_policy, global, own, default }
        })
    }

    pub(super) fn policy(&self) -> PolicySource {
        let own = |names: &Vec<&str>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let expose = self.expose.as_ref().map(own);
        let files = ServerPolicy {
            display: "Files".to_owned(),
            trust: self.trust,
            exposure: Exposure::new(expose.as_deref(), &own(&self.hide)).unwrap(),
            ..ServerPolicy::default()
        };
        let mut policy = policy(&[], &[], &[]);
        policy.servers.insert(server(), files);
        policy.tools = self.tool_policy.rules("tools.policy");
        policy.permissions.global = self.global.rules("permissions");
        policy.permissions.servers.insert(server(), self.own.rules("servers.files"));
        policy.permissions.default = self.default;
        policy
    }
}

// === impl Lists ===

impl Lists {
    fn any() -> impl Strategy<Value = Self> {
        [0; 3].map(|_| subsequence(PATTERNS, 0..3)).prop_map(Self)
    }

    /// Leaves out what asks or allows by arguments. A list is made before they are known, so that
    /// where the rest is denied such a rule alone lists nothing.
    fn forget_arguments(&mut self) {
        let [_, ask, allow] = &mut self.0;
        ask.retain(|pattern| !pattern.contains('='));
        allow.retain(|pattern| !pattern.contains('='));
    }

    fn rules(&self, place: &str) -> RuleList {
        let [deny, ask, allow] = self.0.each_ref().map(|patterns| rules(place, patterns));
        RuleList { deny, ask, allow }
    }
}

pub(super) fn front() -> impl Strategy<Value = Front> {
    select(vec![Front::Cli, Front::Terminal, Front::Gateway])
}

pub(super) fn call(front: Front, name: &str, arguments: &str) -> Call {
    Call::new(Caller::operator(front), Target::tool(name), Some(&json(arguments)))
}

/// The ids that a caller at `front` is shown.
fn listed(world: &World, front: Front) -> Vec<String> {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let patience = Patience::UpTo(Duration::from_secs(1));
    let gathered = runtime.block_on(world.hub.gather(Listing::Tools, patience, &mut |_| {}));
    let tools = world.hub.visible_tools(&gathered, &Caller::operator(front));
    tools.iter().map(|tool| tool.id.to_string()).collect()
}

/// Whether some arguments get the tool past every rule, the operator saying yes.
fn callable(world: &World, front: Front, id: &str) -> bool {
    let person = Arc::new(says(Approval::once(Ground::Asked)));
    ARGUMENTS.iter().any(|arguments| {
        let result = world.call(&person, call(front, id, arguments)).now_or_never().unwrap();
        assert!(result.as_ref().err().is_none_or(|e| e.code() == ErrorCode::PolicyBlocked));
        result.is_ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tool_is_listed_if_and_only_if_it_can_be_called(draft in Draft::any(), front in front()) {
        let world = World::new(vec![Server::new("files", TOOLS)], draft.policy());
        let listed = listed(&world, front);
        for tool in TOOLS {
            let id = format!("files__{tool}");
            prop_assert_eq!(listed.contains(&id), callable(&world, front, &id), "{}", id);
        }
    }

    #[test]
    fn what_explain_says_is_what_happens(
        draft in Draft::any(),
        front in front(),
        name in select(TOOLS),
        arguments in select(ARGUMENTS),
        approval in select(vec![Approval::once(Ground::Asked), Approval::No(Ground::Refused)]),
    ) {
        let server = Server::new("files", TOOLS);
        let requests = Arc::clone(&server.requests);
        let world = World::new(vec![server], draft.policy());
        let call = call(front, &format!("Files:{name}"), arguments);
        let explained = world.hub.explain(call.clone()).now_or_never().unwrap().unwrap();
        prop_assert_eq!(requests.lock().unwrap().len() + world.entries().len(), 0);

        let result = world.call(&Arc::new(says(approval)), call).now_or_never().unwrap();
        let runs = match explained.ruling.verdict {
            Verdict::Allow => true,
            Verdict::Ask => approval == Approval::once(Ground::Asked),
            Verdict::Deny => false,
        };
        prop_assert_eq!((result.is_ok(), requests.lock().unwrap().len()), (runs, usize::from(runs)));
        let entries = world.entries();
        let told = |entry: &Entry| (entry.verdict.unwrap(), entry.rule.clone().unwrap());
        let expected = [(explained.ruling.verdict, explained.ruling.rule)];
        prop_assert_eq!(entries.iter().map(told).collect::<Vec<_>>(), expected);
    }
}

/// Lets threads go in one moment, so many at a time. The operator's yes is the last thing before
/// the quota, so that all of them reach it together; they spin because waking up takes too long.
fn starting_line(threads: usize) -> Person {
    let arrived = AtomicUsize::new(0);
    let approves = move || {
        let mine = arrived.fetch_add(1, Ordering::AcqRel);
        let all = (mine / threads + 1) * threads;
        while arrived.load(Ordering::Acquire) < all {
            thread::yield_now();
        }
        ready(Approval::once(Ground::Asked)).boxed()
    };
    Person { approves: Box::new(approves), ..Person::nobody() }
}

/// Takes every session as one race of all threads; gives the number of calls answered in each.
fn race(scene: &Scene, sessions: &[Session], threads: usize) -> Vec<usize> {
    let run = |session: &Session| {
        let requester = scene.person.requester();
        let call = scene.world.hub.call(session, tool("files__write"), requester);
        let code = call.now_or_never().unwrap().err().map(|error| error.code());
        assert!(matches!(code, None | Some(ErrorCode::QuotaBlocked)), "{code:?}");
        usize::from(code.is_none())
    };
    let run_all = || sessions.iter().map(run).collect::<Vec<usize>>();
    let each: Vec<_> = thread::scope(|scope| {
        let racers: Vec<_> = (0..threads).map(|_| scope.spawn(run_all)).collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let total = |at: usize| each.iter().filter_map(|answered| answered.get(at)).sum();
    (0..sessions.len()).map(total).collect()
}

#[test]
fn of_callers_racing_for_the_last_place_of_the_quota_exactly_one_gets_it() {
    for (threads, races) in [(2, 2000), (8, 100)] {
        let scene = Scene::with_person(starting_line(threads));
        let sessions: Vec<_> = (0..races).map(|_| Session::new(Some(1))).collect();
        assert_eq!(race(&scene, &sessions, threads), vec![1; races]);
        assert_eq!(scene.served().len(), races);
        assert_eq!(scene.world.entries().len(), threads * races);
    }
}

#[test]
fn a_quota_is_spent_to_the_last_place_and_never_overshot() {
    let mut scene = Scene::with_person(starting_line(4));
    scene.set_limits(Limits { quota: Some(100), ..Limits::default() });
    let one = scene.world.hub.session();
    let answered: usize = (0..50).flat_map(|_| race(&scene, slice::from_ref(&one), 4)).sum();
    assert_eq!((answered, scene.served().len()), (100, 100));
    assert_eq!(scene.world.entries().len(), 200);
}
