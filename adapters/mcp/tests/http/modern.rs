//! Streamable HTTP without a handshake.

use std::sync::Arc;

use capstan_hub::ports::Backend;
use capstan_hub::{ApprovalFrom, Call, ExtensionMethod, ExtensionNotification, SideOp};
use capstan_mcp::{Era, HttpSettings};
use capstan_model::{CallError, Caller, ErrorCode, Front, ItemId, Kind, Target};
use capstan_wire::Json;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::peer::{Answer, Peer, Seen, Step};
use crate::scene::{Scene, modern, settings};

#[tokio::test]
async fn a_modern_server_gets_its_headers_with_every_request_and_no_session() {
    let peer = Peer::new(|seen| modern(seen).with("mcp-session-id", "ignored")).await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    assert_eq!(scene.about().await.unwrap().protocol, "2026-07-28");
    scene.server.close().await;
    for seen in peer.seen() {
        assert_eq!(seen.verb, "POST");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(seen.method()));
        assert_eq!(seen.header("mcp-session-id"), None);
        let meta = &seen.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    }
    let methods: Vec<String> = peer.seen().iter().map(|seen| seen.method().to_owned()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    assert_eq!(peer.of("tools/call")[0].header("mcp-name"), Some("do"));
    assert_eq!(peer.of("tools/list")[0].header("mcp-name"), None);
}

fn with_tools(definitions: Value) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    move |seen| match seen.method() {
        "tools/list" => Answer::json(seen.result(&json!({"tools": definitions}))),
        _ => modern(seen),
    }
}

#[tokio::test]
async fn arguments_are_repeated_in_headers_where_the_schema_says_so() {
    let properties = json!({"region": {"type": "string", "x-mcp-header": "Region"},
        "n": {"type": "integer", "x-mcp-header": "N"}, "plain": {"type": "string"}});
    let peer = Peer::new(with_tools(
        json!([{"name": "größe", "inputSchema": {"type": "object", "properties": properties}}]),
    ))
    .await;
    let scene = Scene::new(&peer);
    scene.call("größe", json!({"region": "Zürich", "n": 7, "plain": "x"})).await.unwrap();
    let seen = peer.of("tools/call").remove(0);
    assert_eq!(seen.header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(seen.header("mcp-param-region"), Some("=?base64?WsO8cmljaA==?="));
    assert_eq!(seen.header("mcp-param-n"), Some("7"));
    assert_eq!(seen.header("mcp-param-plain"), None);
}

#[tokio::test]
async fn a_tool_with_an_impossible_header_is_left_out_and_the_others_stay() {
    let bad =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}});
    let good =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
    let peer = Peer::new(with_tools(
        json!([{"name": "bad", "inputSchema": bad}, {"name": "good", "inputSchema": good}]),
    ))
    .await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.tools().await.unwrap(), ["good"]);
    assert!(scene.call("bad", json!({"a": "x"})).await.unwrap_err().starts_with("not_found"));
    assert!(peer.of("tools/call").is_empty());
}

#[tokio::test]
async fn a_tool_whose_headers_have_changed_is_decided_on_again_before_it_runs() {
    let annotated =
        json!({"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}});
    let peer = Peer::new(move |seen| match seen.method() {
        "tools/list" if seen.before > 0 => {
            Answer::json(seen.result(&json!({"tools": [{"name": "do", "inputSchema": annotated}]})))
        }
        "tools/call" if seen.header("mcp-param-a").is_none() => {
            Answer::json(seen.error(-32020, &Value::Null)).coded(400)
        }
        _ => modern(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    // The old verdict was about another definition.
    let refused = scene.call("do", json!({"a": "x"})).await.unwrap_err();
    assert!(refused.contains("changed after the decision"), "{refused}");
    assert_eq!(peer.of("tools/call").len(), 1);
    assert_eq!(scene.call("do", json!({"a": "x"})).await.unwrap(), "done");
    assert_eq!(peer.of("tools/call").len(), 2);
}

#[tokio::test]
async fn headers_that_are_refused_once_are_sent_once_more_for_the_same_definition() {
    for (refusals, done) in [(1, true), (9, false)] {
        let peer = Peer::new(move |seen| match seen.method() {
            "tools/call" if seen.before < refusals => {
                Answer::json(seen.error(-32020, &Value::Null)).coded(400)
            }
            _ => modern(seen),
        })
        .await;
        assert_eq!(Scene::new(&peer).call("do", json!({"a": "x"})).await.is_ok(), done);
        assert_eq!(peer.of("tools/call").len(), 2);
    }
}

#[tokio::test]
async fn a_server_that_objects_to_the_revision_is_asked_with_one_it_knows() {
    // Modern after all, legacy after all, and neither.
    for (supported, expected) in [
        (json!(["2026-07-28"]), Ok("2026-07-28")),
        (json!(["2025-11-25"]), Ok("2025-11-25")),
        (json!(["2030-01-01"]), Err("2030-01-01")),
    ] {
        let peer = Peer::new(move |seen| match seen.method() {
            "server/discover" if seen.before == 0 => {
                Answer::json(seen.error(-32022, &json!({"supported": supported}))).coded(400)
            }
            "initialize" => crate::scene::legacy(seen),
            _ => modern(seen),
        })
        .await;
        let about = Scene::new(&peer).about().await;
        match expected {
            Ok(revision) => assert_eq!(about.unwrap().protocol, revision),
            Err(part) => assert!(about.unwrap_err().to_string().contains(part)),
        }
    }
}

#[tokio::test]
async fn a_server_pinned_to_the_modern_era_is_never_asked_for_a_handshake() {
    let peer = Peer::new(crate::scene::legacy).await;
    let url = format!("{}/mcp", peer.origin);
    let scene = Scene::of(HttpSettings { era: Era::Modern, ..settings(&url) });
    assert!(scene.tools().await.unwrap_err().to_string().contains("does not speak 2026-07-28"));
    assert!(peer.of("initialize").is_empty());
}

#[tokio::test]
async fn closing_the_stream_is_the_cancellation() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => Answer::events(vec![Step::Hold]),
        _ => modern(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    scene.tools().await.unwrap();
    tokio::select! {
        result = scene.call("do", json!({})) => panic!("{result:?}"),
        _ = peer.receives("tools/call", 1) => {}
    }
    // Anything further that is told would come before this.
    assert_eq!(scene.tools().await.unwrap(), ["do", "look"]);
    scene.server.close().await;
    assert!(peer.of("notifications/cancelled").is_empty());
}

#[tokio::test]
async fn a_subscription_tells_of_changes_and_is_renewed_when_its_stream_ends() {
    let (first, second) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (go_first, go_second) = (Arc::clone(&first), Arc::clone(&second));
    let peer = Peer::new(move |seen| match seen.method() {
        "server/discover" => Answer::json(seen.result(&json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}}}))),
        "subscriptions/listen" => {
            let meta =
                json!({"_meta": {"io.modelcontextprotocol/subscriptionId": seen.body["id"]}});
            let say = |method: &str| {
                let params = &meta;
                Step::event(
                    &json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string(),
                )
            };
            let hello = Step::Send("retry: 1\n".to_owned());
            let ack = say("notifications/subscriptions/acknowledged");
            let changed = say("notifications/tools/list_changed");
            if seen.before == 0 {
                Answer::events(vec![
                    hello,
                    ack,
                    Step::Until(Arc::clone(&go_first)),
                    changed,
                    Step::Cut,
                ])
            } else {
                Answer::events(vec![
                    hello,
                    ack,
                    Step::Until(Arc::clone(&go_second)),
                    changed,
                    Step::Hold,
                ])
            }
        }
        "tools/list" => {
            let name = format!("tool{}", seen.before);
            Answer::json(seen.result(&json!({"tools": [{"name": name, "inputSchema": {}}]})))
        }
        _ => modern(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.tools().await.unwrap(), ["tool0"]);
    let listen = peer.receives("subscriptions/listen", 1).await.remove(0);
    assert_eq!(listen.body["params"]["notifications"], json!({"toolsListChanged": true}));
    first.notify_one();
    peer.receives("subscriptions/listen", 2).await;
    while scene.tools().await.unwrap() == ["tool0"] {
        tokio::task::yield_now().await;
    }
    let now = scene.tools().await.unwrap();
    second.notify_one();
    while scene.tools().await.unwrap() == now {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_input_is_asked_again_with_it_and_its_state() {
    let peer = Peer::new(|seen| {
        if seen.method() == "tools/call" && seen.before == 0 {
            let question = json!({"method": "elicitation/create",
                "params": {"message": "sure?", "requestedSchema": {"type": "object"}}});
            return Answer::json(seen.result(&json!({"resultType": "input_required",
                "inputRequests": {"q": question}, "requestState": "opaque"})));
        }
        modern(seen)
    })
    .await;
    let scene = Scene::new(&peer);
    assert_eq!(scene.call("do", json!({})).await.unwrap(), "done");
    let again = peer.of("tools/call").remove(1);
    assert_eq!(again.body["params"]["requestState"], "opaque");
    assert_eq!(again.body["params"]["inputResponses"]["q"], json!({"action": "decline"}));
    assert_eq!(again.header("mcp-name"), Some("do"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_not_taken_up_again() {
    let peer = Peer::new(|seen| match seen.method() {
        "tools/call" => {
            Answer::events(vec![Step::Send("id: 1\nretry: 1\ndata:\n\n".into()), Step::Cut])
        }
        _ => modern(seen),
    })
    .await;
    let error = Scene::new(&peer).call("do", json!({})).await.unwrap_err();
    assert!(error.starts_with("outcome_unknown"), "{error}");
    assert!(peer.of("GET").is_empty());
    assert_eq!(peer.of("tools/call").len(), 1);
}

/// Sends a request of an extension to the server.
async fn extension(scene: &Scene, op: SideOp) -> Result<Json, CallError> {
    let id = ItemId { server: scene.server.name().clone(), item: op.own_item().unwrap() };
    let call = Call::new(Caller::operator(Front::Cli), Target::exact(Kind::Tool, id), None);
    let session = scene.hub.session();
    scene.hub.begin(&call).side(&session, call, op, ApprovalFrom::Memory, None).await
}

#[tokio::test]
async fn a_method_of_an_extension_that_is_lost_may_have_run_unless_it_only_reads() {
    let peer = Peer::new(|seen| match seen.method() {
        "acme/write" | "skills/list" => Answer::status(200).then(Step::Cut),
        _ => modern(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    for (method, code, retryable) in [
        ("acme/write", ErrorCode::OutcomeUnknown, false),
        ("skills/list", ErrorCode::Transient, true),
    ] {
        let method = ExtensionMethod::parse(method).unwrap();
        let op = SideOp::Extension { method, params: Json::empty_object() };
        let error = extension(&scene, op).await.unwrap_err();
        assert_eq!((error.code(), error.retryable()), (code, retryable), "{error}");
    }
}

#[tokio::test]
async fn a_notification_that_a_modern_server_does_not_take_fails() {
    let peer = Peer::new(modern).await;
    let scene = Scene::new(&peer);
    let method = ExtensionNotification::parse("notifications/acme/changed").unwrap();
    let op = SideOp::Notify { method, params: Json::empty_object() };
    let error = extension(&scene, op).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound, "{error}");
    assert!(peer.of("notifications/acme/changed").is_empty());
}
