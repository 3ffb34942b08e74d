//! Prints rows in columns.

use comfy_table::presets::NOTHING;
use comfy_table::{ColumnConstraint, ContentArrangement, Row, Table, Width};
use unicode_width::UnicodeWidthStr;

use crate::clean::one_line;

/// Number of spaces between two columns.
const GAP: u16 = 2;

/// Minimum width of the last column, if its content needs it.
const LAST_COLUMN: usize = 20;

/// Maximum number of lines in one row; longer text is cut with `…`.
const MAX_LINES: usize = 3;

/// Formats rows under their headers: no lines, two spaces between columns, no trailing spaces.
///
/// With a `width`, no line is longer: the last column wraps, and if that is not enough, the widest
/// of the others are cut. Without one (output that is not shown on a terminal), nothing is cut.
/// Every cell is cleaned, so a cell may contain text from a server.
pub fn table(headers: &[&str], rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut table = Table::new();
    table.force_no_tty().load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let Some(width) = width else {
        table.set_header(cells(headers, &[]));
        table.add_rows(rows.iter().map(|row| cells(row, &[])));
        return finish(table, &[]);
    };
    let widths = fit(content_widths(headers, rows), width);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table.set_header(cells(headers, &widths));
    table.add_rows(rows.iter().map(|row| cells(row, &widths)));
    finish(table, &widths)
}

fn finish(mut table: Table, widths: &[usize]) -> String {
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

/// Builds one row. All cells except the last are cut to their `widths`.
fn cells<T: AsRef<str>>(row: &[T], widths: &[usize]) -> Row {
    let others = widths.len().saturating_sub(1);
    let cell = |(index, text): (usize, &T)| {
        let room = widths.get(index).filter(|_| index < others).copied();
        one_line(text.as_ref(), room.unwrap_or(usize::MAX))
    };
    let mut row: Row = row.iter().enumerate().map(cell).collect::<Vec<String>>().into();
    if !widths.is_empty() {
        row.max_height(MAX_LINES);
    }
    row
}

/// The natural width of each column.
fn content_widths(headers: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(headers.len());
    let mut widths = vec![0; columns];
    for (width, header) in widths.iter_mut().zip(headers) {
        *width = one_line(header, usize::MAX).width();
    }
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = one_line(cell, usize::MAX).width().max(*width);
        }
    }
    widths
}

/// Fits the columns and their gaps into `room`: the last column shrinks first, then the widest.
fn fit(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    let Some((last, others)) = widths.split_last_mut() else { return widths };
    let room = room.saturating_sub(others.len() * usize::from(GAP)).max(others.len() + 1);
    let room_of_others = room - (*last).min(LAST_COLUMN).min(room / (others.len() + 1)).max(1);
    for width in others.iter_mut() {
        *width = (*width).clamp(1, room_of_others.max(1));
    }
    while others.iter().sum::<usize>() > room_of_others
        && let Some(widest) = others.iter_mut().max().filter(|widest| **widest > 1)
    {
        *widest -= 1;
    }
    *last = (*last).clamp(1, room.saturating_sub(others.iter().sum::<usize>()).max(1));
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
