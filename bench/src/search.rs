//! `./dev/bench search`: how often tool search finds the tools that a task needs, and how fast.
//!
//! Tools and queries are those of `tools/` in the folder of corpora. Recall is the share of needed
//! tools that are among the first; of equivalent tools any counts.

mod data;
mod quality;
mod speed;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use crate::table::Table;
use data::Corpus;

/// Everything that was measured.
#[derive(Serialize)]
pub(crate) struct Report {
    quality: Vec<quality::Row>,
    folds: Vec<quality::Folds>,
    replay: Vec<quality::Replay>,
    fit: quality::Fit,
    speed: Vec<speed::Row>,
    memory: speed::Memory,
}

// === impl Report ===

impl Report {
    pub(crate) fn measure(folder: &Path) -> anyhow::Result<Self> {
        let corpus = Corpus::read(&folder.join("tools"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // First, because it looks at the memory of a process that has not searched yet.
        let memory = speed::Memory::measure(&corpus, &runtime)?;
        // Embedding all tools takes minutes; the vectors are kept for the next run.
        let vectors = std::env::temp_dir().join("capstan-bench-search");
        std::fs::create_dir_all(&vectors).context("cannot make a folder for vectors")?;
        let searched = quality::Searched::new(&corpus, &vectors.join("vectors"), &runtime);
        let (quality, folds) = searched.rows();
        Ok(Self {
            quality,
            folds,
            replay: searched.replays(),
            fit: searched.fit(),
            speed: speed::rows(&corpus, &vectors.join("vectors"), &runtime),
            memory,
        })
    }

    pub(crate) fn print_json(&self) -> anyhow::Result<ExitCode> {
        writeln!(io::stdout(), "{}", serde_json::to_string_pretty(self)?)?;
        Ok(ExitCode::SUCCESS)
    }

    pub(crate) fn print_table(&self) -> anyhow::Result<ExitCode> {
        let mut out = io::stdout().lock();
        let share = |value: f64| format!("{value:.3}");
        let mut table = Table::new([
            "queries",
            "tools",
            "number",
            "recall@1",
            "recall@5",
            "recall@10",
            "MRR",
            "nDCG@5",
            "nDCG@10",
        ]);
        for row in &self.quality {
            let numbers =
                [row.recall_1, row.recall_5, row.recall_10, row.mrr, row.ndcg_5, row.ndcg_10];
            let [r1, r5, r10, mrr, n5, n10] = numbers.map(share);
            let (tools, number) = (row.tools.to_string(), row.queries.to_string());
            table.row([row.name.clone(), tools, number, r1, r5, r10, mrr, n5, n10]);
        }
        writeln!(out, "{table}")?;
        let mut table =
            Table::new(["searches of an agent", "k", "recall", "complete", "tools a task"]);
        for row in &self.replay {
            let tools = format!("{:.1}", row.tools);
            let (recall, complete) = (share(row.recall), share(row.complete));
            table.row([row.name.clone(), row.k.to_string(), recall, complete, tools]);
        }
        writeln!(out, "{table}")?;
        for fold in &self.folds {
            let parts: Vec<String> = fold.parts.iter().map(|part| share(*part)).collect();
            writeln!(out, "{} in five parts: {}", fold.name, parts.join(" "))?;
        }
        let quality::Fit { relevant_lost, foreign_empty } = self.fit;
        writeln!(
            out,
            "\nwith the minimum similarity, {:.1} % of the found tools are lost, and {:.1} % of \
             queries about nothing get no tool",
            100.0 * relevant_lost,
            100.0 * foreign_empty
        )?;
        let mut table = Table::new(["time", "tools", "p50 ms", "p99 ms"]);
        for row in &self.speed {
            let (p50, p99) = (format!("{:.3}", row.p50_ms), format!("{:.3}", row.p99_ms));
            table.row([row.name.clone(), row.tools.to_string(), p50, p99]);
        }
        writeln!(out, "\n{table}")?;
        writeln!(out, "{}", self.memory)?;
        Ok(ExitCode::SUCCESS)
    }
}
