//! Calls as spans.

use std::sync::{Arc, Mutex};

use capstan_hub::ports::{About, BoxFuture, Connection, Item, Listing};
use capstan_hub::trace::{Ending, Side, Step, TraceContext};
use capstan_hub::{Answer, Call, Hub, HubBuilder, Message, Outgoing, Requester, System};
use capstan_model::{CallError, Caller, ErrorCode, Kind, ServerName, Target, Trust};
use capstan_testkit::fakes::{AuditTrail, FakeServer, Running, TestClock, allow_all};
use capstan_wire::{Json, compose};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use crate::sink::{Sink, spans, told};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const STEP: &str = "00f067aa0ba902b7";
const SECRET: &str = "hunter2-hunter2";

/// A server that keeps what it was sent.
struct Files {
    name: ServerName,
    result: Result<&'static str, CallError>,
    sent: Arc<Mutex<Vec<String>>>,
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn caller() -> Caller {
    let client = Some("editor".to_owned());
    Caller { client, ..Caller::remote("ann", Vec::new()) }
}

fn step<'a>(caller: &'a Caller, context: Option<&'a TraceContext>) -> Step<'a> {
    Step {
        side: Side::Asked,
        kind: Kind::Tool,
        item: "files__say",
        server: None,
        caller: Some(caller),
        protocol: Some("2025-06-18"),
        context,
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A hub of one server that is followed.
fn hub(sink: &capstan_telemetry::Telemetry, server: Files) -> Hub {
    let policy = Arc::new(allow_all([&server.name], Trust::default()).compile());
    let (log, clock) = (Arc::new(AuditTrail::default()), Arc::new(TestClock::default()));
    let mut hub = HubBuilder::new(policy, log, clock);
    hub.tracer = Some(sink.tracer());
    hub.add(Arc::new(Running(Arc::new(server))));
    hub.build()
}

/// Calls `files__say` with a secret everywhere; the spans, and what the server was sent.
async fn called(result: Result<&'static str, CallError>, meta: &str) -> (Vec<Span>, Vec<String>) {
    let sink = Sink::new();
    let telemetry = sink.telemetry();
    let sent = Arc::default();
    let name = "files".parse().unwrap();
    let hub = hub(&telemetry, Files { name, result, sent: Arc::clone(&sent) });
    let mut call = Call::new(caller(), Target::tool("files__say"), None);
    call.params = json(&format!(
        r#"{{"name":"files__say","arguments":{{"word":"{SECRET}"}},"_meta":{meta}}}"#
    ));
    drop(hub.call(&hub.session(), call, Requester::unattended()).await);
    telemetry.end();
    let posts = sink.posts();
    for post in &posts {
        assert!(!String::from_utf8_lossy(&post.body).contains(SECRET), "a secret was told");
    }
    let sent = sent.lock().unwrap().clone();
    (spans(&posts), sent)
}

#[tokio::test]
async fn a_server_is_told_the_span_of_its_call_and_the_span_its_parent() {
    let meta = format!(r#"{{"traceparent":"00-{TRACE}-{STEP}-01","tracestate":"a=b","x":1}}"#);
    let (spans, sent) = called(Ok(r#"{"content":["hunter2-hunter2"]}"#), &meta).await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(span.name, "tools/call say");
    assert_eq!(span.kind, i32::from(SpanKind::Client));
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.into(), STEP.into()));
    assert_eq!(span.trace_state, "a=b");
    assert_eq!(span.status.clone().unwrap_or_default().code, i32::from(StatusCode::Unset));
    assert_eq!(
        told(&span.attributes),
        [
            "capstan.outcome=answered",
            "capstan.server=files",
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=say",
            "mcp.method.name=tools/call",
        ]
    );
    let place = format!("00-{TRACE}-{}-01", hex(&span.span_id));
    let meta = format!(r#""_meta":{{"traceparent":"{place}","tracestate":"a=b","x":1}}"#);
    assert!(sent[0].contains(&meta), "{sent:?}");
}

#[tokio::test]
async fn a_call_without_a_trace_begins_one() {
    let (spans, sent) = called(Ok(r#"{"content":[],"isError":true}"#), "{}").await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(hex(&span.parent_span_id), "");
    let place = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
    assert!(sent[0].contains(&place), "{sent:?}");
    let told = told(&span.attributes);
    assert!(told.contains(&"error.type=tool_error".to_owned()), "{told:?}");
    assert_eq!(span.status.clone().unwrap().code, i32::from(StatusCode::Error));
}

#[tokio::test]
async fn what_a_server_says_of_its_failure_is_not_told() {
    let (server, message) = ("files".parse().unwrap(), SECRET.to_owned());
    let error = CallError::Server { server, code: -32602, message, whole: None, is_modern: true };
    let (spans, _) = called(Err(error), "{}").await;
    let [span] = &spans[..] else { panic!("{spans:?}") };
    let told = told(&span.attributes);
    for expected in ["error.type=invalid_input", "rpc.response.status_code=-32602"] {
        assert!(told.contains(&expected.to_owned()), "{told:?}");
    }
    assert_eq!(span.status.clone().unwrap().message, "");
}

#[test]
fn the_span_of_a_client_says_who_asked_for_what_and_how_it_went() {
    let sink = Sink::new();
    let telemetry = sink.telemetry();
    let (tracer, caller) = (telemetry.tracer(), caller());
    let context = TraceContext { parent: format!("00-{TRACE}-{STEP}-01"), state: String::new() };
    let mut span = tracer.begin(step(&caller, Some(&context)));
    span.found(&"files".parse().unwrap());
    span.end(Ending::Failed { code: ErrorCode::PolicyBlocked, json_rpc: None });
    drop(tracer.begin(step(&caller, None)));
    let uri = "db://host/row?token=hunter2-hunter2";
    let read = Step { kind: Kind::Resource, item: uri, ..step(&caller, None) };
    tracer.begin(read).end(Ending::Answered);
    let long = "x".repeat(4096);
    tracer.begin(Step { item: &long, ..step(&caller, None) }).end(Ending::Answered);
    telemetry.end();
    let posts = sink.posts();
    assert!(posts.iter().all(|post| post.kind == "application/x-protobuf"));
    let spans = spans(&posts);
    let [refused, dropped, read, long] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!(refused.name, "tools/call files__say");
    assert_eq!(refused.kind, i32::from(SpanKind::Server));
    assert_eq!(hex(&refused.parent_span_id), STEP);
    assert_eq!(
        told(&refused.attributes),
        [
            "capstan.caller=ann",
            "capstan.client=editor",
            "capstan.outcome=failed",
            "capstan.server=files",
            "error.type=policy_blocked",
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=files__say",
            "mcp.method.name=tools/call",
            "mcp.protocol.version=2025-06-18",
        ]
    );
    assert!(told(&dropped.attributes).contains(&"capstan.outcome=abandoned".to_owned()));
    assert_eq!(read.name, "resources/read");
    assert!(!format!("{read:?}").contains("hunter2"), "{read:?}");
    assert_eq!(long.name.len(), "tools/call ".len() + 128);
}

#[test]
fn a_trace_that_is_not_kept_stays_one() {
    let sink = Sink::new();
    let telemetry = sink.telemetry();
    let (tracer, caller) = (telemetry.tracer(), caller());
    let context = TraceContext { parent: format!("00-{TRACE}-{STEP}-00"), state: String::new() };
    let span = tracer.begin(step(&caller, Some(&context)));
    let next = span.context().unwrap().parent;
    span.end(Ending::Answered);
    telemetry.end();
    assert!(next.starts_with(&format!("00-{TRACE}-")) && next.ends_with("-00"), "{next}");
    assert_eq!(spans(&sink.posts()).len(), 0);
}

// === impl Files ===

impl FakeServer for Files {
    fn name(&self) -> &ServerName {
        &self.name
    }

    fn about(&self) -> Option<Arc<About>> {
        None
    }

    fn inform<'a>(&'a self, _: &'a System) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async { Ok(()) })
    }
}

impl Connection for Files {
    fn listed(&self, _: Listing) -> Option<Arc<[Item]>> {
        None
    }

    fn list(self: Arc<Self>, _: Listing) -> BoxFuture<'static, Result<Arc<[Item]>, CallError>> {
        let definition = compose::object(&[("name", &compose::string("say"))]);
        Box::pin(async { Ok([Item { name: "say".to_owned(), definition }].into()) })
    }

    fn send<'a>(&'a self, outgoing: Outgoing<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        if let Message::Call(ticket, _) = outgoing.message() {
            self.sent.lock().unwrap().push(ticket.params().to_string());
        }
        Box::pin(async { self.result.clone().map(|text| Answer::Whole(json(text))) })
    }
}
