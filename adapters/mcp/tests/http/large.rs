//! Large answers, which are handed on while they come.

use std::future::poll_fn;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use capstan_hub::ports::{Ask, BoxFuture, ClientSide, Notice, Unanswered, Wishes};
use capstan_hub::{Call, Delivery, Entry, HubBuilder, Outcome, Requester, Streaming};
use capstan_model::{CallError, Caller, ErrorCode, Front, Target};
use capstan_wire::Json;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::peer::{Answer, Peer, Seen, Step};
use crate::scene::{Scene, legacy, modern, settings};

/// What is waited for before an answer counts as large.
const LARGE: usize = 64 * 1024;

/// Somebody who takes a large answer while it comes.
struct Taker;

impl ClientSide for Taker {
    fn ask(&self, _: Ask) -> BoxFuture<'_, Result<Json, Unanswered>> {
        unreachable!()
    }

    fn notice(&self, _: Notice) {}

    fn capabilities(&self) -> Option<Json> {
        None
    }

    fn outlives_answer(&self) -> bool {
        false
    }

    fn wishes(&self) -> Wishes {
        Wishes { progress: false, input_required: true, flow: true, level: None }
    }
}

/// A result of that size with all that is hard about JSON in it, over and over.
fn hard(size: usize) -> String {
    let block =
        r#"{"type":"text","text":"é😀日本\"\\\n\u0000\/ x","n":[-0.5, 1e300,12345678901]},"#;
    let blocks = block.repeat(size / block.len() + 1);
    format!(r#"{{"content":[{blocks}0],"structuredContent":{{"a":[true,null]}},"isError":true}}"#)
}

fn reply(seen: &Seen, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, seen.body.get("id").unwrap())
}

/// A server whose calls are answered so; everything else as a legacy server does.
async fn answering(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> (Peer, Scene) {
    let script = move |seen: &Seen| match seen.method() {
        "tools/call" => answer(seen),
        _ => legacy(seen),
    };
    let peer = Peer::new(script).await;
    let scene = Scene::new(&peer);
    (peer, scene)
}

/// An answer in pieces of that many bytes.
fn in_pieces(text: &str, step: usize) -> Answer {
    let answer = Answer::status(200).with("content-type", "application/json");
    text.as_bytes()
        .chunks(step)
        .fold(answer, |answer, piece| answer.then(Step::Raw(piece.to_vec())))
}

async fn deliver(scene: &Scene, tool: &str) -> Result<Delivery, CallError> {
    let target = Target::tool(format!("s__{tool}"));
    let call = Call::new(Caller::operator(Front::Cli), target, None);
    let requester = Requester { client: Arc::new(Taker), ..Requester::unattended() };
    scene.hub.deliver(&scene.hub.session(), call, requester).await
}

async fn coming(scene: &Scene, tool: &str) -> Streaming {
    let delivery = deliver(scene, tool).await.unwrap();
    let streaming =
        if let Delivery::Streaming(streaming) = delivery { Some(*streaming) } else { None };
    streaming.unwrap()
}

async fn next(streaming: &mut Streaming) -> Result<Option<Bytes>, CallError> {
    poll_fn(|cx| streaming.poll_next(cx)).await
}

/// What comes of an answer before it ends, and how it does.
async fn drain(streaming: &mut Streaming) -> (Vec<u8>, Result<(), CallError>) {
    let mut text = Vec::new();
    loop {
        match next(streaming).await {
            Ok(Some(piece)) => text.extend_from_slice(&piece),
            Ok(None) => return (text, Ok(())),
            Err(error) => return (text, Err(error)),
        }
    }
}

/// Waits for the entry of the only call.
async fn entry(scene: &Scene) -> Entry {
    let mut entries = scene.log.subscribe();
    let entries = entries.wait_for(|entries| !entries.is_empty());
    let entries = tokio::time::timeout(Duration::from_secs(20), entries).await.unwrap().unwrap();
    assert_eq!(entries.len(), 1);
    entries.first().unwrap().clone()
}

/// Checks that an answer breaks with this error once it has begun, and is written down so.
async fn check_breaks(scene: &Scene, code: ErrorCode, words: &str) {
    let mut streaming = coming(scene, "do").await;
    let (text, end) = drain(&mut streaming).await;
    let error = end.unwrap_err();
    assert!(!text.is_empty());
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(error.code(), code);
    let entry = entry(scene).await;
    assert_eq!((entry.outcome, entry.answer_bytes), (Outcome::Failed(code), text.len()));
}

#[tokio::test]
async fn a_large_answer_is_the_same_however_it_comes() {
    for (size, step) in [(1 << 20, 1021), (5 << 20, 65_537), (70_000, 97), (1 << 20, 1 << 20)] {
        let result = hard(size);
        let its = result.clone();
        let (_peer, scene) = answering(move |seen| in_pieces(&reply(seen, &its), step)).await;
        let mut streaming = coming(&scene, "do").await;
        let (mut text, end) = drain(&mut streaming).await;
        end.unwrap();
        text.push(b'}');
        assert!(text == result.as_bytes(), "{size} in pieces of {step}");
        assert!(streaming.shape().is_error);
        let entry = entry(&scene).await;
        assert_eq!((entry.outcome, entry.answer_bytes), (Outcome::ToolError, text.len()));
    }
}

#[tokio::test]
async fn a_packed_answer_is_handed_on_unpacked() {
    let result = hard(1 << 20);
    let its = result.clone();
    let (_peer, scene) = answering(move |seen| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(reply(seen, &its).as_bytes()).unwrap();
        let answer = Answer::status(200).with("content-type", "application/json");
        answer.with("content-encoding", "gzip").then(Step::Raw(packer.finish().unwrap()))
    })
    .await;
    let (text, end) = drain(&mut coming(&scene, "do").await).await;
    end.unwrap();
    assert!(text == result.as_bytes()[..text.len()]);
    assert_eq!(text.len() + 1, result.len());
}

#[tokio::test]
async fn a_connection_is_used_again_behind_a_large_answer() {
    let (peer, scene) = answering(|seen| in_pieces(&reply(seen, &hard(1 << 20)), 10_000)).await;
    for _ in 0..3 {
        drain(&mut coming(&scene, "do").await).await.1.unwrap();
    }
    let calls = peer.of("tools/call");
    assert!(calls.iter().all(|call| call.connection == calls[0].connection));
}

#[tokio::test]
async fn what_is_small_or_must_be_seen_as_a_whole_comes_whole() {
    for (at, form) in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#,
        r#"{"result":{"content":"LARGE"},"jsonrpc":"2.0","id":ID}"#,
        r#"{"id":ID,"result":{"content":"LARGE"},"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"task","taskId":"t","x":"LARGE"}}"#,
        // Who adds a member to it has to know whether there is one.
        r#"{"jsonrpc":"2.0","id":ID,"result":{         },"x":"LARGE"}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let (_peer, scene) = answering(move |seen| {
            let text = form.replace("LARGE", &"y".repeat(2 * LARGE));
            in_pieces(&text.replace("ID", &seen.body["id"].to_string()), 9999)
        })
        .await;
        let delivery = deliver(&scene, "do").await.unwrap();
        assert!(matches!(delivery, Delivery::Whole(_)), "{at}");
        assert!(entry(&scene).await.answer_bytes > 10, "{at}");
    }
    // Who wants it whole gets it whole.
    let (_peer, scene) = answering(|seen| in_pieces(&reply(seen, &hard(1 << 20)), 9999)).await;
    assert!(scene.call("do", json!({})).await.unwrap().starts_with('é'));
}

#[tokio::test]
async fn an_error_is_one_however_large_it_is() {
    let data = json!("y".repeat(2 * LARGE));
    let (_peer, scene) = answering(move |seen| in_pieces(&seen.error(-32000, &data), 9999)).await;
    assert!(matches!(deliver(&scene, "do").await, Err(CallError::Server { code: -32000, .. })));
}

#[tokio::test]
async fn an_answer_that_turns_out_too_large_breaks_off() {
    let (_peer, mut scene) = answering(|seen| in_pieces(&reply(seen, &hard(1 << 20)), 9999)).await;
    let mut hub = HubBuilder::after(&scene.hub);
    let kept = scene.hub.servers().all(|name| hub.keep(&scene.hub, name));
    assert!(kept);
    hub.limits.max_answer = 700_000;
    scene.0.hub = Arc::new(hub.build());
    check_breaks(&scene, ErrorCode::ServerError, "the limit is 700000").await;
}

#[tokio::test]
async fn an_answer_that_turns_out_to_be_none_breaks_off() {
    let broken: [(&str, &str); 6] = [
        ("\"content\":[],}}", "not JSON"),
        ("\"content\":[}]}}", "not JSON"),
        ("\"content\":[]}", "ends too early"),
        ("\"content\":[]}} {}", "not JSON"),
        ("\"content\":[]},\"id\":7}", "given twice"),
        ("\"resultType\":\"input_required\"}}", "turned out to be an error"),
    ];
    let endless = format!("\"content\":[]}},\"x\":\"{}\"}}", "y".repeat(8 * LARGE));
    let endless: &str = Box::leak(endless.into_boxed_str());
    for (end, words) in broken.into_iter().chain([(endless, "are too large")]) {
        let (_peer, scene) = answering(move |seen| {
            let large = "y".repeat(4 * LARGE);
            let id = &seen.body["id"];
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":"{large}",{end}"#);
            in_pieces(&text, LARGE)
        })
        .await;
        check_breaks(&scene, ErrorCode::ServerError, words).await;
    }
}

#[tokio::test]
async fn a_server_that_goes_away_in_the_middle_breaks_its_answer_off() {
    for (tool, code) in [("do", ErrorCode::OutcomeUnknown), ("look", ErrorCode::Transient)] {
        let (_peer, scene) = answering(|seen| {
            let text = reply(seen, &hard(1 << 20));
            let half = text.as_bytes()[..text.len() / 2].to_vec();
            Answer::status(200)
                .with("content-type", "application/json")
                .then(Step::Raw(half))
                .then(Step::Cut)
        })
        .await;
        let mut streaming = coming(&scene, tool).await;
        let (text, end) = drain(&mut streaming).await;
        assert_eq!(end.unwrap_err().code(), code);
        let entry = entry(&scene).await;
        assert_eq!((entry.outcome, entry.answer_bytes), (Outcome::Failed(code), text.len()));
    }
}

fn stuck(seen: &Seen) -> Answer {
    let text = reply(seen, &hard(1 << 20));
    let half = text.as_bytes().get(..text.len() / 2).unwrap().to_vec();
    let answer = Answer::status(200).with("content-type", "application/json");
    answer.then(Step::Raw(half)).then(Step::Hold)
}

#[tokio::test]
async fn a_server_that_says_no_more_is_not_waited_for() {
    let peer = Peer::new(|seen: &Seen| match seen.method() {
        "tools/call" => stuck(seen),
        _ => legacy(seen),
    })
    .await;
    let mut its = settings(&format!("{}/mcp", peer.origin));
    its.timeout = Duration::from_secs(3);
    let scene = Scene::of(its);
    let mut streaming = coming(&scene, "look").await;
    let (_, end) = drain(&mut streaming).await;
    assert!(matches!(end, Err(CallError::TimedOut { .. })), "{end:?}");
    drop(streaming);
    peer.receives("notifications/cancelled", 1).await;
}

#[tokio::test]
async fn a_server_hears_that_nobody_waits_for_the_rest() {
    let (peer, scene) = answering(stuck).await;
    let mut streaming = coming(&scene, "do").await;
    let first = next(&mut streaming).await.unwrap().unwrap();
    drop(streaming);
    let cancelled = peer.receives("notifications/cancelled", 1).await;
    let call = peer.of("tools/call").remove(0);
    assert_eq!(cancelled[0].body["params"]["requestId"], call.body["id"]);
    let entry = entry(&scene).await;
    assert_eq!((entry.outcome, entry.answer_bytes), (Outcome::Abandoned, first.len()));
}

#[tokio::test]
async fn a_modern_server_is_heard_as_it_answers_by_who_takes_that() {
    let peer = Peer::new(|seen: &Seen| match seen.method() {
        "tools/call" => in_pieces(&reply(seen, &hard(1 << 20)), 10_000),
        _ => modern(seen),
    })
    .await;
    let scene = Scene::new(&peer);
    drain(&mut coming(&scene, "do").await).await.1.unwrap();
}
