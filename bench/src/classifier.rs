//! `./dev/bench classifier`: how often the effect of a tool is told from its definition alone.
//!
//! The tools are those of `effects/tools.jsonl` in the folder of corpora, with their authors' word on
//! what they do. Annotations are not looked at.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use capstan_model::{Effect, Trust};
use capstan_policy::effect::EffectRules;
use capstan_wire::{Json, object};
use serde::{Deserialize, Serialize};

use crate::table::Table;

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    /// By server; the last are all together.
    servers: Vec<Score>,
    /// What was not told as its author does.
    misses: Vec<Miss>,
    microseconds_per_tool: f64,
}

/// What was told of the tools of one server.
#[derive(Clone, Default, Serialize)]
struct Score {
    server: String,
    /// Tools that read, by what they were taken for.
    reads: Told,
    /// Tools that write, by what they were taken for.
    writes: Told,
}

#[derive(Clone, Copy, Default, Serialize)]
struct Told {
    read: usize,
    write: usize,
    unknown: usize,
}

#[derive(Serialize)]
struct Miss {
    server: String,
    tool: String,
    is: Label,
    told: &'static str,
    reasons: Vec<String>,
}

/// A line of the corpus.
#[derive(Deserialize)]
struct Row {
    server: String,
    name: String,
    effect: Label,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Label {
    Read,
    Write,
}

/// Where the corpora are, unless `CAPSTAN_BENCH_DATA` says so.
const DATA: &str = "../shared/data";

/// How often everything is judged to take the time of it.
const ROUNDS: u32 = 20;

/// The folder of the corpora.
pub(crate) fn data() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a measurement, and no part of the product")]
    let set = std::env::var("CAPSTAN_BENCH_DATA");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    set.map_or_else(|_| root.join(DATA), PathBuf::from)
}

// === impl Report ===

impl Report {
    /// Judges every tool of the corpus.
    pub(crate) fn measure(data: &Path) -> anyhow::Result<Self> {
        let path = data.join("effects/tools.jsonl");
        let shown = path.display();
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read `{shown}`; set CAPSTAN_BENCH_DATA to the folder that has `effects`"
            )
        })?;
        let mut tools = Vec::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let tool = tool(line).with_context(|| format!("`{shown}`, line {}", number + 1))?;
            tools.push(tool);
        }
        if tools.is_empty() {
            bail!("`{shown}` has no tools in it");
        }
        Ok(Self::of(&tools))
    }

    fn of(tools: &[(Row, Json)]) -> Self {
        let rules = EffectRules::default();
        let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
        let mut all = Score { server: "all".to_owned(), ..Score::default() };
        let mut misses = Vec::new();
        for (row, definition) in tools {
            let found = rules.classify(&row.name, definition, Trust::Untrusted);
            let score = scores.entry(&row.server).or_default();
            score.server.clone_from(&row.server);
            for score in [score, &mut all] {
                score.told_of(row.effect).count(found.effect);
            }
            if found.effect != row.effect.effect() {
                misses.push(Miss {
                    server: row.server.clone(),
                    tool: row.name.clone(),
                    is: row.effect,
                    told: found.effect.as_str(),
                    reasons: found.reasons,
                });
            }
        }
        let begun = Instant::now();
        for (row, definition) in tools.iter().cycle().take(tools.len() * ROUNDS as usize) {
            std::hint::black_box(rules.of(&row.name, definition, Trust::Untrusted));
        }
        #[expect(clippy::cast_precision_loss, reason = "no corpus has so many tools")]
        let judged = tools.len() as f64 * f64::from(ROUNDS);
        let microseconds_per_tool = begun.elapsed().as_secs_f64() * 1e6 / judged;
        let servers = scores.into_values().chain([all]).collect();
        Self { servers, misses, microseconds_per_tool }
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Prints how many; with `Detail::Misses` also which.
    pub(crate) fn print_table(&self, detail: Detail) -> anyhow::Result<ExitCode> {
        let mut table = Table::new([
            "server", "reads", "told", "unknown", "as write", "writes", "told", "unknown",
            "as READ",
        ]);
        for Score { server, reads, writes } in &self.servers {
            table.row([
                server.clone(),
                reads.total().to_string(),
                share(reads.read, reads.total()),
                reads.unknown.to_string(),
                reads.write.to_string(),
                writes.total().to_string(),
                share(writes.write, writes.total()),
                writes.unknown.to_string(),
                writes.read.to_string(),
            ]);
        }
        let mut out = io::stdout().lock();
        writeln!(out, "the effect of tools, told from their definitions without annotations\n")?;
        writeln!(out, "{table}")?;
        writeln!(out, "{:.1} microseconds a tool", self.microseconds_per_tool)?;
        match detail {
            Detail::Numbers => {}
            Detail::Misses => {
                writeln!(out)?;
                for Miss { server, tool, is, told, reasons } in &self.misses {
                    let is = is.effect().as_str();
                    writeln!(out, "{server} {tool}: {told}, is {is} ({})", reasons.join("; "))?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// How much is printed for people.
#[derive(Clone, Copy)]
pub(crate) enum Detail {
    Numbers,
    Misses,
}

// === impl Score ===

impl Score {
    fn told_of(&mut self, label: Label) -> &mut Told {
        match label {
            Label::Read => &mut self.reads,
            Label::Write => &mut self.writes,
        }
    }
}

// === impl Told ===

impl Told {
    fn count(&mut self, effect: Effect) {
        match effect {
            Effect::Read => self.read += 1,
            Effect::Write => self.write += 1,
            Effect::Unknown => self.unknown += 1,
        }
    }

    fn total(self) -> usize {
        self.read + self.write + self.unknown
    }
}

// === impl Label ===

impl Label {
    fn effect(self) -> Effect {
        match self {
            Self::Read => Effect::Read,
            Self::Write => Effect::Write,
        }
    }
}

/// A line of the corpus, and the definition in it without its annotations.
fn tool(line: &str) -> anyhow::Result<(Row, Json)> {
    let row: Row = serde_json::from_str(line)?;
    let definition = Json::parse(line.to_owned())?;
    Ok((row, object::without_member(&definition, "annotations")?))
}

#[expect(clippy::cast_precision_loss, reason = "no corpus has so many tools")]
fn share(part: usize, of: usize) -> String {
    if of == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_counted_by_what_they_are_and_what_they_are_taken_for() {
        let lines = [
            r#"{"server":"a","name":"get_x","description":"Get it","effect":"read"}"#,
            r#"{"server":"a","name":"x","annotations":{"readOnlyHint":false},"effect":"write"}"#,
            r#"{"server":"b","name":"delete_x","effect":"write"}"#,
        ];
        let tools: Vec<_> = lines.iter().map(|line| tool(line).unwrap()).collect();
        let report = Report::of(&tools);
        let all = report.servers.last().unwrap();
        assert_eq!((all.reads.read, all.reads.total()), (1, 1));
        assert_eq!((all.writes.write, all.writes.unknown, all.writes.total()), (1, 1, 2));
        let missed: Vec<&str> = report.misses.iter().map(|miss| miss.tool.as_str()).collect();
        assert_eq!(missed, ["x"]);
        assert_eq!(report.servers.len(), 3);
    }

    #[test]
    fn a_corpus_that_is_missing_is_an_error_that_says_what_to_do() {
        let error = Report::measure(Path::new("no such folder")).err().unwrap();
        assert!(error.to_string().contains("CAPSTAN_BENCH_DATA"), "{error:#}");
    }
}
