//! Traces and metrics for a collector, as the environment asks for them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use capstan_testkit::World;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use rustix::process::Signal;
use serde_json::json;

use crate::stage::{ALL, Gateway, fixture, http, modern, with};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const STEP: &str = "00f067aa0ba902b7";
const SECRET: &str = "hunter2-hunter2";

/// Something that was posted: its head and its body.
type Post = (String, Vec<u8>);

/// A collector on this machine: its address, and what is posted to it.
fn collector() -> (String, Receiver<Post>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, posts) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || take(stream, &sender));
        }
    });
    (address, posts)
}

fn take(stream: TcpStream, posts: &Sender<Post>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or_default()];
    reader.read_exact(&mut body).unwrap();
    posts.send((lower, body)).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
}

/// Calls `f__echo` through a gateway with this environment, over HTTP and in a trace, and ends it.
#[track_caller]
fn call(world: &World, variables: &[(&str, &str)]) {
    let (mut gateway, address) = Gateway::listening_with(world, variables);
    let params = modern(json!({ "name": "f__echo", "arguments": { "text": SECRET } }));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let head = format!(
        "POST /mcp HTTP/1.1\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: f__echo\r\ntraceparent: 00-{TRACE}-{STEP}-01"
    );
    let (status, body) = http(&address, &head, &call.to_string());
    assert_eq!(status, 200, "{body}");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.end(), Some(0));
}

/// A world with the server `f`, and where it writes down what it is sent.
fn world() -> World {
    let world = World::new();
    let trace = world.home().join("trace.jsonl");
    let options = ["--trace", trace.to_str().unwrap()];
    world.write_user_config(&format!("{ALL}{}", fixture("f", &options)));
    world
}

/// The place in a trace that the server was told.
fn told(world: &World) -> String {
    let trace = std::fs::read_to_string(world.home().join("trace.jsonl")).unwrap();
    let place = trace.split(&format!("00-{TRACE}-")).nth(1).unwrap_or_default();
    place.chars().take(16).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[test]
fn a_call_is_two_spans_of_the_clients_trace_and_the_counters_arrive() {
    let (endpoint, posts) = collector();
    let world = world();
    call(
        &world,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc"),
            ("OTEL_SERVICE_NAME", "my-gateway"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ],
    );
    let posts: Vec<Post> = posts.try_iter().collect();
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    for (head, body) in &posts {
        assert!(head.contains("x-key: abc"), "{head}");
        assert!(!text(body).contains(SECRET), "a secret was told");
        assert!(text(body).contains("my-gateway"), "{head}");
        assert!(text(body).contains("deployment.environment.name"), "{head}");
    }
    let traces = posts.iter().filter(|(head, _)| head.starts_with("post /v1/traces "));
    let requests = traces.map(|(_, body)| ExportTraceServiceRequest::decode(&**body).unwrap());
    let scopes = requests.flat_map(|r| r.resource_spans).flat_map(|r| r.scope_spans);
    let spans: Vec<Span> = scopes.flat_map(|scope| scope.spans).collect();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let (ours, theirs) = (named("tools/call f__echo"), named("tools/call echo"));
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!((hex(&ours.trace_id), hex(&ours.parent_span_id)), (TRACE.into(), STEP.into()));
    assert_eq!((&theirs.trace_id, &theirs.parent_span_id), (&ours.trace_id, &ours.span_id));
    assert_eq!(told(&world), hex(&theirs.span_id));
    let metrics = posts.iter().rfind(|(head, _)| head.starts_with("post /v1/metrics "));
    let metrics = text(&metrics.unwrap().1);
    for name in [
        "capstan.calls",
        "capstan.call.errors",
        "capstan.calls.in_flight",
        "capstan.sessions",
        "capstan.parked_calls",
        "capstan.servers",
        "capstan.audit.lost",
        "mcp.server.operation.duration",
        "mcp.client.operation.duration",
    ] {
        assert!(metrics.contains(name), "{name}");
    }
}

#[test]
fn nothing_is_sent_unless_it_is_asked_for_and_a_trace_is_passed_on() {
    let (endpoint, posts) = collector();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str());
    let cases: [&[(&str, &str)]; 3] = [
        &[],
        &[endpoint, ("OTEL_SDK_DISABLED", "true")],
        &[endpoint, ("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
    ];
    for variables in cases {
        let world = world();
        call(&world, variables);
        assert_eq!(posts.try_iter().count(), 0, "{variables:?}");
        assert_eq!(told(&world), STEP, "{variables:?}");
    }
    let world = world();
    call(&world, &[endpoint, ("OTEL_TRACES_SAMPLER", "always_off")]);
    let heads: Vec<String> = posts.try_iter().map(|(head, _)| head).collect();
    assert!(!heads.is_empty() && heads.iter().all(|head| head.contains("/v1/metrics")));
}

#[test]
fn an_endpoint_that_makes_no_sense_or_is_not_there_does_not_keep_it_from_serving() {
    // Nobody listens there any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for endpoint in ["http://[", &format!("http://{gone}")] {
        call(
            &with(&format!("{ALL}{}", fixture("f", &[]))),
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)],
        );
    }
}
