//! Health metrics of each server, as text for Prometheus.

use capstan_hub::Hub;
use capstan_hub::Vitals;
use capstan_model::ServerName;

use crate::metrics::Text;

/// Writes the metrics of each server that `shows` lets through. Inspects the system's processes.
pub(crate) fn text(hub: &Hub, shows: &dyn Fn(&ServerName) -> bool) -> String {
    let mut vitals = hub.vitals();
    vitals.retain(|one| shows(&one.server));
    let mut text = Text::default();
    let label = |one: &Vitals| format!("{{server=\"{}\"}}", one.server);
    text.head("capstan_server_state", "gauge", "The state of a server, which is always 1.");
    for one in &vitals {
        let state = one.state.name().as_str();
        let labels = format!("{{server=\"{}\",state=\"{state}\"}}", one.server);
        text.line("capstan_server_state", &labels, 1);
    }
    text.head("capstan_server_calls_per_hour", "gauge", "Calls per hour of a server.");
    for one in &vitals {
        if let Some(pace) = one.pace {
            text.line("capstan_server_calls_per_hour", &label(one), pace.calls_per_hour);
        }
    }
    let help = "When a server is stopped unless it is used.";
    text.head("capstan_server_stops_in_seconds", "gauge", help);
    for one in &vitals {
        if let Some(left) = one.pace.and_then(|pace| pace.stops_in) {
            text.line("capstan_server_stops_in_seconds", &label(one), left.as_secs());
        }
    }
    let running = || vitals.iter().filter_map(|one| Some((label(one), one.footprint?)));
    text.head("capstan_server_memory_bytes", "gauge", "Memory of a server's processes.");
    for (labels, footprint) in running() {
        text.line("capstan_server_memory_bytes", &labels, footprint.memory);
    }
    let help = "Processor time of a server's processes since it was started.";
    text.head("capstan_server_cpu_seconds", "gauge", help);
    for (labels, footprint) in running() {
        text.line("capstan_server_cpu_seconds", &labels, footprint.cpu.as_secs_f64());
    }
    text.head("capstan_server_processes", "gauge", "How many processes a server has.");
    for (labels, footprint) in running() {
        text.line("capstan_server_processes", &labels, footprint.processes);
    }
    text.0
}
