//! Off, and the end.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use capstan_hub::trace::{Ending, Side, Step};
use capstan_model::Kind;
use capstan_telemetry::{Settings, Telemetry};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;

use crate::sink::{Sink, told};

const STEP: Step<'static> = Step {
    side: Side::Asked,
    kind: Kind::Tool,
    item: "say",
    server: None,
    caller: None,
    protocol: None,
    context: None,
};

#[test]
fn without_an_endpoint_there_is_nothing() {
    assert!(Telemetry::start(&Settings::default()).unwrap().is_none());
}

#[test]
fn an_endpoint_that_is_none_is_refused() {
    let mut settings = Sink::new().settings();
    settings.traces.as_mut().unwrap().endpoint = "http://[".to_owned();
    assert!(Telemetry::start(&settings).is_err());
}

#[test]
fn the_service_is_called_capstan() {
    let sink = Sink::new();
    let telemetry = sink.telemetry();
    telemetry.tracer().begin(STEP).end(Ending::Answered);
    telemetry.end();
    let posts = sink.posts();
    let post = posts.iter().find(|post| post.path == "/v1/traces").unwrap();
    let request = ExportTraceServiceRequest::decode(&*post.body).unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let told = told(&resource.attributes);
    assert!(told.contains(&"service.name=capstan".to_owned()), "{told:?}");
}

#[test]
fn a_collector_that_never_answers_does_not_keep_us() {
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let mut settings = Sink::new().settings();
    for signal in [&mut settings.traces, &mut settings.metrics].into_iter().flatten() {
        signal.endpoint = format!("http://{address}/v1/x");
        signal.timeout = Duration::from_mins(1);
    }
    let telemetry = Telemetry::start(&settings).unwrap().unwrap();
    let tracer = telemetry.tracer();
    tracer.begin(STEP).end(Ending::Answered);
    let begun = Instant::now();
    telemetry.end();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    // Calls that are still under way do no harm.
    tracer.begin(STEP).end(Ending::Answered);
}
