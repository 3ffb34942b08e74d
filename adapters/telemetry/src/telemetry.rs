//! Starts and stops the exporters.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use capstan_hub::trace::Tracer;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::resource::{
    EnvResourceDetector, SdkProvidedResourceDetector, TelemetryResourceDetector,
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::warn;

use crate::collector::CollectorClient;
use crate::series::Series;
use crate::settings::{Settings, Signal};
use crate::spans::{Durations, Spans};

/// The name of the instrumentation, and the default name of the service.
const NAME: &str = "capstan";

/// Time to send the remaining data at shutdown.
const FAREWELL: Duration = Duration::from_secs(2);

/// The reason why telemetry cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The settings are invalid.
    #[error("the exporter cannot be created")]
    Exporter(#[source] ExporterBuildError),
}

/// Sends traces and metrics, on its own threads.
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
    spans: Spans,
}

// === impl Telemetry ===

impl Telemetry {
    /// Starts the exporters.
    ///
    /// `None` if all are off: then nothing is created, and there is no overhead.
    pub fn start(settings: &Settings) -> Result<Option<Self>, TelemetryError> {
        if settings.is_off() {
            return Ok(None);
        }
        let resource = resource(settings);
        let traces = settings.traces.as_ref().map(|signal| traces(signal, resource.clone()));
        let metrics = settings.metrics.as_ref().map(|signal| metrics(signal, resource));
        let (traces, metrics) = (traces.transpose()?, metrics.transpose()?);
        let spans = Spans {
            tracer: traces.as_ref().map(|traces| traces.tracer(NAME)),
            durations: metrics.as_ref().map(|metrics| Durations::new(&metrics.meter(NAME))),
        };
        Ok(Some(Self { traces, metrics, spans }))
    }

    /// The tracer of calls.
    pub fn tracer(&self) -> Arc<dyn Tracer> {
        Arc::new(self.spans.clone())
    }

    /// Registers numbers to send.
    pub fn watch(&self, series: impl IntoIterator<Item = Series>) {
        if let Some(metrics) = &self.metrics {
            let meter = metrics.meter(NAME);
            series.into_iter().for_each(|series| series.register(&meter));
        }
    }

    /// Sends the remaining data, for at most two seconds.
    pub fn end(self) {
        let Self { traces, metrics, .. } = self;
        let (done, waiting) = mpsc::channel();
        let until = Instant::now() + FAREWELL;
        let traces = traces.map(|traces| move || traces.shutdown_with_timeout(FAREWELL));
        let metrics = metrics.map(|metrics| move || metrics.shutdown_with_timeout(FAREWELL));
        let count = usize::from(traces.is_some()) + usize::from(metrics.is_some());
        // Concurrently, and on threads that are abandoned if they take too long.
        if let Some(traces) = traces {
            on_its_own(traces, done.clone());
        }
        if let Some(metrics) = metrics {
            on_its_own(metrics, done);
        }
        for _ in 0..count {
            let left = until.saturating_duration_since(Instant::now());
            if waiting.recv_timeout(left).is_err() {
                warn!("the last telemetry data was not sent in time");
                return;
            }
        }
    }
}

fn on_its_own(
    end: impl FnOnce() -> OTelSdkResult + Send + 'static,
    done: mpsc::Sender<OTelSdkResult>,
) {
    // The receiver is gone after the timeout.
    let run = move || drop(done.send(end()));
    if thread::Builder::new().name("telemetry-end".to_owned()).spawn(run).is_err() {
        warn!("the last telemetry data is not sent: no thread can be started");
    }
}

/// The resource attributes. Those of the environment come later and take precedence.
fn resource(settings: &Settings) -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let ours = Resource::builder_empty().with_service_name(NAME).with_attribute(version);
    let ours = ours.with_detector(Box::new(TelemetryResourceDetector));
    let named = ours.with_detector(Box::new(EnvResourceDetector::new()));
    if settings.service_named {
        return named.with_detector(Box::new(SdkProvidedResourceDetector)).build();
    }
    named.build()
}

fn traces(signal: &Signal, resource: Resource) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(CollectorClient { timeout: signal.timeout })
        .with_endpoint(&signal.endpoint)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(signal.timeout)
        .build()
        .map_err(TelemetryError::Exporter)?;
    let provider = SdkTracerProvider::builder().with_resource(resource);
    Ok(provider.with_batch_exporter(exporter).build())
}

fn metrics(signal: &Signal, resource: Resource) -> Result<SdkMeterProvider, TelemetryError> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(CollectorClient { timeout: signal.timeout })
        .with_endpoint(&signal.endpoint)
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(signal.timeout)
        .build()
        .map_err(TelemetryError::Exporter)?;
    let provider = SdkMeterProvider::builder().with_resource(resource);
    Ok(provider.with_periodic_exporter(exporter).build())
}
