//! Sends traces and metrics to a collector, if the environment names one.

use std::sync::{Arc, Weak};

use capstan_app::Environment;
use capstan_gateway::{Gateway, Readings};
use capstan_hub::trace::Tracer;
use capstan_telemetry::{Point, Series, Settings, Sort};
use tracing::error;

/// Telemetry; `None` if it is switched off.
pub(crate) struct Telemetry(Option<capstan_telemetry::Telemetry>);

// === impl Telemetry ===

impl Telemetry {
    /// Reads the settings. Errors in them are logged and do not stop the gateway.
    pub(crate) fn start(environment: &Environment) -> Self {
        let settings = Settings::read(&|name| environment.variable(name));
        let telemetry = capstan_telemetry::Telemetry::start(&settings).unwrap_or_else(|failed| {
            let failed = anyhow::Error::new(failed);
            error!("no telemetry is sent: {failed:#}");
            None
        });
        Self(telemetry)
    }

    /// The tracer for calls, if tracing is switched on.
    pub(crate) fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        self.0.as_ref().map(capstan_telemetry::Telemetry::tracer)
    }

    /// Sends the gateway's counters periodically.
    pub(crate) fn count(&self, gateway: &Arc<Gateway>) {
        if let Some(telemetry) = &self.0 {
            telemetry.watch(all_series(gateway));
        }
    }

    /// Sends the remaining data, for at most two seconds.
    pub(crate) fn end(self) {
        if let Some(telemetry) = self.0 {
            telemetry.end();
        }
    }
}

/// The metrics of `/metrics`, with OpenTelemetry names.
fn all_series(gateway: &Arc<Gateway>) -> [Series; 7] {
    use Sort::{Counter, Gauge};
    let series = |name, help, unit, sort, points: fn(&Readings) -> Vec<Point>| {
        let gateway = Arc::downgrade(gateway);
        let read = move || {
            let readings = Weak::upgrade(&gateway).map(|gateway| gateway.readings());
            readings.as_ref().map(points).unwrap_or_default()
        };
        Series { name, help, unit, sort, read: Arc::new(read) }
    };
    [
        series("capstan.calls", "Finished calls, by outcome.", "{call}", Counter, |now| {
            labelled("outcome", now.calls)
        }),
        series("capstan.call.errors", "Failed calls, by code.", "{call}", Counter, |now| {
            labelled("code", now.errors)
        }),
        series("capstan.calls.in_flight", "Running calls.", "{call}", Gauge, |now| {
            plain(now.in_flight)
        }),
        series("capstan.sessions", "Connected clients.", "{session}", Gauge, |now| {
            plain(now.sessions)
        }),
        series(
            "capstan.parked_calls",
            "Calls that wait for an answer of their client.",
            "{call}",
            Gauge,
            |now| plain(now.parked),
        ),
        series("capstan.servers", "Servers, by state.", "{server}", Gauge, |now| {
            labelled("state", now.servers.clone())
        }),
        series(
            "capstan.audit.lost",
            "Entries that could not be written to the audit log.",
            "{entry}",
            Counter,
            |now| plain(now.audit_lost),
        ),
    ]
}

fn labelled(
    label: &'static str,
    values: impl IntoIterator<Item = (&'static str, u64)>,
) -> Vec<Point> {
    let point = |(word, value)| Point { label: Some((label, word)), value };
    values.into_iter().map(point).collect()
}

fn plain(value: u64) -> Vec<Point> {
    vec![Point { label: None, value }]
}
