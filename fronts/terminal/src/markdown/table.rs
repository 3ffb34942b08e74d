//! Lays out a table: columns as wide as they need, narrower where the screen is.

use ratatui::style::Style;
use ratatui::text::Line;

use super::wrap::{self, Piece};
use crate::theme::Colours;

/// The narrowest column.
const MIN_COLUMN: usize = 4;

/// The sign between two columns.
const BETWEEN: &str = " │ ";

/// A table; the first row is its head.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<Vec<Piece>>>,
}

// === impl Table ===

impl Table {
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn put(&mut self, cell: Vec<Piece>) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn lines(&self, width: usize, colours: Colours) -> Vec<Line<'static>> {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            lines.extend(self::row(row, &widths, colours));
            if at == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(wrap::line(vec![(rules.join("─┼─"), colours.dim())]));
            }
        }
        lines
    }

    /// The widths of the columns; together they fit, as far as the narrowest columns do.
    fn widths(&self, width: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let natural = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| wrap::width(cell)).max().unwrap_or_default().max(1)
        };
        let mut widths: Vec<usize> = (0..count).map(natural).collect();
        let between = count.saturating_sub(1) * 3;
        let room = width.saturating_sub(between);
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max() else { break };
            if *widest <= MIN_COLUMN {
                break;
            }
            *widest -= 1;
        }
        widths
    }
}

fn row(cells: &[Vec<Piece>], widths: &[usize], colours: Colours) -> Vec<Line<'static>> {
    let wrapped: Vec<Vec<Vec<Piece>>> = widths
        .iter()
        .enumerate()
        .map(|(at, width)| wrap::words(cells.get(at).map_or(&[][..], Vec::as_slice), *width))
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
    let line = |at: usize| {
        let mut pieces = Vec::new();
        for (column, (cell, width)) in wrapped.iter().zip(widths).enumerate() {
            if column > 0 {
                pieces.push((BETWEEN.to_owned(), colours.dim()));
            }
            let part = cell.get(at).cloned().unwrap_or_default();
            let blanks = width.saturating_sub(wrap::width(&part));
            pieces.extend(part);
            pieces.push((" ".repeat(blanks), Style::new()));
        }
        wrap::line(pieces)
    };
    (0..height).map(line).collect()
}
