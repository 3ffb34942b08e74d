//! The conversation above the input: messages, answers, calls, output of commands.

use std::time::Instant;

use capstan_app::chat::CallReport;
use capstan_safety::clean::clean;
use capstan_text::clean::one_line;
use capstan_text::conversation::Printed;
use ratatui::style::Style;
use ratatui::text::Line;

use super::answer::Answer;
use crate::markdown::wrap;
use crate::theme::Colours;

/// The most entries that are shown; the saved conversation keeps all.
const MAX_ITEMS: usize = 2_000;

/// The longest output of a command that is shown, in bytes.
const MAX_PRINTED: usize = 1 << 20;

/// The entries, and the part that is seen.
#[derive(Default)]
pub(crate) struct Transcript {
    items: Vec<Item>,
    /// The first row that is seen; `None` if the end is.
    top: Option<usize>,
    /// Number of rows at the last drawing.
    rows: usize,
    /// Number of rows that are seen.
    height: usize,
}

/// An entry.
struct Item {
    body: Body,
    /// Its rows, if they are laid out.
    rows: Vec<Line<'static>>,
    width: Option<usize>,
}

enum Body {
    Person(String),
    Answer(Answer),
    Call(ToolRun),
    Printed(Printed, String),
}

/// A call of the model.
struct ToolRun {
    id: String,
    name: String,
    arguments: String,
    since: Instant,
    progress: Option<String>,
    end: Option<RunEnd>,
}

/// The end of a call.
enum RunEnd {
    Reported { is_error: bool, summary: String },
    Stopped,
}

// === impl Transcript ===

impl Transcript {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn person(&mut self, text: String) {
        self.push(Body::Person(text));
        // Who writes wants to see the answer.
        self.top = None;
    }

    /// Adds to the answer that grows, or begins one.
    pub(crate) fn answer(&mut self, text: &str) {
        let text = clean(text);
        if let Some(Item { body: Body::Answer(answer), .. }) = self.items.last_mut() {
            return answer.push(&text);
        }
        let mut answer = Answer::default();
        answer.push(&text);
        self.push(Body::Answer(answer));
    }

    pub(crate) fn printed(&mut self, kind: Printed, text: &str) {
        if let Some(Item { body: Body::Printed(last, so_far), width, .. }) = self.items.last_mut()
            && *last == kind
            && kind == Printed::Data
            && so_far.len() < MAX_PRINTED
        {
            so_far.push('\n');
            so_far.push_str(text.trim_end_matches('\n'));
            *width = None;
            return;
        }
        let text = text.trim_end_matches('\n');
        let shown = text.get(..text.floor_char_boundary(MAX_PRINTED)).unwrap_or_default();
        self.push(Body::Printed(kind, shown.to_owned()));
    }

    pub(crate) fn calling(&mut self, id: String, name: String, arguments: String) {
        let (since, progress, end) = (Instant::now(), None, None);
        self.push(Body::Call(ToolRun { id, name, arguments, since, progress, end }));
    }

    pub(crate) fn called(&mut self, report: CallReport) {
        let CallReport { id, is_error, summary, hint, .. } = report;
        let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        let summary = one_line(&format!("{summary}{hint}"), 400);
        if let Some(run) = self.running().find(|run| run.id == id) {
            run.end = Some(RunEnd::Reported { is_error, summary });
        }
    }

    /// Notes the progress of the calls that run; reports do not say which call they are about.
    pub(crate) fn progress(&mut self, text: &str) {
        if let Some(run) = self.running().last() {
            run.progress = Some(text.to_owned());
        }
    }

    /// Ends all calls that have no result.
    pub(crate) fn stop(&mut self) {
        self.running().for_each(|run| run.end = Some(RunEnd::Stopped));
    }

    /// True if a call runs, whose time is shown.
    pub(crate) fn has_running(&mut self) -> bool {
        self.running().next().is_some()
    }

    fn running(&mut self) -> impl Iterator<Item = &mut ToolRun> {
        self.items.iter_mut().filter_map(|item| match &mut item.body {
            Body::Call(run) if run.end.is_none() => {
                // It will look different.
                item.width = None;
                Some(run)
            }
            Body::Call(_) | Body::Person(_) | Body::Answer(_) | Body::Printed(..) => None,
        })
    }

    /// Moves the part that is seen by rows; negative is up.
    pub(crate) fn scroll(&mut self, by: isize) {
        let last = self.rows.saturating_sub(self.height);
        let top = self.top.unwrap_or(last).saturating_add_signed(by);
        self.top = (top < last).then_some(top);
    }

    pub(crate) fn scroll_to_start(&mut self) {
        self.top = (self.rows > self.height).then_some(0);
    }

    pub(crate) fn scroll_to_end(&mut self) {
        self.top = None;
    }

    /// The height of a page.
    pub(crate) fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// The rows that are seen, and the number of rows below them.
    pub(crate) fn view(
        &mut self,
        width: usize,
        height: usize,
        colours: Colours,
    ) -> (Vec<Line<'static>>, usize) {
        let heights: Vec<usize> =
            self.items.iter_mut().map(|item| item.height(width, colours)).collect();
        let mut starts = Vec::with_capacity(heights.len());
        let mut rows = 0;
        for (item, height) in self.items.iter().zip(&heights) {
            let gap = usize::from(rows > 0 && item.body.has_gap());
            starts.push(rows + gap);
            rows += gap + height;
        }
        (self.rows, self.height) = (rows, height);
        let last = rows.saturating_sub(height);
        let top = self.top.filter(|top| *top < last);
        self.top = top;
        let top = top.unwrap_or(last);
        let mut seen = vec![Line::default(); height.min(rows - top)];
        for ((item, start), length) in self.items.iter().zip(starts).zip(heights) {
            if start + length <= top || start >= top + height {
                continue;
            }
            for at in 0..length {
                let Some(place) = (start + at).checked_sub(top) else { continue };
                let (Some(to), Some(row)) = (seen.get_mut(place), item.row(at)) else { continue };
                *to = row.clone();
            }
        }
        (seen, last - top)
    }

    fn push(&mut self, body: Body) {
        if self.items.len() >= MAX_ITEMS {
            self.items.remove(0);
        }
        self.items.push(Item { body, rows: Vec::new(), width: None });
    }
}

// === impl Item ===

impl Item {
    fn height(&mut self, width: usize, colours: Colours) -> usize {
        if let Body::Answer(answer) = &mut self.body {
            return answer.height(width, colours);
        }
        let is_running = matches!(&self.body, Body::Call(ToolRun { end: None, .. }));
        if self.width != Some(width) || is_running {
            self.rows = self.body.layout(width, colours);
            self.width = Some(width);
        }
        self.rows.len()
    }

    fn row(&self, at: usize) -> Option<&Line<'static>> {
        match &self.body {
            Body::Answer(answer) => answer.row(at),
            Body::Person(_) | Body::Call(_) | Body::Printed(..) => self.rows.get(at),
        }
    }
}

// === impl Body ===

impl Body {
    /// True if an empty row stands before the entry.
    fn has_gap(&self) -> bool {
        match self {
            Self::Person(_) | Self::Answer(_) | Self::Call(_) | Self::Printed(Printed::Data, _) => {
                true
            }
            Self::Printed(Printed::Note | Printed::Hint | Printed::Warning | Printed::Error, _) => {
                false
            }
        }
    }

    fn layout(&self, width: usize, colours: Colours) -> Vec<Line<'static>> {
        match self {
            // It lays itself out.
            Self::Answer(_) => Vec::new(),
            Self::Person(text) => signed("› ", colours.accent(), text, colours.strong(), width),
            Self::Call(run) => run.layout(width, colours),
            Self::Printed(Printed::Data, text) => {
                let rows = text
                    .lines()
                    .flat_map(|line| wrap::columns(&[(line.to_owned(), Style::new())], width));
                rows.map(wrap::line).collect()
            }
            Self::Printed(kind, text) => {
                let (sign, style) = match kind {
                    Printed::Data | Printed::Note => ("", colours.dim()),
                    Printed::Hint => ("  hint: ", colours.accent()),
                    Printed::Warning => ("warning: ", colours.warning()),
                    Printed::Error => ("error: ", colours.error()),
                };
                let rest = if sign.is_empty() { style } else { Style::new() };
                signed(sign, style, text, rest, width)
            }
        }
    }
}

/// The rows of a text behind a sign; further rows are indented.
fn signed(
    sign: &str,
    sign_style: Style,
    text: &str,
    style: Style,
    width: usize,
) -> Vec<Line<'static>> {
    let text = clean(text);
    let indent = sign.chars().count();
    let room = width.saturating_sub(indent).max(8);
    let rows = text.lines().flat_map(|line| wrap::words(&[(line.to_owned(), style)], room));
    let rows = rows.enumerate().map(|(at, row)| {
        let before = if at == 0 { sign.to_owned() } else { " ".repeat(indent) };
        wrap::line(std::iter::once((before, sign_style)).chain(row).collect())
    });
    rows.collect()
}

// === impl ToolRun ===

impl ToolRun {
    fn layout(&self, width: usize, colours: Colours) -> Vec<Line<'static>> {
        let (sign, style, below) = match &self.end {
            None => {
                let seconds = self.since.elapsed().as_secs();
                let time = if seconds > 0 { format!(" {seconds} s") } else { String::new() };
                (format!("◐{time}"), colours.warning(), self.progress.clone().unwrap_or_default())
            }
            Some(RunEnd::Reported { is_error: false, summary }) => {
                ("✓".to_owned(), colours.good(), summary.clone())
            }
            Some(RunEnd::Reported { is_error: true, summary }) => {
                ("✗".to_owned(), colours.error(), summary.clone())
            }
            Some(RunEnd::Stopped) => ("–".to_owned(), colours.dim(), "stopped".to_owned()),
        };
        let room = width.saturating_sub(sign.chars().count() + 2).max(8);
        let arguments = one_line(&self.arguments, room.saturating_sub(self.name.chars().count()));
        let head = vec![
            (format!("{sign} "), style),
            (one_line(&self.name, room), colours.strong()),
            (format!(" {arguments}"), colours.dim()),
        ];
        let mut rows = vec![wrap::line(head)];
        if !below.is_empty() {
            rows.extend(signed("  ", colours.dim(), &below, colours.dim(), width));
        }
        rows
    }
}
