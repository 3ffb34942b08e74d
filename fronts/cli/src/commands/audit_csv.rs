//! Entries of the audit log as comma-separated values (RFC 4180).

use capstan_app::AuditRow;
use capstan_text::clean::one_line;

use super::audit::text;

/// The columns; new ones are appended at the end.
const COLUMNS: [&str; 24] = [
    "seq",
    "time",
    "caller",
    "caller_id",
    "client",
    "front",
    "server",
    "item",
    "kind",
    "method",
    "effect",
    "verdict",
    "rule",
    "approval",
    "arguments",
    "outcome",
    "code",
    "duration_ms",
    "request_bytes",
    "answer_bytes",
    "prev",
    "hash",
    "roles",
    "bound",
];

/// The header line.
pub(super) fn header() -> String {
    COLUMNS.join(",") + "\r\n"
}

/// The line of an entry.
pub(super) fn line(row: &AuditRow) -> String {
    let cells: Vec<String> = COLUMNS.iter().map(|column| cell(&text(row, column))).collect();
    cells.join(",") + "\r\n"
}

/// Formats a cell.
///
/// Clients choose some of the texts, and a spreadsheet would run a text that looks like a formula;
/// such a text gets a quote before it that makes it plain text.
fn cell(text: &str) -> String {
    let text = one_line(text, usize::MAX);
    let guarded = match text.chars().next() {
        Some('=' | '+' | '-' | '@') => format!("'{text}"),
        Some(_) | None => text,
    };
    if guarded.contains([',', '"']) {
        return format!("\"{}\"", guarded.replace('"', "\"\""));
    }
    guarded
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_or_split_is_neither_run_nor_split() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'=1"),
            ("\r\n=1", "'=1"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("a=b", "a=b"),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
        assert!(!cell("a\u{1b}[31mb").contains('\u{1b}'));
    }

    #[test]
    fn a_line_has_a_cell_for_every_column() {
        let row = json!({ "seq": 7, "item": "x,y", "server": null, "hash": "ab" });
        let line = line(row.as_object().unwrap());
        assert_eq!(line, "7,,,,,,,\"x,y\",,,,,,,,,,,,,,ab,,\r\n");
        assert_eq!(line.matches(',').count(), header().matches(',').count() + 1);
    }
}
