//! Converts the steps of calls to spans and durations, with the semantic conventions for MCP.

use std::time::Instant;

use capstan_hub::trace::{self, Ending, Side, Step, TraceContext};
use capstan_model::{Kind, ServerName};
use opentelemetry::metrics::{Histogram, Meter};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, Span};

/// Maximum length of a recorded name; clients may send any name.
const MAX_NAME: usize = 128;

/// Upper bounds of the duration buckets, in seconds: those of `/metrics`.
const BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// Records spans and durations, if they are enabled.
#[derive(Clone)]
pub(crate) struct Spans {
    pub(crate) tracer: Option<SdkTracer>,
    pub(crate) durations: Option<Durations>,
}

/// Histograms of the durations of calls.
#[derive(Clone)]
pub(crate) struct Durations {
    asked: Histogram<f64>,
    asking: Histogram<f64>,
}

/// A running step.
struct Open {
    span: Option<Span>,
    duration: Option<(Histogram<f64>, Instant)>,
    labels: Vec<KeyValue>,
    ended: bool,
}

/// The received trace context, for the SDK.
struct Said<'a>(&'a TraceContext);

// === impl Durations ===

impl Durations {
    pub(crate) fn new(meter: &Meter) -> Self {
        let histogram = |name: &'static str, help: &'static str| {
            let histogram = meter.f64_histogram(name).with_description(help).with_unit("s");
            histogram.with_boundaries(BUCKETS.to_vec()).build()
        };
        Self {
            asked: histogram("mcp.server.operation.duration", "The duration of calls of clients."),
            asking: histogram(
                "mcp.client.operation.duration",
                "The duration of requests to servers.",
            ),
        }
    }
}

// === impl Spans ===

impl trace::Tracer for Spans {
    fn begin(&self, step: Step<'_>) -> Box<dyn trace::Span> {
        let span = self.tracer.as_ref().map(|tracer| start(tracer, &step));
        let duration = self.durations.as_ref().map(|durations| match step.side {
            Side::Asked => durations.asked.clone(),
            Side::Asking => durations.asking.clone(),
        });
        let duration = duration.map(|histogram| (histogram, Instant::now()));
        let mut open = Open { span, duration, labels: vec![method(step.kind)], ended: false };
        if let Some(server) = step.server {
            trace::Span::found(&mut open, server);
        }
        Box::new(open)
    }
}

fn start(tracer: &SdkTracer, step: &Step<'_>) -> Span {
    let item = shortened(step.item);
    let mut attributes = vec![method(step.kind)];
    let name = match step.kind {
        Kind::Tool => {
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            attributes.push(KeyValue::new("gen_ai.tool.name", item.clone()));
            format!("{} {item}", step.kind.method())
        }
        Kind::Prompt => {
            attributes.push(KeyValue::new("gen_ai.prompt.name", item.clone()));
            format!("{} {item}", step.kind.method())
        }
        // A URI may contain anything, so it is not recorded.
        Kind::Resource => step.kind.method().to_owned(),
    };
    if let Some(protocol) = step.protocol {
        attributes.push(KeyValue::new("mcp.protocol.version", protocol.to_owned()));
    }
    if let Some(caller) = step.caller {
        attributes.push(KeyValue::new("capstan.caller", shortened(&caller.subject)));
        for (key, said) in
            [("capstan.client", &caller.client), ("capstan.caller_id", &caller.caller_id)]
        {
            let said = said.as_deref().map(shortened);
            attributes.extend(said.map(|said| KeyValue::new(key, said)));
        }
    }
    let kind = match step.side {
        Side::Asked => SpanKind::Server,
        Side::Asking => SpanKind::Client,
    };
    let before = match step.context {
        Some(context) => {
            TraceContextPropagator::new().extract_with_context(&Context::new(), &Said(context))
        }
        None => Context::new(),
    };
    let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
    builder.start_with_context(tracer, &before)
}

fn method(kind: Kind) -> KeyValue {
    KeyValue::new("mcp.method.name", kind.method())
}

fn shortened(name: &str) -> String {
    name.chars().take(MAX_NAME).collect()
}

// === impl Open ===

impl Open {
    /// Records the end: the outcome, in the terms of `/metrics`, and the error.
    fn close(&mut self, outcome: &'static str, error: Option<&'static str>, json_rpc: Option<i64>) {
        self.ended = true;
        let error = error.map(|error| KeyValue::new("error.type", error));
        if let Some(span) = &mut self.span {
            span.set_attribute(KeyValue::new("capstan.outcome", outcome));
            if let Some(code) = json_rpc {
                span.set_attribute(KeyValue::new("rpc.response.status_code", code.to_string()));
            }
            if let Some(error) = &error {
                span.set_attribute(error.clone());
                // Texts of servers and rules may contain anything, so they are not recorded.
                span.set_status(Status::error(""));
            }
            span.end();
        }
        if let Some((histogram, begun)) = &self.duration {
            self.labels.extend(error);
            histogram.record(begun.elapsed().as_secs_f64(), &self.labels);
        }
    }
}

impl trace::Span for Open {
    fn found(&mut self, server: &ServerName) {
        let server = KeyValue::new("capstan.server", server.to_string());
        if let Some(span) = &mut self.span {
            span.set_attribute(server.clone());
        }
        self.labels.push(server);
    }

    fn context(&self) -> Option<TraceContext> {
        let context = self.span.as_ref()?.span_context();
        let (trace, span) = (context.trace_id(), context.span_id());
        let kept = if context.is_sampled() { "01" } else { "00" };
        let parent = format!("00-{trace}-{span}-{kept}");
        context.is_valid().then(|| TraceContext { parent, state: context.trace_state().header() })
    }

    fn end(mut self: Box<Self>, ending: Ending) {
        match ending {
            Ending::Answered => self.close("answered", None, None),
            Ending::ToolError => self.close("tool_error", Some("tool_error"), None),
            Ending::Failed { code, json_rpc } => {
                self.close("failed", Some(code.as_str()), json_rpc);
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.ended {
            self.close("abandoned", Some("cancelled"), None);
        }
    }
}

// === impl Said ===

impl Extractor for Said<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            trace::PARENT => Some(&self.0.parent),
            trace::STATE => {
                Some(&self.0.state).filter(|state| !state.is_empty()).map(String::as_str)
            }
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec![trace::PARENT, trace::STATE]
    }
}
