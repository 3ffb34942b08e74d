//! `./dev/bench gateway`: what the gateway costs beside bare proxies, which do nothing but relay.
//!
//! The load driver `mcpbench`, which is not part of this repository, drives both in turns and
//! prints medians; here is what it is asked, and what its figures should be.

mod measure;
mod parse;
mod setup;

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::{Serialize, Serializer};

use crate::table::Table;

/// How long things are measured.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effort {
    /// Medians of five.
    Full,
    /// Everything once, to see that it works.
    Quick,
}

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    effort: Effort,
    lines: Vec<Line>,
    /// Why something could not be measured.
    failed: Vec<String>,
}

/// Measures some of it.
type Part = fn(Effort) -> anyhow::Result<Vec<Line>>;

/// A figure and its goal.
#[derive(Serialize)]
struct Line {
    what: &'static str,
    capstan: f64,
    /// What the gateway is compared with, measured in the same run; none where the goal is a
    /// figure by itself.
    baseline: Option<f64>,
    ratio: Option<f64>,
    goal: Goal,
    met: bool,
}

/// What the ratio should be, or the figure where there is no ratio.
#[derive(Clone, Copy)]
enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// A figure without its goal.
struct Figure {
    what: &'static str,
    capstan: f64,
    baseline: Option<f64>,
}

// === impl Effort ===

impl Effort {
    fn reps(self) -> usize {
        match self {
            Self::Full => 5,
            Self::Quick => 1,
        }
    }

    /// As options of the load driver.
    fn repeated(self) -> [&'static str; 2] {
        match self {
            Self::Full => ["--reps", "5"],
            Self::Quick => ["--reps", "1"],
        }
    }

    /// As options of its command `load`.
    fn load(self) -> [&'static str; 4] {
        let [option, reps] = self.repeated();
        match self {
            Self::Full => [option, reps, "--secs", "3"],
            Self::Quick => [option, reps, "--secs", "0.5"],
        }
    }
}

// === impl Report ===

impl Report {
    /// What cannot be measured does not keep the rest from it.
    pub(crate) fn measure(effort: Effort) -> Self {
        let parts: [(&str, Part); 6] = [
            ("calls", measure::calls),
            ("both eras", measure::eras),
            ("large calls", measure::large_calls),
            ("lists and memory", measure::idle_and_list),
            ("the start", measure::start),
            ("sessions", measure::sessions),
        ];
        let mut report = Self { effort, lines: Vec::new(), failed: Vec::new() };
        for (name, part) in parts {
            match part(effort) {
                Ok(lines) => report.lines.extend(lines),
                Err(problem) => report.failed.push(format!("{name}: {problem:#}")),
            }
        }
        report
    }

    pub(crate) fn print_table(&self) -> anyhow::Result<ExitCode> {
        let mut table = Table::new(["what", "capstan", "baseline", "ratio", "goal", "met"]);
        for line in &self.lines {
            let shown = |figure: Option<f64>| figure.map(shown).unwrap_or_default();
            table.row([
                line.what.to_owned(),
                shown(Some(line.capstan)),
                shown(line.baseline),
                shown(line.ratio),
                line.goal.to_string(),
                (if line.met { "yes" } else { "no" }).to_owned(),
            ]);
        }
        let mut out = io::stdout().lock();
        match self.effort {
            Effort::Full => writeln!(out, "the gateway beside bare proxies, medians of five\n")?,
            Effort::Quick => writeln!(out, "the gateway beside bare proxies, tried once\n")?,
        }
        write!(out, "{table}")?;
        for problem in &self.failed {
            writeln!(io::stderr(), "error: {problem}")?;
        }
        Ok(self.exit())
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(self.exit())
    }

    fn exit(&self) -> ExitCode {
        if self.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

// === impl Line ===

impl Line {
    fn ratio(what: &'static str, capstan: f64, baseline: f64) -> Figure {
        Figure { what, capstan, baseline: Some(baseline) }
    }

    fn value(what: &'static str, capstan: f64) -> Figure {
        Figure { what, capstan, baseline: None }
    }
}

// === impl Goal ===

impl Goal {
    fn met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(limit) => figure <= limit,
            Self::AtLeast(limit) => figure >= limit,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(limit) => write!(f, "<= {limit}"),
            Self::AtLeast(limit) => write!(f, ">= {limit}"),
        }
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

// === impl Figure ===

impl Figure {
    fn goal(self, goal: Goal) -> Line {
        let Self { what, capstan, baseline } = self;
        // Noise can make a difference of two figures nothing or less; such a ratio says nothing.
        let ratio =
            baseline.map(|baseline| if baseline > 0.0 { capstan / baseline } else { f64::NAN });
        Line { what, capstan, baseline, ratio, goal, met: goal.met(ratio.unwrap_or(capstan)) }
    }
}

/// With as many digits as tell something.
fn shown(figure: f64) -> String {
    if figure.abs() < 10.0 { format!("{figure:.2}") } else { format!("{figure:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_up_to_its_very_number() {
        let check = |goal: Goal, capstan, baseline, met| {
            let figure = Figure { what: "w", capstan, baseline };
            assert_eq!(figure.goal(goal).met, met, "{goal} {capstan} {baseline:?}");
        };
        check(Goal::AtMost(1.5), 3.0, Some(2.0), true);
        check(Goal::AtMost(1.5), 3.1, Some(2.0), false);
        check(Goal::AtLeast(0.75), 3.0, Some(4.0), true);
        check(Goal::AtLeast(0.75), 2.9, Some(4.0), false);
        check(Goal::AtMost(12.0), 12.0, None, true);
        check(Goal::AtMost(12.0), 12.1, None, false);
        check(Goal::AtMost(1.5), 3.0, Some(-2.0), false);
        check(Goal::AtMost(1.5), 0.0, Some(0.0), false);
        check(Goal::AtMost(1.5), f64::NAN, Some(2.0), false);
        check(Goal::AtLeast(0.75), 3.0, Some(f64::NAN), false);
    }

    #[test]
    fn what_could_not_be_measured_is_a_failure_and_a_missed_goal_is_none() {
        let missed = Line::value("w", 9.0).goal(Goal::AtMost(1.0));
        let mut report = Report { effort: Effort::Quick, lines: vec![missed], failed: vec![] };
        assert_eq!(report.exit(), ExitCode::SUCCESS);
        report.failed.push("calls: no table".to_owned());
        assert_eq!(report.exit(), ExitCode::FAILURE);
    }
}
