//! Metrics, as numbers and as text for Prometheus.

pub(crate) mod server_health;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use capstan_hub::Hub;
use capstan_hub::trace::Ending;
use capstan_model::{ErrorCode, ServerName};

/// Upper bounds of the latency histogram's buckets, in seconds.
const BUCKETS: [(f64, Duration); 10] = [
    (0.001, Duration::from_millis(1)),
    (0.005, Duration::from_millis(5)),
    (0.01, Duration::from_millis(10)),
    (0.05, Duration::from_millis(50)),
    (0.1, Duration::from_millis(100)),
    (0.5, Duration::from_millis(500)),
    (1.0, Duration::from_secs(1)),
    (5.0, Duration::from_secs(5)),
    (30.0, Duration::from_secs(30)),
    (120.0, Duration::from_mins(2)),
];

/// The error codes of failed calls.
const CODES: [ErrorCode; 9] = [
    ErrorCode::Transient,
    ErrorCode::RateLimited,
    ErrorCode::ServerError,
    ErrorCode::InvalidInput,
    ErrorCode::AuthFailure,
    ErrorCode::NotFound,
    ErrorCode::PolicyBlocked,
    ErrorCode::QuotaBlocked,
    ErrorCode::OutcomeUnknown,
];

/// The metrics at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// Finished calls, by outcome.
    pub calls: [(&'static str, u64); 4],
    /// Failed calls, by error code.
    pub errors: [(&'static str, u64); 9],
    /// Running calls.
    pub in_flight: u64,
    /// Connected clients.
    pub sessions: u64,
    /// Parked calls: they wait for their client's answer.
    pub parked: u64,
    /// Servers, by state.
    pub servers: BTreeMap<&'static str, u64>,
    /// Entries that could not be written to the audit log.
    pub audit_lost: u64,
}

/// Lock-free counters of calls.
#[derive(Default)]
pub(crate) struct Metrics {
    in_flight: std::sync::Arc<AtomicUsize>,
    counts: std::sync::Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    tool_errors: AtomicU64,
    abandoned: AtomicU64,
    failed: [AtomicU64; CODES.len()],
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

/// Counts and times a running call; dropped before its end, the call counts as abandoned.
pub(crate) struct CallTimer {
    in_flight: std::sync::Arc<AtomicUsize>,
    counts: std::sync::Arc<Counts>,
    begun: Instant,
    ended: bool,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn begin(&self) -> CallTimer {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        CallTimer {
            in_flight: std::sync::Arc::clone(&self.in_flight),
            counts: std::sync::Arc::clone(&self.counts),
            begun: Instant::now(),
            ended: false,
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Reads the counters. Only servers that `shows` lets through are counted.
    pub(crate) fn read(
        &self,
        hub: &Hub,
        shows: &dyn Fn(&ServerName) -> bool,
        sessions: usize,
        parked: usize,
    ) -> Readings {
        let counts = &self.counts;
        let mut errors = CODES.map(|code| (code.as_str(), 0));
        for ((_, value), count) in errors.iter_mut().zip(&counts.failed) {
            *value = get(count);
        }
        let mut servers = BTreeMap::new();
        for state in hub.servers().filter(|name| shows(name)).filter_map(|name| hub.state(name)) {
            *servers.entry(state.name().as_str()).or_default() += 1;
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Readings {
            calls: [
                ("answered", get(&counts.answered)),
                ("tool_error", get(&counts.tool_errors)),
                ("abandoned", get(&counts.abandoned)),
                ("failed", errors.iter().map(|(_, count)| count).sum()),
            ],
            errors,
            in_flight: number(self.in_flight()),
            sessions: number(sessions),
            parked: number(parked),
            servers,
            audit_lost: hub.lost_entries(),
        }
    }

    pub(crate) fn text(&self, readings: &Readings) -> String {
        let mut text = Text::default();
        text.head("capstan_calls_total", "counter", "Finished calls, by outcome.");
        for (outcome, count) in readings.calls {
            text.line("capstan_calls_total", &format!("{{outcome=\"{outcome}\"}}"), count);
        }
        text.head("capstan_call_errors_total", "counter", "Failed calls, by code.");
        for (code, count) in readings.errors {
            text.line("capstan_call_errors_total", &format!("{{code=\"{code}\"}}"), count);
        }
        self.durations(&mut text);
        text.head("capstan_calls_in_flight", "gauge", "Running calls.");
        text.line("capstan_calls_in_flight", "", readings.in_flight);
        text.head("capstan_sessions", "gauge", "Connected clients.");
        text.line("capstan_sessions", "", readings.sessions);
        text.head(
            "capstan_parked_calls",
            "gauge",
            "Calls that wait for an answer of their client.",
        );
        text.line("capstan_parked_calls", "", readings.parked);
        text.head("capstan_servers", "gauge", "Servers, by state.");
        for (state, count) in &readings.servers {
            text.line("capstan_servers", &format!("{{state=\"{state}\"}}"), count);
        }
        let lost = "Entries that could not be written to the audit log.";
        text.head("capstan_audit_lost_total", "counter", lost);
        text.line("capstan_audit_lost_total", "", readings.audit_lost);
        text.0
    }

    fn durations(&self, text: &mut Text) {
        let counts = &self.counts;
        text.head("capstan_call_duration_seconds", "histogram", "The duration of calls.");
        let mut sum = 0;
        for ((end, _), count) in BUCKETS.iter().zip(&counts.buckets) {
            sum += get(count);
            let labels = format!("{{le=\"{end}\"}}");
            text.line("capstan_call_duration_seconds_bucket", &labels, sum);
        }
        let count = get(&counts.count);
        text.line("capstan_call_duration_seconds_bucket", "{le=\"+Inf\"}", count);
        let seconds = Duration::from_micros(get(&counts.micros)).as_secs_f64();
        text.line("capstan_call_duration_seconds_sum", "", seconds);
        text.line("capstan_call_duration_seconds_count", "", count);
    }
}

// === impl CallTimer ===

impl CallTimer {
    pub(crate) fn end(mut self, ending: Ending) {
        self.ended = true;
        let count = match ending {
            Ending::ToolError => &self.counts.tool_errors,
            Ending::Answered => &self.counts.answered,
            Ending::Failed { code, .. } => {
                let found =
                    CODES.iter().zip(&self.counts.failed).find(|(other, _)| **other == code);
                found.map_or(&self.counts.abandoned, |(_, count)| count)
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for CallTimer {
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let counts = &self.counts;
        if !self.ended {
            counts.abandoned.fetch_add(1, Ordering::Relaxed);
        }
        counts.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counts.micros.fetch_add(micros, Ordering::Relaxed);
        let bucket = BUCKETS.iter().zip(&counts.buckets).find(|((_, end), _)| took <= *end);
        if let Some((_, count)) = bucket {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Buffer for Prometheus' text format.
#[derive(Default)]
pub(crate) struct Text(pub(crate) String);

// === impl Text ===

impl Text {
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    pub(crate) fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}

fn get(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
