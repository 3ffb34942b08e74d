//! Callers whom access rules bind: what they see is what they can use, and of the rest nobody can
//! tell that it is there.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;

use std::sync::Arc;
use std::time::Duration;

use capstan_hub::catalog::{Alphabet, Catalog, Names, Patience};
use capstan_hub::ports::{Approval, Listing};
use capstan_hub::{Call, Check, Ground, Outcome};
use capstan_model::{
    CallError, Caller, ErrorCode, Front, Kind, Naming, ServerName, Target, Verdict,
};
use capstan_policy::access::{AccessTo, Grant, Says, Strictness};
use capstan_policy::effect::EffectRules;
use capstan_policy::{Access, AccessTable, Glob, PolicySource, ServerPolicy};
use futures::FutureExt;
use futures::future::ready;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::runtime::Builder;

use world::{Person, Server, World, json, policy};

const ITEMS: &[&str] = &["get_a", "get_b", "put_a", "odd"];

fn grant(servers: &str, access: AccessTo, tools: Option<&str>) -> Grant {
    let globs = |text: &str| text.split(',').map(Glob::stars).collect::<Vec<_>>();
    Grant {
        servers: globs(servers),
        access,
        tools: tools.map(globs),
        resources: None,
        prompts: None,
        says: Says::Allow,
    }
}

fn denying(grant: Grant) -> Grant {
    Grant { says: Says::Deny, ..grant }
}

/// Two servers of which everything is allowed but for access, and roles with these grants.
fn with_roles(roles: Vec<(&str, Vec<Grant>)>) -> PolicySource {
    let mut policy = policy(&[], &[], &["*"]);
    let servers: Vec<ServerName> = ["files", "mail"].map(|name| name.parse().unwrap()).into();
    for server in &servers {
        let own = |text: &str| [text.to_owned()];
        let effects = EffectRules::new(&own("get_*"), &own("put_*")).unwrap();
        let known =
            ServerPolicy { display: server.to_string(), effects, ..ServerPolicy::default() };
        policy.servers.insert(server.clone(), known);
    }
    let roles = roles.into_iter().map(|(name, grants)| (name.to_owned(), grants)).collect();
    let table = AccessTable { default: Says::Deny, roles, ..AccessTable::default() };
    policy.access = vec![Access::new(table, servers.iter().map(|name| (name, name.as_str())))];
    policy
}

fn world(policy: PolicySource) -> World {
    World::new(vec![Server::new("files", ITEMS), Server::new("mail", ITEMS)], policy)
}

fn of(role: &str) -> Caller {
    Caller::remote("someone", vec![role.to_owned()])
}

fn yes() -> Arc<Person> {
    let approves = Box::new(|| ready(Approval::once(Ground::Asked)).boxed());
    Arc::new(Person { approves, ..Person::nobody() })
}

fn target(kind: Kind, server: &str, item: &str) -> Target {
    match kind {
        Kind::Tool => Target::tool(format!("{server}__{item}")),
        Kind::Prompt => Target::prompt(format!("{server}__{item}")),
        Kind::Resource => Target::resource(format!("{server}:{item}")),
    }
}

/// Every item that a caller is shown, and every one that it can use.
fn shown_and_usable(world: &World, caller: &Caller) -> (Vec<String>, Vec<String>) {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let (mut shown, mut usable) = (Vec::new(), Vec::new());
    for (listing, kind) in [
        (Listing::Tools, Kind::Tool),
        (Listing::Prompts, Kind::Prompt),
        (Listing::Resources, Kind::Resource),
    ] {
        let patience = Patience::UpTo(Duration::from_secs(1));
        let gathered = runtime.block_on(world.hub.gather(listing, patience, &mut |_| ()));
        let visible = world.hub.visible_items(&gathered, kind, caller);
        let named = |(server, item): &(&ServerName, &capstan_hub::ports::Item)| {
            format!("{} {server} {}", kind.as_str(), item.name)
        };
        shown.extend(visible.iter().map(named));
        for server in ["files", "mail"] {
            for item in ITEMS {
                let call = Call::new(caller.clone(), target(kind, server, item), Some(&json("{}")));
                let result = world.call(&yes(), call).now_or_never().unwrap();
                if result.is_ok() {
                    usable.push(format!("{} {server} {item}", kind.as_str()));
                }
            }
        }
    }
    (shown, usable)
}

#[test]
fn c37_lists_are_what_a_role_can_use() {
    let reader = vec![grant("files", AccessTo::Read, None)];
    let narrow = vec![grant("*", AccessTo::All, Some("get_a,odd"))];
    let world = world(with_roles(vec![("reader", reader), ("narrow", narrow)]));
    let (shown, usable) = shown_and_usable(&world, &of("reader"));
    assert_eq!(shown, usable);
    let prompts = ITEMS.iter().map(|item| format!("prompt files {item}"));
    let resources = ITEMS.iter().map(|item| format!("resource files {item}"));
    let tools = ["get_a", "get_b"].map(|item| format!("tool files {item}"));
    assert_eq!(shown, tools.into_iter().chain(prompts).chain(resources).collect::<Vec<_>>());

    let (shown, usable) = shown_and_usable(&world, &of("narrow"));
    assert_eq!(shown, usable);
    assert_eq!(
        shown,
        ["tool files get_a", "tool files odd", "tool mail get_a", "tool mail odd"],
        "who lists tools grants nothing else"
    );
    for nobody in [of("other"), Caller::remote("anonymous", Vec::new())] {
        assert_eq!(shown_and_usable(&world, &nobody), (Vec::new(), Vec::new()));
    }
    let operator = Caller::operator(Front::Cli);
    assert_eq!(shown_and_usable(&world, &operator).0.len(), 2 * 3 * ITEMS.len());
}

#[test]
fn what_is_known_of_an_item_for_one_caller_is_not_told_to_another() {
    let reader = vec![grant("files", AccessTo::Read, None)];
    let world = world(with_roles(vec![("reader", reader)]));
    let stdio = Caller::anonymous();
    for _ in 0..2 {
        for (caller, allowed) in
            [(&stdio, true), (&of("reader"), true), (&of("other"), false), (&stdio, true)]
        {
            let call = Call::new(caller.clone(), Target::tool("files__get_a"), Some(&json("{}")));
            let result = world.call(&yes(), call).now_or_never().unwrap();
            assert_eq!(result.is_ok(), allowed, "{caller:?}");
        }
    }
}

#[tokio::test]
async fn a_server_out_of_reach_is_not_started_and_the_log_says_why() {
    let reader = vec![grant("files", AccessTo::Read, None)];
    let mail = Server {
        lists: Box::new(|_| panic!("it was asked for its list")),
        ..Server::new("mail", ITEMS)
    };
    let policy = with_roles(vec![("reader", reader)]);
    let world = World::new(vec![Server::new("files", ITEMS), mail], policy);
    for name in ["mail__get_a", "mail__nothing", "mcp__mail__get_a", "mail:get_a"] {
        let call = Call::new(of("reader"), Target::tool(name), Some(&json("{}")));
        let error = world.call(&yes(), call).await.unwrap_err();
        assert!(matches!(error, CallError::Denied { .. }), "{name}: {error:?}");
    }
    let call = Call::new(of("reader"), Target::tool("mail__get_a"), Some(&json("{}")));
    let explained = world.hub.explain(call).await.unwrap();
    assert_eq!(explained.ruling.rule, "access.default", "what is told is what happens");
    assert_eq!(explained.ruling.verdict, Verdict::Deny);
    let entries = world.entries();
    let entry = entries.first().unwrap();
    assert_eq!(entry.rule.as_deref(), Some("access.default"));
    assert_eq!(entry.verdict, Some(Verdict::Deny));
    assert!(matches!(entry.outcome, Outcome::Failed(ErrorCode::PolicyBlocked)));
}

/// A server out of reach offers, under its bare name, what spells an item within reach.
#[tokio::test]
async fn a_name_that_a_server_out_of_reach_was_given_stands_for_what_it_spells() {
    let reader = vec![grant("files", AccessTo::Read, None)];
    let servers = vec![Server::new("files", ITEMS), Server::new("mail", &["files__get_a"])];
    let mut world = World::new(servers, with_roles(vec![("reader", reader)]));
    let naming = [("mail".parse().unwrap(), Naming::Bare)];
    let catalog = Catalog { names: Names::new(naming), ..Catalog::default() };
    world.change(|hub| hub.catalog = Arc::new(catalog));
    let patience = Patience::UpTo(Duration::from_secs(1));
    let gathered = world.hub.gather(Listing::Tools, patience, &mut |_| ()).await;
    world.hub.name_tools(&gathered, Alphabet::Usual);
    let call = Call::new(of("reader"), Target::tool("files__get_a"), Some(&json("{}")));
    world.call(&yes(), call).await.unwrap();
    assert_eq!(world.entries().last().unwrap().server.as_deref(), Some("files"));
}

#[tokio::test]
async fn the_schema_of_a_tool_is_not_told_to_who_may_not_use_it() {
    let reader = vec![grant("files", AccessTo::Read, None)];
    let mut world = world(with_roles(vec![("reader", reader)]));
    world.change(|hub| hub.limits.check_arguments = Check::Yes);
    let call = Call::new(of("reader"), Target::tool("files__put_a"), Some(&json("[1]")));
    let error = world.call(&yes(), call).await.unwrap_err();
    assert!(matches!(error, CallError::Denied { .. }), "{error:?}");
}

fn any_grants() -> impl Strategy<Value = Vec<Grant>> {
    let one = (
        select(vec!["files", "mail", "*", "files,mail", "m*"]),
        select(vec![AccessTo::Read, AccessTo::Write, AccessTo::All]),
        select(vec![None, Some("get_*"), Some("*_a"), Some("odd")]),
        any::<bool>(),
    )
        .prop_map(|(servers, access, tools, deny)| {
            let grant = grant(servers, access, tools);
            if deny { denying(grant) } else { grant }
        });
    prop::collection::vec(one, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, cases: 48, ..ProptestConfig::default()
    })]

    #[test]
    fn every_caller_is_shown_exactly_what_it_can_use(
        grants in any_grants(),
        others in any_grants(),
        strict: bool,
        open: bool,
    ) {
        let mut policy = with_roles(Vec::new());
        let servers: Vec<ServerName> = ["files", "mail"].map(|name| name.parse().unwrap()).into();
        let table = AccessTable {
            default: if open { Says::Allow } else { Says::Deny },
            strictness: if strict { Strictness::Strict } else { Strictness::Usual },
            roles: vec![("a".to_owned(), grants), ("b".to_owned(), others)],
            ..AccessTable::default()
        };
        policy.access = vec![Access::new(table, servers.iter().map(|it| (it, it.as_str())))];
        let world = world(policy);
        let both = Caller::remote("someone", vec!["a".to_owned(), "b".to_owned()]);
        for caller in [of("a"), of("b"), both, of("none")] {
            let (shown, usable) = shown_and_usable(&world, &caller);
            prop_assert_eq!(shown, usable);
        }
    }
}
