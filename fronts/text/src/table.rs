//! Prints rows in columns.

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Color, ColumnConstraint, ContentArrangement, Row, Table, Width};
use unicode_width::UnicodeWidthStr;

use crate::clean::one_line;

/// Number of spaces between two columns.
const GAP: u16 = 2;

/// Minimum width of the last column, if its content needs it.
const LAST_COLUMN: usize = 20;

/// Indentation of the last column where it has lines of its own.
const INDENT: usize = 4;

/// Maximum number of lines in one cell; longer text is cut with `…`.
const MAX_LINES: usize = 3;

/// The value of a cell that has none.
const NO_VALUE: &str = "-";

/// Headers of columns whose words have colours.
const COLOURED: [&str; 7] = ["STATE", "STANDING", "EFFECT", "ACCESS", "VERDICT", "SAYS", "NOW"];

/// One cell: cleaned text and its meaning.
#[derive(Clone, Debug)]
struct Cell {
    text: String,
    tone: Tone,
}

/// The meaning of a word, shown by its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    /// No colour.
    Plain,
    /// Works, or is allowed.
    Good,
    /// Works in part, or asks.
    Warning,
    /// Failed, or is refused.
    Bad,
    /// Switched off.
    Faint,
}

/// Formats rows under their headers: no lines, two spaces between columns, no trailing spaces.
///
/// With a `width`, no line is longer and no word is broken: columns without any value are left out,
/// the last column wraps or gets lines of its own, and if that is not enough, the widest of the
/// others are cut. Without one (output that is not shown on a terminal), nothing is cut.
/// Every cell is cleaned, so a cell may contain text from a server.
pub fn table(headers: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    fit(grid(headers, rows), width)
}

/// Formats rows as [`table`] does; words such as states and verdicts have colours.
pub fn coloured_table(headers: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut grid = grid(headers, rows);
    for row in grid.iter_mut().skip(1) {
        for (cell, header) in row.iter_mut().zip(headers) {
            if COLOURED.contains(header) {
                cell.tone = Tone::of(&cell.text);
            }
        }
    }
    fit(grid, width)
}

/// The cells, with the headers as the first row.
fn grid(headers: &[&str], rows: &[Vec<String>]) -> Vec<Vec<Cell>> {
    let head = headers.iter().map(|header| Cell::new(header)).collect();
    let body = rows.iter().map(|row| row.iter().map(|text| Cell::new(text)).collect());
    std::iter::once(head).chain(body).collect()
}

/// Prints a grid in lines of at most this width.
fn fit(mut grid: Vec<Vec<Cell>>, width: Option<usize>) -> String {
    let Some(width) = width else { return in_columns(&grid) };
    if total(&content_widths(&grid)) > width {
        drop_columns_without_values(&mut grid);
    }
    let mut widths = content_widths(&grid);
    let Some((last, others)) = widths.split_last_mut() else { return String::new() };
    let used: usize = others.iter().map(|width| width + usize::from(GAP)).sum();
    let room = width.saturating_sub(used);
    if room >= (*last).min(LAST_COLUMN) {
        *last = (*last).min(room);
        return lay_out(&grid, &widths);
    }
    let besides = width.saturating_sub(*last + usize::from(GAP));
    if *last <= LAST_COLUMN && besides >= width / 2 {
        let mut narrow = shrink(others.to_vec(), besides);
        narrow.push(*last);
        return lay_out(&grid, &narrow);
    }
    let others = shrink(others.to_vec(), width);
    let (columns, room) = (widths.len(), width.saturating_sub(INDENT).max(1));
    let take = |row: &mut Vec<Cell>| if row.len() == columns { row.pop() } else { None };
    let texts: Vec<Option<Cell>> = grid.iter_mut().map(take).collect();
    let mut lines = Vec::new();
    for (row, text) in grid.into_iter().zip(texts) {
        // Row by row: the column that is now the last may wrap.
        lines.extend(lay_out(&[row], &others).lines().map(str::to_owned));
        let text = text.filter(|text| !text.text.is_empty());
        let text = text.map(|text| lay_out(&[vec![text]], &[room])).unwrap_or_default();
        lines.extend(text.lines().map(|line| format!("{:INDENT$}{line}", "")));
    }
    lines.join("\n")
}

// === impl Cell ===

impl Cell {
    fn new(text: &str) -> Self {
        Self { text: one_line(text, usize::MAX), tone: Tone::Plain }
    }
}

// === impl Tone ===

impl Tone {
    /// The meaning of a state, standing, effect or verdict.
    fn of(word: &str) -> Self {
        match word {
            "connected" | "idle" | "cached" | "approved" | "allow" | "read" => Self::Good,
            "connecting" | "degraded" | "awaiting_approval" | "needs_login" | "new" | "ask"
            | "write" | "unknown" => Self::Warning,
            "failed" | "changed" | "lost" | "unexpected" | "unchecked" | "deny" => Self::Bad,
            "disabled" => Self::Faint,
            _ => Self::Plain,
        }
    }

    /// The escapes before and after a cell, as the library for tables writes them.
    fn escapes(self) -> (&'static str, &'static str) {
        match self {
            Self::Plain => ("", ""),
            Self::Good => ("\x1b[38;5;2m", "\x1b[39m"),
            Self::Warning => ("\x1b[38;5;3m", "\x1b[39m"),
            Self::Bad => ("\x1b[38;5;1m", "\x1b[39m"),
            Self::Faint => ("\x1b[2m", "\x1b[0m"),
        }
    }
}

/// Prints a grid in columns that are as wide as their content.
///
/// Commands that list many tools spend most of their time on output, so nothing is done here that a
/// table without limits does not need.
fn in_columns(grid: &[Vec<Cell>]) -> String {
    let widths = content_widths(grid);
    let last = widths.len().saturating_sub(1);
    let mut text = String::with_capacity(grid.len() * (total(&widths) + 1));
    for (number, row) in grid.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        let start = text.len();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if index == last { 0 } else { usize::from(GAP) };
            let spaces = width.saturating_sub(columns(&cell.text)) + gap;
            let (on, off) = cell.tone.escapes();
            text.push_str(on);
            text.push_str(&cell.text);
            text.extend(std::iter::repeat_n(' ', spaces));
            text.push_str(off);
        }
        let line = text.get(start..).unwrap_or_default();
        text.truncate(start + line.trim_end().len());
    }
    text
}

/// Prints a grid in columns of these widths.
fn lay_out(grid: &[Vec<Cell>], widths: &[usize]) -> String {
    let mut table = Table::new();
    let dynamic = ContentArrangement::Dynamic;
    table.force_no_tty().enforce_styling().load_style(NOTHING).set_content_arrangement(dynamic);
    table.set_width(u16::try_from(total(widths)).unwrap_or(u16::MAX));
    table.add_rows(grid.iter().map(|row| cells(row, widths)));
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        let gap = if index == last { 0 } else { GAP };
        column.set_padding((0, gap));
        if let Some(width) = widths.get(index) {
            let whole = u16::try_from(*width).unwrap_or(u16::MAX).saturating_add(gap);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(whole)));
        }
    }
    table.trim_fmt()
}

/// Builds one row. The last cell wraps between words; the others are cut.
fn cells(row: &[Cell], widths: &[usize]) -> Row {
    let last = widths.len().saturating_sub(1);
    let cell = |(index, Cell { text, tone }): (usize, &Cell)| {
        let text = match widths.get(index) {
            None => text.clone(),
            Some(width) if index < last => one_line(text, *width),
            Some(width) => {
                let words = text.split(' ').map(|word| one_line(word, *width));
                words.collect::<Vec<_>>().join(" ")
            }
        };
        let cell = comfy_table::Cell::new(text);
        match tone {
            Tone::Plain => cell,
            Tone::Good => cell.fg(Color::DarkGreen),
            Tone::Warning => cell.fg(Color::DarkYellow),
            Tone::Bad => cell.fg(Color::DarkRed),
            Tone::Faint => cell.add_attribute(Attribute::Dim),
        }
    };
    let mut row: Row = row.iter().enumerate().map(cell).collect::<Vec<_>>().into();
    row.max_height(MAX_LINES);
    row
}

/// Removes columns between the first and the last in which no row has a value.
fn drop_columns_without_values(grid: &mut [Vec<Cell>]) {
    let columns = grid.first().map_or(0, Vec::len);
    let is_empty = |index: usize| {
        let mut values = grid.iter().skip(1).filter_map(|row| row.get(index));
        values.all(|cell| cell.text.is_empty() || cell.text == NO_VALUE)
    };
    let empty: Vec<usize> = (1..columns.saturating_sub(1)).filter(|at| is_empty(*at)).collect();
    for row in grid.iter_mut() {
        let mut index = 0;
        row.retain(|_| {
            index += 1;
            !empty.contains(&(index - 1))
        });
    }
}

/// The natural width of each column.
fn content_widths(grid: &[Vec<Cell>]) -> Vec<usize> {
    let mut widths = vec![0; grid.iter().map(Vec::len).max().unwrap_or(0)];
    for row in grid {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = columns(&cell.text).max(*width);
        }
    }
    widths
}

/// The number of columns that a cleaned text takes.
fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// The width of a line with columns of these widths and the gaps between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + widths.len().saturating_sub(1) * usize::from(GAP)
}

/// Cuts the widest columns until all of them fit into `room`.
fn shrink(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    for width in &mut widths {
        *width = (*width).clamp(1, room.max(1));
    }
    while total(&widths) > room
        && let Some(widest) = widths.iter_mut().max().filter(|widest| **widest > 1)
    {
        *widest -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
    }

    #[track_caller]
    fn fits(text: &str, width: usize) {
        for line in text.lines() {
            assert!(line.width() <= width, "{line:?} is wider than {width}");
            assert_eq!(line, line.trim_end());
        }
    }

    #[test]
    fn columns_stand_under_their_headers_two_spaces_apart() {
        let rows = rows(&[&["linear", "12", "ready"], &["git", "3", ""]]);
        let expected = "NAME    TOOLS  STATE\nlinear  12     ready\ngit     3";
        assert_eq!(table(&["NAME", "TOOLS", "STATE"], &rows, Some(80)), expected);
        assert_eq!(table(&["NAME", "TOOLS", "STATE"], &rows, None), expected);
    }

    #[test]
    fn only_the_last_column_wraps() {
        let rows = rows(&[&["linear__list_issues", "lists the issues of a team, newest first"]]);
        let text = table(&["ID", "DESCRIPTION"], &rows, Some(48));
        fits(&text, 48);
        assert_eq!(
            text,
            "ID                   DESCRIPTION\n\
             linear__list_issues  lists the issues of a team,\n\
             \x20                    newest first"
        );
    }

    #[test]
    fn a_long_text_takes_three_lines_and_is_cut() {
        let rows = rows(&[&["a", &"word ".repeat(100)], &["b", "short"]]);
        let text = table(&["ID", "TEXT"], &rows, Some(30));
        fits(&text, 30);
        assert_eq!(text.lines().count(), 1 + 3 + 1);
        assert!(text.contains('…'));
    }

    #[test]
    fn without_a_terminal_nothing_is_cut() {
        let long = "x".repeat(5000);
        let text = table(&["A", "B"], &rows(&[&[&long, &long]]), None);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(&format!("{long}  {long}")));
    }

    #[test]
    fn at_eighty_columns_no_word_is_broken_and_columns_without_values_are_left_out() {
        let rows = rows(&[
            &["● files", "connected", "14", "-", "-", "user", "npx -y @scope/server-filesystem ."],
            &["● everything", "connected", "8", "-", "-", "user", "uvx mcp-server-everything"],
        ]);
        let headers = ["SERVER", "STATE", "TOOLS", "CALLS/H", "STOPS", "SCOPE", "TARGET"];
        let text = table(&headers, &rows, Some(72));
        fits(&text, 72);
        assert!(!text.contains("CALLS/H") && !text.contains("STOPS"), "{text}");
        for word in ["@scope/server-filesystem", "mcp-server-everything"] {
            assert!(text.contains(word), "{text}");
        }
        assert!(table(&headers, &rows, Some(120)).contains("STOPS"));
        assert!(table(&headers, &rows, None).contains("STOPS"));
    }

    #[test]
    fn a_last_column_without_room_gets_lines_of_its_own() {
        let name = "everything__trigger-long-running-operation";
        let rows =
            rows(&[&[name, "unknown", "a description with several words"], &["b", "read", ""]]);
        let text = table(&["TOOL", "EFFECT", "DESCRIPTION"], &rows, Some(60));
        fits(&text, 60);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.get(1).copied(), Some("    DESCRIPTION"), "{text}");
        assert_eq!(lines.get(2).copied(), Some(&*format!("{name}  unknown")));
        assert_eq!(lines.get(3).copied(), Some("    a description with several words"));
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn a_short_last_column_stays_in_its_row_and_a_long_one_before_it_is_cut() {
        let target = "npx -y @modelcontextprotocol/server-filesystem /home/ann/documents/projects";
        let rows = rows(&[
            &["files", target, "moves"],
            &["web", target, "stays"],
            &["time", "x", "moves"],
        ]);
        let text = table(&["SERVER", "TARGET", "STATE"], &rows, Some(60));
        fits(&text, 60);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for (line, (name, state)) in
            lines.iter().skip(1).zip([("files", "moves"), ("web", "stays"), ("time", "moves")])
        {
            assert!(line.starts_with(name) && line.ends_with(state), "{text}");
        }
    }

    #[test]
    fn every_row_keeps_its_own_text_where_the_column_before_it_wraps() {
        let long = "several words that need more than one line of this table to be shown";
        let rows = rows(&[
            &["one", long, "a text of the first row that is long"],
            &["two", long, "a text of the second row that is long"],
            &["three", "short", "a text of the third row that is long"],
        ]);
        let text = table(&["NAME", "ABOUT", "TEXT"], &rows, Some(40));
        fits(&text, 40);
        for word in ["one", "two", "three", "first row", "second row", "third row"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let place = |word: &str| text.find(word).unwrap();
        assert!(
            place("first row") < place("two") && place("second row") < place("three"),
            "{text}"
        );
    }

    #[test]
    fn states_and_verdicts_have_colours_and_no_other_words_have_any() {
        let rows = rows(&[&["failed", "failed"]]);
        let text = coloured_table(&["STATE", "NAME"], &rows, Some(80));
        assert_eq!(
            text.matches("\u{1b}[31m").count() + text.matches("38;5;1m").count(),
            1,
            "{text:?}"
        );
        assert!(text.ends_with("failed"), "{text:?}");
        assert_eq!(table(&["STATE", "NAME"], &rows, Some(80)), "STATE   NAME\nfailed  failed");
    }

    #[test]
    fn a_table_without_limits_looks_like_one_with_room_for_all() {
        let rows = rows(&[
            &["connected", "世界", "allow"],
            &["disabled", "x", "a longer text in the last column"],
            &["failed"],
            &["asked", "", ""],
            &["write", "é", ""],
        ]);
        for headers in [["STATE", "NAME", "VERDICT"], ["STATE", "EFFECT", "TEXT"]] {
            let wide = coloured_table(&headers, &rows, Some(500));
            assert_eq!(coloured_table(&headers, &rows, None), wide);
        }
    }

    #[test]
    fn wide_columns_before_the_last_give_way() {
        let long = "abcdefghij".repeat(20);
        let rows = rows(&[&["one", &long, "世界世界世界世界世界世界", "tail of the row"]]);
        for width in [200, 80, 40, 24, 12] {
            fits(&table(&["A", "B", "C", "D"], &rows, Some(width)), width);
        }
    }

    #[test]
    fn a_width_too_small_for_anything_harms_nobody() {
        let rows = rows(&[&["one", "two", "three"], &["only one"]]);
        for width in 0..12 {
            assert!(!table(&["A", "B"], &rows, Some(width)).is_empty());
        }
        assert_eq!(table(&[], &[], Some(80)), "");
        assert_eq!(table(&["A", "B"], &[], None), "A  B");
    }

    #[test]
    fn a_cell_can_neither_break_its_row_nor_colour_the_screen() {
        let rows = rows(&[&["a\nb\u{1b}[31m", "x\u{1b}]0;t\u{7}\u{202e}"]]);
        let text = table(&["A", "B"], &rows, Some(80));
        assert_eq!(text, "A    B\na b  x\\u{1b}]0;t\\u{7}\\u{202e}");
    }
}
