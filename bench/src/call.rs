//! `./dev/bench call`: what a call costs.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::oneshot::{self, OneShot};
use crate::relay::{self, Relayed};
use crate::table::Table;

/// Everything that was measured.
#[derive(Serialize)]
struct Report {
    /// Empty when it could not be measured.
    relay: Vec<Relayed>,
    /// Empty when it could not be measured.
    one_shot: Vec<OneShot>,
    /// Why something could not be measured.
    failed: Vec<String>,
}

/// Measures, and prints tables.
pub(crate) fn print_tables() -> anyhow::Result<ExitCode> {
    let report = Report::measure();
    let mut out = io::stdout().lock();
    if !report.relay.is_empty() {
        writeln!(out, "instructions to relay one tools/call and its answer\n")?;
        writeln!(out, "{}", relay_table(&report.relay))?;
    }
    if !report.one_shot.is_empty() {
        writeln!(out, "one call from the command line, medians of runs in turns\n")?;
        writeln!(out, "{}", one_shot_table(&report.one_shot))?;
    }
    for problem in &report.failed {
        writeln!(io::stderr(), "error: {problem}")?;
    }
    Ok(report.exit())
}

/// Measures, and prints one JSON document.
pub(crate) fn print_json() -> anyhow::Result<ExitCode> {
    let report = Report::measure();
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    Ok(report.exit())
}

// === impl Report ===

impl Report {
    /// What cannot be measured does not keep the rest from it.
    fn measure() -> Self {
        let mut failed = Vec::new();
        let mut note = |problem: anyhow::Error| failed.push(format!("{problem:#}"));
        let relay = relay::measure().map_err(&mut note).unwrap_or_default();
        let one_shot = oneshot::measure().map_err(&mut note).unwrap_or_default();
        Self { relay, one_shot, failed }
    }

    fn exit(&self) -> ExitCode {
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn relay_table(measured: &[Relayed]) -> Table {
    let mut table = Table::new(["answer", "raw", "rmcp, typed", "typed / raw"]);
    for relayed in measured {
        table.row([
            size(relayed.answer_bytes),
            relayed.raw_instructions.to_string(),
            relayed.typed_instructions.to_string(),
            format!("{:.1}", relayed.ratio),
        ]);
    }
    table
}

fn one_shot_table(measured: &[OneShot]) -> Table {
    let columns = ["server", "runs", "capstan ms", "smallest client ms", "ratio", "goal", "met"];
    let mut table = Table::new(columns);
    for one in measured {
        table.row([
            one.server.to_owned(),
            one.runs.to_string(),
            format!("{:.1}", one.capstan_ms),
            format!("{:.1}", one.smallest_client_ms),
            format!("{:.2}", one.ratio),
            format!("{:.1}", one.goal),
            (if one.met { "yes" } else { "no" }).to_owned(),
        ]);
    }
    table
}

fn size(bytes: usize) -> String {
    match bytes {
        mib if mib % (1 << 20) == 0 => format!("{} MiB", mib >> 20),
        kib if kib % (1 << 10) == 0 => format!("{} KiB", kib >> 10),
        other => format!("{other} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_unit_they_are_whole_in() {
        let shown = [100, 64 * 1024, 1024 * 1024, 1500].map(size);
        assert_eq!(shown, ["100 B", "64 KiB", "1 MiB", "1500 B"]);
    }

    #[test]
    fn what_could_not_be_measured_is_a_failure_and_a_missed_goal_is_none() {
        let missed = OneShot {
            server: "slow",
            runs: 21,
            capstan_ms: 9.0,
            smallest_client_ms: 1.0,
            ratio: 9.0,
            goal: 2.0,
            met: false,
        };
        let mut report = Report { relay: vec![], one_shot: vec![missed], failed: vec![] };
        assert_eq!(report.exit(), ExitCode::SUCCESS);
        report.failed.push("`valgrind` is not installed".to_owned());
        assert_eq!(report.exit(), ExitCode::FAILURE);
    }
}
