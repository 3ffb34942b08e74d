//! The Markdown tables that the load driver prints.

use anyhow::{Context, bail};

/// Everything one run printed.
#[derive(Default)]
pub(crate) struct Tables {
    tables: Vec<Table>,
    /// Which peers it left out, and why.
    notes: Vec<String>,
}

/// One table: a row for each peer.
#[derive(Default)]
pub(crate) struct Table {
    /// The heading above it; empty where there is none.
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

// === impl Tables ===

impl Tables {
    pub(crate) fn parse(text: &str) -> Self {
        let mut found = Self::default();
        let mut title = "";
        let mut inside = false;
        for line in text.lines().map(str::trim) {
            if let Some(heading) = line.strip_prefix("### ") {
                title = heading;
            } else if let Some(note) = line.strip_prefix("# ") {
                found.notes.push(note.to_owned());
            }
            // A note may stand between two rows.
            if line.is_empty() || line.starts_with("### ") {
                inside = false;
            }
            let Some(cells) = cells(line) else { continue };
            if !inside {
                let title = title.to_owned();
                found.tables.push(Table { title, columns: cells, ..Table::default() });
                inside = true;
            } else if let Some(table) = found.tables.last_mut()
                && !cells.iter().all(|cell| cell.chars().all(|char| char == '-'))
            {
                table.rows.push(cells);
            }
        }
        for table in &mut found.tables {
            table.notes.clone_from(&found.notes);
        }
        found
    }

    /// The only table, or the first of several.
    pub(crate) fn first(&self) -> anyhow::Result<&Table> {
        self.tables.first().context("the load driver printed no table")
    }

    pub(crate) fn last(&self) -> anyhow::Result<&Table> {
        self.tables.last().context("the load driver printed no table")
    }

    /// The table of a payload in bytes and a concurrency.
    pub(crate) fn load(&self, payload: usize, concurrency: usize) -> anyhow::Result<&Table> {
        let title = format!("payload {payload} B, concurrency {concurrency} ");
        let found = self.tables.iter().find(|table| table.title.starts_with(&title));
        found.with_context(|| format!("the load driver printed no table for {title}"))
    }
}

// === impl Table ===

impl Table {
    /// The number at the beginning of a peer's cell, of a column whose name begins so.
    ///
    /// Figures of a peer with failed calls mean nothing, and are refused.
    pub(crate) fn number(&self, peer: &str, column: &str) -> anyhow::Result<f64> {
        if let Ok(errors) = self.cell(peer, "errors")
            && !errors.starts_with("0 ")
            && errors != "0"
        {
            bail!("calls through {peer} failed: {errors}");
        }
        let cell = self.cell(peer, column)?;
        let number = cell.split_whitespace().next().unwrap_or_default();
        let number: f64 =
            number.parse().with_context(|| format!("{column} of {peer} is no number: {cell}"))?;
        if number.is_nan() {
            bail!("{column} of {peer} could not be measured");
        }
        Ok(number)
    }

    fn cell(&self, peer: &str, column: &str) -> anyhow::Result<&str> {
        let at = self.columns.iter().position(|name| name.starts_with(column));
        let at = at.with_context(|| format!("the load driver prints no column {column}"))?;
        let row = self.rows.iter().find(|row| row.first().is_some_and(|name| name == peer));
        let row = row.with_context(|| {
            let why = self.notes.join("; ");
            format!("the load driver says nothing of {peer}: {why}")
        })?;
        row.get(at).map(String::as_str).with_context(|| format!("{peer} has no {column}"))
    }
}

fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: &str = "\
# left out: gone (gone: not ready in 45s)

### payload 100 B, concurrency 1 (5 repetitions, median; load 0.50)

| peer | p50 µs | p99 µs | calls/s | CPU µs/call | errors |
|---|---|---|---|---|---|
| direct | 40 | 90 | 21000 | NaN | 0  |
| bare | 95 | 180 | 9800 | 31.5 | 0  |

### payload 100 B, concurrency 16 (5 repetitions, median; load 0.90)

| peer | p50 µs | p99 µs | calls/s | CPU µs/call | errors |
|---|---|---|---|---|---|
| direct | 400 | 900 | 32000 | NaN | 0  |
| bare | 950 | 1800 | 14000 | 22.1 | 3 timeout |
";

    const STARTUP: &str = "\
| peer | first answer ms (tools in it) | complete ms | median of 1, [min..max] |
|---|---|---|---|
# left out: other (why)
| capstan | 57 ([90]) | 61 | first [57..57] complete [61] |
";

    #[test]
    fn figures_are_found_by_cell_peer_and_column() {
        let tables = Tables::parse(LOAD);
        let found = |concurrency, peer, column| {
            tables.load(100, concurrency).and_then(|table| table.number(peer, column)).ok()
        };
        let cases = [
            (1, "bare", "p50", Some(95.0)),
            (1, "bare", "CPU µs/call", Some(31.5)),
            (16, "direct", "calls/s", Some(32000.0)),
            // Not measured, failed calls, no such peer, no such column, no such table.
            (1, "direct", "CPU µs/call", None),
            (16, "bare", "p50", None),
            (1, "gone", "p50", None),
            (1, "bare", "RSS", None),
            (6, "bare", "p50", None),
        ];
        for (concurrency, peer, column, expected) in cases {
            assert_eq!(found(concurrency, peer, column), expected, "{concurrency} {peer} {column}");
        }
    }

    #[test]
    fn a_cell_may_say_more_than_its_number_and_a_note_ends_no_table() {
        let tables = Tables::parse(STARTUP);
        let table = tables.first().unwrap();
        assert_eq!(table.number("capstan", "first answer ms").ok(), Some(57.0));
        assert_eq!(table.number("capstan", "complete ms").ok(), Some(61.0));
    }

    #[test]
    fn why_a_peer_is_missing_is_told() {
        let tables = Tables::parse(LOAD);
        let problem = tables.load(100, 1).unwrap().number("gone", "p50").unwrap_err();
        assert!(problem.to_string().contains("not ready in 45s"), "{problem}");
    }

    #[test]
    fn a_run_that_printed_nothing_has_no_figures() {
        let tables = Tables::parse("error: no peers\n");
        assert!(tables.first().is_err() && tables.last().is_err() && tables.load(100, 1).is_err());
    }
}
