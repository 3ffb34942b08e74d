//! Counters and durations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use capstan_hub::trace::{Ending, Side, Step};
use capstan_model::{ErrorCode, Kind};
use capstan_telemetry::{Point, Series, Sort};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};

use crate::sink::{Sink, metrics, told};

fn named<'a>(metrics: &'a [Metric], name: &str) -> &'a Metric {
    metrics.iter().find(|metric| metric.name == name).unwrap()
}

fn values(points: &[NumberDataPoint]) -> Vec<String> {
    let value = |point: &NumberDataPoint| match point.value {
        Some(Value::AsInt(value)) => format!("{} {value}", told(&point.attributes).join(",")),
        other => format!("{other:?}"),
    };
    let mut values: Vec<String> = points.iter().map(value).collect();
    values.sort();
    values
}

#[test]
fn numbers_are_read_when_they_are_sent() {
    let sink = Sink::new();
    let telemetry = sink.telemetry();
    let count = Arc::new(AtomicU64::new(1));
    let counted = Arc::clone(&count);
    let point = |label, value| Point { label, value };
    telemetry.watch([
        Series {
            name: "capstan.calls",
            help: "Calls.",
            unit: "{call}",
            sort: Sort::Counter,
            read: Arc::new(move || {
                let value = counted.load(Ordering::Relaxed);
                vec![
                    point(Some(("outcome", "answered")), value),
                    point(Some(("outcome", "failed")), 0),
                ]
            }),
        },
        Series {
            name: "capstan.sessions",
            help: "Sessions.",
            unit: "{session}",
            sort: Sort::Gauge,
            read: Arc::new(move || vec![point(None, 7)]),
        },
    ]);
    count.store(41, Ordering::Relaxed);
    telemetry.end();
    let metrics = metrics(&sink.posts());
    let Some(Data::Sum(sum)) = &named(&metrics, "capstan.calls").data else { panic!() };
    assert!(sum.is_monotonic);
    assert_eq!(values(&sum.data_points), ["outcome=answered 41", "outcome=failed 0"]);
    let Some(Data::Gauge(gauge)) = &named(&metrics, "capstan.sessions").data else { panic!() };
    assert_eq!(values(&gauge.data_points), [" 7"]);
}

#[test]
fn durations_are_told_by_side_and_outcome_even_without_traces() {
    let sink = Sink::new();
    let mut settings = sink.settings();
    settings.traces = None;
    let telemetry = capstan_telemetry::Telemetry::start(&settings).unwrap().unwrap();
    let tracer = telemetry.tracer();
    let server = "files".parse().unwrap();
    let step = Step {
        side: Side::Asking,
        kind: Kind::Tool,
        item: "say",
        server: Some(&server),
        caller: None,
        protocol: None,
        context: None,
    };
    let span = tracer.begin(step);
    // Who does not trace passes on what it was told.
    assert_eq!(span.context(), None);
    span.end(Ending::Failed { code: ErrorCode::Transient, json_rpc: None });
    tracer.begin(Step { side: Side::Asked, ..step }).end(Ending::Answered);
    telemetry.end();
    let posts = sink.posts();
    assert!(posts.iter().all(|post| post.path == "/v1/metrics"));
    let metrics = metrics(&posts);
    for (name, labels) in [
        (
            "mcp.client.operation.duration",
            "capstan.server=files,error.type=transient,mcp.method.name=tools/call",
        ),
        ("mcp.server.operation.duration", "capstan.server=files,mcp.method.name=tools/call"),
    ] {
        let metric = named(&metrics, name);
        assert_eq!(metric.unit, "s");
        let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        let [point] = &histogram.data_points[..] else { panic!("{histogram:?}") };
        assert_eq!(told(&point.attributes).join(","), labels);
        assert_eq!((point.count, point.explicit_bounds.len()), (1, 10));
    }
}
