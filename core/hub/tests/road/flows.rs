//! Rules about flows: what a conversation has read decides about what it may do.
//!
//! The scene is one server with the tools `page`, `inbox` and `mail`: reads content of strangers,
//! reads private data, sends.

use capstan_hub::{Outcome, Session};
use capstan_model::rpc_code::INTERNAL;
use capstan_policy::flows::{ListedTags, Place};
use capstan_policy::{FlowAction, FlowRules, Tag, TagRules};

use super::*;

/// A policy with the tags of the scene.
fn tagged(flows: FlowRules, deny: &[&str]) -> PolicySource {
    let list = |name: &str| vec![name.to_owned()];
    let lists = [list("page"), list("inbox"), list("mail")];
    let lists = lists.each_ref().map(|list| Some(list.as_slice()));
    let mut policy = policy(deny, &[], &["page", "inbox", "mail", "other"]);
    let files = policy.servers.get_mut(&server()).unwrap();
    files.tags = TagRules::new(lists, ListedTags::Replace, Place::Here).unwrap();
    policy.flows = flows;
    policy
}

fn flows_scene(flows: FlowRules, runs: Server) -> Scene {
    let policy = tagged(flows, &[]);
    let requests = Arc::clone(&runs.requests);
    let person = Arc::new(Person::nobody());
    Scene { world: World::new(vec![runs], policy), person, requests }
}

fn mailer() -> Server {
    Server::new("files", &["page", "inbox", "mail", "other"])
}

const DENY: FlowRules =
    FlowRules { untrusted_then_send: FlowAction::Deny, private_then_send: FlowAction::Deny };

async fn calls(scene: &Scene, session: &Session, names: &[&str]) -> Vec<Result<(), CallError>> {
    let mut results = Vec::new();
    for name in names {
        let call = tool(&format!("files__{name}"));
        let requester = scene.person.requester();
        results.push(scene.world.hub.call(session, call, requester).await.map(drop));
    }
    results
}

fn is_refused(result: &Result<(), CallError>) -> bool {
    matches!(result, Err(CallError::FlowBlocked { .. }))
}

#[tokio::test]
async fn reading_a_page_and_then_sending_is_refused_in_one_conversation_and_allowed_in_two() {
    for (read, key) in [("page", "untrusted_then_send"), ("inbox", "private_then_send")] {
        let scene = flows_scene(DENY, mailer());
        let (one, other) = (scene.world.hub.session(), scene.world.hub.session());
        let results = calls(&scene, &one, &["mail", read, "mail", "other", read]).await;
        let refused: Vec<bool> = results.iter().map(is_refused).collect();
        assert_eq!(refused, [false, false, true, false, false], "{read}");
        let error = results[2].clone().unwrap_err();
        assert_eq!(error.code(), ErrorCode::PolicyBlocked);
        let rule = scene.world.entries()[2].rule.clone().unwrap();
        assert!(rule.starts_with(&format!("flows.{key}: ")), "{rule}");
        assert!(rule.ends_with(&format!("by files__{read}")) && error.to_string().contains(&rule));
        assert!(!is_refused(&calls(&scene, &other, &["mail"]).await[0]));
        // A session that shares the quota shares what was read: clients that cannot be told apart.
        assert!(is_refused(&calls(&scene, &one.beside(), &["mail"]).await[0]));
        let sent = scene.served().iter().filter(|line| line.contains("mail")).count();
        assert_eq!(sent, 2, "{:?}", scene.served());
    }
}

#[tokio::test]
async fn a_rule_that_asks_is_answered_by_no_remembered_approval() {
    let ask = FlowRules { untrusted_then_send: FlowAction::Ask, ..FlowRules::default() };
    let scene = flows_scene(ask, mailer());
    let session = scene.world.hub.session();
    let results = calls(&scene, &session, &["mail", "page", "mail", "mail"]).await;
    assert!(results[0].is_ok() && results[1].is_ok());
    for refused in &results[2..] {
        assert!(matches!(refused, Err(CallError::NotApproved { .. })), "{refused:?}");
    }
    let asked = Scene { person: Arc::new(says(Approval::once(Ground::Asked))), ..scene };
    assert!(calls(&asked, &session, &["mail"]).await[0].is_ok());
}

#[tokio::test]
async fn only_an_answer_that_arrives_counts_and_an_error_of_the_server_is_one() {
    let failing = |error: CallError| {
        let runs = move |_, _| ready(Err(error.clone())).boxed();
        Server { runs: Box::new(runs), ..mailer() }
    };
    for (error, counts) in [
        (unreachable(), false),
        (timed_out(), false),
        (went_away(), false),
        (refused_by_server(INTERNAL), true),
    ] {
        let scene = flows_scene(DENY, failing(error.clone()));
        let session = scene.world.hub.session();
        let results = calls(&scene, &session, &["page", "mail"]).await;
        assert_eq!(is_refused(&results[1]), counts, "{error:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_was_not_delivered() {
    let mut scene = flows_scene(DENY, mailer());
    scene.set_limits(Limits { max_answer: 1, ..Limits::default() });
    let session = scene.world.hub.session();
    let results = calls(&scene, &session, &["page", "mail"]).await;
    assert!(matches!(results[0], Err(CallError::AnswerTooLarge { .. })));
    assert!(!is_refused(&results[1]));
}

#[tokio::test]
async fn nothing_is_refused_unless_it_is_configured() {
    let off = FlowRules::default();
    let untrusted = FlowRules { untrusted_then_send: FlowAction::Deny, ..off };
    for (rules, read) in [(off, "page"), (off, "inbox"), (untrusted, "inbox")] {
        let scene = flows_scene(rules, mailer());
        let session = scene.world.hub.session();
        let results = calls(&scene, &session, &[read, "mail"]).await;
        assert!(results.iter().all(Result::is_ok), "{read}: {results:?}");
        let last = scene.world.entries()[1].clone();
        assert_eq!(last.outcome, Outcome::Answered);
        assert!(!last.rule.unwrap().starts_with("flows."));
    }
}

#[tokio::test]
async fn a_caller_who_may_not_send_at_all_gets_the_usual_error() {
    let mut scene = flows_scene(DENY, mailer());
    scene.world.change(|hub| hub.policy = Arc::new(tagged(DENY, &["mail"]).compile()));
    let session = scene.world.hub.session();
    let results = calls(&scene, &session, &["page", "mail"]).await;
    assert!(matches!(results[1], Err(CallError::Denied { .. })), "{results:?}");
}

#[tokio::test]
async fn why_shows_the_tags_of_an_item_and_the_rules_that_it_can_meet() {
    let scene = flows_scene(DENY, mailer());
    let told = scene.world.hub.explain(tool("files__mail")).await.unwrap();
    assert_eq!(told.tags.iter().map(Tag::as_str).collect::<Vec<_>>(), ["sends"]);
    let rules: Vec<&str> = told.by_flows.iter().map(|step| step.rule.as_str()).collect();
    assert_eq!(rules.len(), 2, "{rules:?}");
    assert!(told.by_flows.iter().all(|step| step.verdict == Some(Verdict::Deny)));
    let told = scene.world.hub.explain(tool("files__page")).await.unwrap();
    assert!(told.by_flows.is_empty() && !told.tags.has(Tag::Sends));
    let off = flows_scene(FlowRules::default(), mailer());
    let told = off.world.hub.explain(tool("files__mail")).await.unwrap();
    assert!(told.by_flows.is_empty() && told.tags.iter().next().is_none());
}
