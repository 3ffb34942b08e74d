//! The settings: the standard environment variables of OpenTelemetry.

use std::time::Duration;

use tracing::warn;

/// Default timeout of an export.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The only supported protocol.
const PROTOCOL: &str = "http/protobuf";

/// The data to send, and its destinations.
///
/// The OpenTelemetry SDK itself reads headers, the sampler, batches and further attributes of the
/// resource from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The destination of traces, if any.
    pub traces: Option<Signal>,
    /// The destination of metrics, if any.
    pub metrics: Option<Signal>,
    /// True if the environment names the service.
    pub service_named: bool,
}

/// The destination of one kind of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The complete URL.
    pub endpoint: String,
    /// Timeout of an export.
    pub timeout: Duration,
}

// === impl Settings ===

impl Settings {
    /// Reads the settings. Without an endpoint everything is off.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        // An empty variable counts as unset, as in the specification.
        let given = |name: &str| {
            variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        if given("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self::default();
        }
        let attributes = given("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut names = attributes.split(',').filter_map(|pair| pair.split_once('='));
        let in_attributes = names.any(|(name, _)| name.trim() == "service.name");
        Self {
            traces: signal(&given, "TRACES"),
            metrics: signal(&given, "METRICS"),
            service_named: in_attributes || given("OTEL_SERVICE_NAME").is_some(),
        }
    }

    /// True if nothing is sent.
    pub fn is_off(&self) -> bool {
        self.traces.is_none() && self.metrics.is_none()
    }
}

fn signal(given: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<Signal> {
    let either = |end: &str| {
        let own = given(&format!("OTEL_EXPORTER_OTLP_{name}_{end}"));
        own.or_else(|| given(&format!("OTEL_EXPORTER_OTLP_{end}")))
    };
    if !is_wanted(given, name) {
        return None;
    }
    let path = name.to_ascii_lowercase();
    let for_all = || {
        let base = given("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        Some(format!("{}/v1/{path}", base.trim_end_matches('/')))
    };
    let endpoint = given(&format!("OTEL_EXPORTER_OTLP_{name}_ENDPOINT")).or_else(for_all)?;
    if let Some(other) = either("PROTOCOL").filter(|protocol| protocol != PROTOCOL) {
        warn!("telemetry is sent as `{PROTOCOL}`; `{other}` is not supported");
    }
    let timeout = either("TIMEOUT").and_then(|millis| {
        let parsed = millis.parse().ok();
        if parsed.is_none() {
            warn!("the timeout for telemetry must be a number of milliseconds");
        }
        parsed.map(Duration::from_millis)
    });
    let timeout = timeout.unwrap_or(TIMEOUT);
    Some(Signal { endpoint, timeout })
}

/// True if this kind of data is to be sent by OTLP.
fn is_wanted(given: &dyn Fn(&str) -> Option<String>, name: &str) -> bool {
    let Some(exporters) = given(&format!("OTEL_{name}_EXPORTER")) else { return true };
    let mut exporters = exporters.split(',').map(str::trim);
    let wanted = exporters.clone().any(|exporter| exporter == "otlp");
    if let Some(other) = exporters.find(|exporter| !matches!(*exporter, "otlp" | "none")) {
        warn!("OTEL_{name}_EXPORTER is `{other}`, which is not supported");
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], traces: Option<&str>, metrics: Option<&str>) {
        let find = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let settings = Settings::read(&find);
        let endpoint = |signal: Option<Signal>| signal.map(|signal| signal.endpoint);
        assert_eq!(settings.is_off(), traces.is_none() && metrics.is_none(), "{variables:?}");
        assert_eq!(endpoint(settings.traces).as_deref(), traces, "{variables:?}");
        assert_eq!(endpoint(settings.metrics).as_deref(), metrics, "{variables:?}");
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    const TRACES: Option<&str> = Some("http://c:4318/v1/traces");
    const METRICS: Option<&str> = Some("http://c:4318/v1/metrics");

    #[test]
    fn without_an_endpoint_nothing_is_sent() {
        check(&[], None, None);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None, None);
        check(&[("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_SERVICE_NAME", "x")], None, None);
        check(&[("OTEL_EXPORTER_OTLP_HEADERS", "a=b")], None, None);
    }

    #[test]
    fn an_endpoint_is_for_all_or_for_one_kind_of_data() {
        check(&[BASE], TRACES, METRICS);
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/")], TRACES, METRICS);
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/as/it/is");
        check(&[own], Some("http://t/as/it/is"), None);
        check(&[own, BASE], Some("http://t/as/it/is"), METRICS);
        check(&[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m")], None, Some("http://m"));
    }

    #[test]
    fn the_switches_switch_off() {
        check(&[BASE, ("OTEL_SDK_DISABLED", "true")], None, None);
        check(&[BASE, ("OTEL_SDK_DISABLED", "TRUE")], None, None);
        check(&[BASE, ("OTEL_SDK_DISABLED", "1")], TRACES, METRICS);
        check(&[BASE, ("OTEL_TRACES_EXPORTER", "none")], None, METRICS);
        check(&[BASE, ("OTEL_METRICS_EXPORTER", "none")], TRACES, None);
        check(&[BASE, ("OTEL_TRACES_EXPORTER", "console")], None, METRICS);
        check(&[BASE, ("OTEL_TRACES_EXPORTER", "console, otlp")], TRACES, METRICS);
    }

    #[test]
    fn timeouts_and_names_are_read() {
        let read = |variables: &[(&str, &str)]| {
            let find = |name: &str| {
                let found = variables.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            Settings::read(&find)
        };
        let millis =
            |variables: &[(&str, &str)]| read(variables).traces.unwrap().timeout.as_millis();
        assert_eq!(millis(&[BASE]), 10_000);
        let general = ("OTEL_EXPORTER_OTLP_TIMEOUT", "250");
        assert_eq!(millis(&[BASE, general]), 250);
        assert_eq!(millis(&[BASE, general, ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7")]), 7);
        assert_eq!(millis(&[BASE, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")]), 10_000);
        assert!(!read(&[BASE]).service_named);
        assert!(read(&[BASE, ("OTEL_SERVICE_NAME", "x")]).service_named);
        assert!(read(&[BASE, ("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=x")]).service_named);
        assert!(!read(&[BASE, ("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=x")]).service_named);
    }
}
