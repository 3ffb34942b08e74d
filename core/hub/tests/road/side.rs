//! Side requests: the rules decide on what the server gets.

use std::sync::Arc;

use capstan_hub::{ApprovalFrom, Call, ExtensionMethod, ExtensionNotification, SideOp};
use capstan_model::{CallError, Caller, ErrorCode, Front, ItemId, Kind, Target, Verdict};
use capstan_policy::access::{AccessTo, Grant, Says};
use capstan_policy::{Access, AccessTable, Glob, PolicySource};
use capstan_wire::Json;

use super::{Scene, files, server};
use crate::world::{Person, World, json, policy};

/// A hub of `files` under these rules.
fn under(rules: PolicySource) -> Scene {
    let server = files();
    let requests = Arc::clone(&server.requests);
    Scene { world: World::new(vec![server], rules), person: Person::nobody().into(), requests }
}

/// A hub of `files` where these patterns are denied, and all else is allowed.
fn denying(patterns: &[&str]) -> Scene {
    under(policy(patterns, &[], &["*"]))
}

fn about(kind: Kind, item: &str, arguments: &str) -> Call {
    let id = ItemId { server: server(), item: item.to_owned() };
    Call::new(Caller::operator(Front::Gateway), Target::exact(kind, id), Some(&json(arguments)))
}

async fn ask(scene: &Scene, call: Call, op: SideOp) -> Result<Json, CallError> {
    let (hub, session) = (&scene.world.hub, &scene.world.session);
    hub.begin(&call).side(session, call, op, ApprovalFrom::Memory, None).await
}

fn extension(method: &str, params: &str) -> SideOp {
    let method = ExtensionMethod::parse(method).unwrap();
    SideOp::Extension { method, params: json(params) }
}

fn notification(method: &str, params: &str) -> SideOp {
    let method = ExtensionNotification::parse(method).unwrap();
    SideOp::Notify { method, params: json(params) }
}

#[tokio::test]
async fn a_method_is_decided_on_by_its_own_name_whatever_item_the_front_names() {
    let scene = denying(&["method:acme/delete", "method:notifications/acme/gone"]);
    for (kind, item) in [
        (Kind::Tool, "harmless"),
        (Kind::Tool, "method:acme/read"),
        (Kind::Resource, "file:///harmless"),
    ] {
        for op in [extension("acme/delete", "{}"), notification("notifications/acme/gone", "{}")] {
            let refused = ask(&scene, about(kind, item, "{}"), op).await.unwrap_err();
            assert_eq!(refused.code(), ErrorCode::PolicyBlocked, "{item}: {refused}");
        }
    }
    assert_eq!(scene.served(), [""; 0]);
    let entries = scene.world.entries();
    assert!(entries.iter().all(|entry| entry.item.starts_with("method:")), "{entries:?}");

    ask(&scene, about(Kind::Tool, "drop", "{}"), extension("acme/read", "{}")).await.unwrap();
    assert_eq!(scene.served(), ["acme/read of files__method:acme/read"]);
}

#[tokio::test]
async fn the_rules_read_the_arguments_that_the_server_gets() {
    let scene = denying(&["method:acme/open:path=/etc"]);
    let op = extension("acme/open", r#"{"path":"/etc","_meta":{}}"#);
    let refused = ask(&scene, about(Kind::Tool, "x", r#"{"path":"/tmp"}"#), op).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::PolicyBlocked, "{refused}");
    let op = extension("acme/open", r#"{"path":"/tmp"}"#);
    ask(&scene, about(Kind::Tool, "x", r#"{"path":"/etc"}"#), op).await.unwrap();
}

#[tokio::test]
async fn params_that_a_server_could_read_otherwise_are_refused() {
    let reference = r#""ref":{"type":"ref/prompt","name":"read"}"#;
    let completions = [
        format!(r#"{{{reference},"Ref":{{}}}}"#),
        format!(r#"{{{reference},"argument":{{"name":"a","value":"b","Value":"c"}}}}"#),
        format!(r#"{{{reference},"context":{{"arguments":{{}},"ARGUMENTS":{{}}}}}}"#),
        r#"{"ref":{"type":"ref/prompt","name":"read","NAME":"drop"}}"#.to_owned(),
        r#"{"ref":{"type":"ref/prompt","name":"read","name":"drop"}}"#.to_owned(),
    ];
    let completions = completions.map(|params| SideOp::Complete(json(&params)));
    let extensions = [r#"{"uri":"a:1","URI":"a:2"}"#, r#"{"uri":"a:1","uri":"a:2"}"#];
    let extensions = extensions.map(|params| extension("acme/read", params));
    for op in completions.into_iter().chain(extensions) {
        let scene = denying(&[]);
        let refused = ask(&scene, about(Kind::Prompt, "read", "{}"), op.clone()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidInput, "{op:?}: {refused}");
        assert_eq!(scene.served(), [""; 0]);
        assert_eq!(scene.world.entries().len(), 1);
    }
}

#[tokio::test]
async fn a_method_about_a_resource_that_is_denied_is_refused_with_the_rule_on_the_resource() {
    let globs = |text: &str| vec![Glob::stars(text)];
    let grant = Grant {
        servers: globs("files"),
        access: AccessTo::All,
        tools: None,
        resources: Some(globs("file:///open*")),
        prompts: None,
        says: Says::Allow,
    };
    let roles = [("reader".to_owned(), vec![grant])].into();
    let table = AccessTable { default: Says::Deny, roles, ..AccessTable::default() };
    let mut denying = policy(&["method:acme/delete"], &[], &["*"]);
    denying.access = vec![Access::new(table, [(&server(), "files")])];
    let scene = under(denying);
    let caller = || Caller::remote("someone", vec!["reader".to_owned()]);
    let ask_for = async |method: &str, uri: &str| {
        let op = extension(method, &format!(r#"{{"uri":"{uri}"}}"#));
        let call = Call { caller: caller().into(), ..about(Kind::Tool, "x", "{}") };
        ask(&scene, call, op).await
    };
    ask_for("resources/directory/read", "file:///open/a").await.unwrap();
    ask_for("resources/directory/read", "file:///secret").await.unwrap_err();
    // The rule on the method comes first.
    ask_for("acme/delete", "file:///secret").await.unwrap_err();
    assert_eq!(scene.served().len(), 1);
    let entries = scene.world.entries();
    let verdicts: Vec<_> =
        entries.iter().map(|entry| (entry.verdict, entry.rule.as_deref())).collect();
    let (allow, deny) = (Some(Verdict::Allow), Some(Verdict::Deny));
    let [(first, _), (second, by_access), (third, by_permission)] = verdicts[..] else {
        panic!("{verdicts:?}");
    };
    assert_eq!((first, second, third), (allow, deny, deny), "{verdicts:?}");
    assert!(by_access.is_some_and(|rule| rule.contains("access")), "{verdicts:?}");
    assert_eq!(by_permission, Some("permissions.deny: method:acme/delete"));
}
