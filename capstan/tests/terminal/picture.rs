//! The picture of a terminal in the README, made from real output.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use capstan_testkit::World;
use vt100::{Cell, Color, Screen};

use super::Terminal;

/// The commands of the picture.
const COMMANDS: [&str; 3] = [
    "tools --demo notes",
    "call --demo time__convert time=2026-11-18T09:00 from=UTC to=Asia/Tokyo",
    "why --demo notes__delete_note id=1",
];

/// The width and height of a character cell, and the free space around the text.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 16.0;
const TITLE: f64 = 28.0;

#[test]
fn the_picture_in_the_readme_is_what_a_terminal_shows() {
    let world = World::new();
    let mut rows = Vec::new();
    for command in COMMANDS {
        let mut terminal = Terminal::start(&world, command);
        assert_eq!(terminal.end(), 0, "{}", terminal.screen());
        rows.push(format!("<tspan class=\"prompt\">$ </tspan>capstan {command}"));
        rows.extend(lines(terminal.seen.lock().unwrap().screen.screen()));
        rows.push(String::new());
    }
    rows.pop();
    let picture = picture(&rows);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/terminal.svg");
    if std::env::var_os("CAPSTAN_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, &picture).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == picture, "docs/images/terminal.svg is stale; run `./dev/screenshot`");
}

/// The rows of a screen, without the empty ones at its end.
fn lines(screen: &Screen) -> Vec<String> {
    let (height, width) = screen.size();
    let row = |at| (0..width.get()).filter_map(move |column| screen.cell(at, column));
    let mut shown: Vec<String> = (0..height.get()).map(|at| runs(row(at))).collect();
    let last = shown.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    shown.truncate(last);
    shown
}

/// A row of the screen as text with a span for each style, without blanks at its end.
fn runs<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let mut spans: Vec<(String, String)> = Vec::new();
    for cell in cells {
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let class = class(cell);
        match spans.last_mut() {
            Some((last, so_far)) if *last == class => so_far.push_str(text),
            _ => spans.push((class, text.to_owned())),
        }
    }
    while let Some((_, text)) = spans.last_mut() {
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            break;
        }
        spans.pop();
    }
    spans.iter().fold(String::new(), |mut row, (class, text)| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let wrote = if class.is_empty() {
            write!(row, "{text}")
        } else {
            write!(row, "<tspan class=\"{class}\">{text}</tspan>")
        };
        wrote.unwrap();
        row
    })
}

/// The classes of a cell: its colour, and whether it is bold or dim.
fn class(cell: &Cell) -> String {
    let colour = match cell.fgcolor() {
        Color::Default => None,
        Color::Idx(index) => Some(format!("c{}", index % 8)),
        Color::Rgb(..) => Some("c6".to_owned()),
    };
    let styles = [(cell.bold(), "bold"), (cell.dim(), "dim")];
    let styles = styles.into_iter().filter(|(on, _)| *on).map(|(_, name)| name.to_owned());
    colour.into_iter().chain(styles).collect::<Vec<_>>().join(" ")
}

fn picture(rows: &[String]) -> String {
    let width = 80.0 * CELL.0 + 2.0 * MARGIN;
    let lines = f64::from(u32::try_from(rows.len()).unwrap());
    let height = TITLE + lines * CELL.1 + 2.0 * MARGIN;
    let mut text = String::new();
    let mut y = TITLE + MARGIN;
    for row in rows {
        y += CELL.1;
        if !row.is_empty() {
            writeln!(text, "<text x=\"{MARGIN}\" y=\"{y}\">{row}</text>").unwrap();
        }
    }
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="A terminal with three commands of Capstan and their output">
<!-- Made from real output by `./dev/screenshot`. -->
<style>
text {{ fill: #d4d4d8; white-space: pre; }}
.prompt {{ fill: #34d399; }} .bold {{ font-weight: bold; }} .dim {{ fill: #8f8f98; }}
.c0 {{ fill: #8f8f98; }} .c1 {{ fill: #f87171; }} .c2 {{ fill: #34d399; }} .c3 {{ fill: #fbbf24; }}
.c4 {{ fill: #60a5fa; }} .c5 {{ fill: #e879f9; }} .c6 {{ fill: #22d3ee; }} .c7 {{ fill: #f4f4f5; }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#18181b" stroke="#71717a"/>
<circle cx="20" cy="16" r="5" fill="#f87171"/><circle cx="38" cy="16" r="5" fill="#fbbf24"/><circle cx="56" cy="16" r="5" fill="#34d399"/>
<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">
{text}</g>
</svg>
"##
    )
}
