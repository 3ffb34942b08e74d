//! Draws the screen: the transcript, the input, the status line, and what lies above them.

use capstan_text::clean::one_line;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr as _;

use super::Screen;
use super::completion::Popup;
use crate::markdown::wrap;
use crate::theme::Colours;

/// The narrowest and the lowest screen that is drawn on.
const LEAST: (u16, u16) = (20, 6);

/// The most candidates that are seen at once.
const MAX_CANDIDATES: u16 = 8;

/// The widest dialog.
const MAX_DIALOG: u16 = 120;

// === impl Screen ===

impl Screen {
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.width = area.width;
        self.mail.set_columns(area.width.min(MAX_DIALOG));
        if area.width < LEAST.0 || area.height < LEAST.1 {
            return frame.render_widget(Paragraph::new("too small"), area);
        }
        let (input, cursor) = self.input(area);
        let activity = u16::from(self.busy_since.is_some());
        let transcript = Rect { height: input.y.saturating_sub(activity), ..area };
        self.draw_transcript(frame, transcript);
        if activity > 0 {
            let line = Line::styled(self.activity(), self.colours.warning());
            frame.render_widget(line, row(area, transcript.height));
        }
        self.draw_input(frame, input);
        frame.render_widget(self.status_line(area.width), row(area, area.height.saturating_sub(1)));
        if let Some(popup) = &self.popup {
            self.draw_popup(frame, popup, input);
        }
        if self.overlay.is_some() {
            self.draw_overlay(frame, area);
        }
        match self.dialog.is_some() {
            true => self.draw_dialog(frame, area),
            false if self.overlay.is_some() => {}
            false => frame.set_cursor_position(cursor),
        }
    }

    /// The place of the input, and of the cursor within it.
    fn input(&self, area: Rect) -> (Rect, Position) {
        let width = usize::from(area.width.saturating_sub(2));
        let rows = self.editor.rows(width);
        let most = (area.height / 3).max(1);
        let height = u16::try_from(rows.lines.len()).unwrap_or(most).clamp(1, most);
        let y = area.height.saturating_sub(height + 2);
        let hidden = (rows.row + 1).saturating_sub(usize::from(height));
        let place = |number: usize| u16::try_from(number).unwrap_or_default();
        let x = place(rows.column).saturating_add(2).min(area.width.saturating_sub(1));
        let cursor = Position { x, y: y + 1 + place(rows.row - hidden) };
        (Rect { y, height: height + 1, ..area }, cursor)
    }

    fn draw_input(&self, frame: &mut Frame<'_>, area: Rect) {
        let colours = self.colours;
        let rule = "─".repeat(usize::from(area.width));
        let mut lines = vec![Line::styled(rule, colours.dim())];
        let width = usize::from(area.width.saturating_sub(2));
        if self.editor.is_empty() {
            let hint = "a message, / for commands, @ for files and resources";
            let hint = one_line(hint, width);
            lines
                .push(wrap::line(vec![("› ".to_owned(), colours.accent()), (hint, colours.dim())]));
        }
        let rows = self.editor.rows(width);
        let seen = usize::from(area.height.saturating_sub(1));
        let hidden = (rows.row + 1).saturating_sub(seen);
        for (at, text) in rows.lines.into_iter().enumerate().skip(hidden).take(seen) {
            let sign = if at == 0 { "› " } else { "  " };
            lines.push(wrap::line(vec![(sign.to_owned(), colours.accent()), (text, Style::new())]));
        }
        frame.render_widget(Paragraph::new(Text::from(lines)), area);
    }

    fn draw_transcript(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let (lines, below) =
            self.transcript.view(usize::from(area.width), usize::from(area.height), self.colours);
        frame.render_widget(Paragraph::new(Text::from(lines)), area);
        if below > 0 {
            let text = format!(" {below} more rows below; PgDn scrolls ");
            let width = u16::try_from(text.width()).unwrap_or(area.width).min(area.width);
            let place = Rect {
                x: area.width.saturating_sub(width),
                y: area.height.saturating_sub(1),
                width,
                height: 1,
            };
            frame.render_widget(Line::styled(text, Colours::selected()), place);
        }
    }

    fn activity(&self) -> String {
        let seconds = self.busy_since.map(|since| since.elapsed().as_secs()).unwrap_or_default();
        let what = if self.is_reasoning { "thinking" } else { "working" };
        let time = if seconds > 0 { format!(" {seconds} s") } else { String::new() };
        let queue = match self.queued {
            0 => String::new(),
            1 => " · 1 message waits".to_owned(),
            waiting => format!(" · {waiting} messages wait"),
        };
        format!("◐ {what}{time} · Esc stops{queue}")
    }

    fn status_line(&self, width: u16) -> Line<'static> {
        let width = usize::from(width);
        let status = &self.status;
        let servers = match status.servers {
            0 => "no servers".to_owned(),
            all => format!("{} of {all} servers", status.ready),
        };
        let tokens = format!("{} in, {} out", short(status.input), short(status.output));
        let right = format!("{servers} · {tokens} ");
        let left = match &self.hint {
            Some(hint) => (*hint).to_owned(),
            None => status.model.clone().unwrap_or_else(|| "no model".to_owned()),
        };
        let left = one_line(&left, width.saturating_sub(right.width() + 2));
        let gap = " ".repeat(width.saturating_sub(left.width() + right.width() + 1));
        wrap::line(vec![(format!(" {left}{gap}{right}"), self.colours.dim())])
    }

    fn draw_popup(&self, frame: &mut Frame<'_>, popup: &Popup, input: Rect) {
        let count = u16::try_from(popup.candidates.len()).unwrap_or(MAX_CANDIDATES);
        let height = count.min(MAX_CANDIDATES).min(input.y);
        let area = Rect { y: input.y - height, height, ..input };
        let first = (popup.place + 1).saturating_sub(usize::from(height));
        let width = usize::from(area.width);
        let shown = popup.candidates.iter().enumerate().skip(first).take(usize::from(height));
        let lines: Vec<Line<'static>> = shown
            .map(|(at, candidate)| {
                let style = if at == popup.place { Colours::selected() } else { Style::new() };
                let text = one_line(&candidate.text, width / 2);
                let text = format!("  {text:<24}");
                let room = width.saturating_sub(text.width() + 2);
                let about = one_line(&candidate.about, room);
                wrap::line(vec![(text, style), (format!("  {about}"), self.colours.dim())])
            })
            .collect();
        frame.render_widget(Clear, area);
        frame.render_widget(Paragraph::new(Text::from(lines)), area);
    }

    fn draw_overlay(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let colours = self.colours;
        let place = Rect { height: area.height.saturating_sub(1), ..area };
        let inner = (usize::from(place.width) - 4, usize::from(place.height) - 2);
        let Some(overlay) = &mut self.overlay else { return };
        let (title, lines, keys) = overlay.draw(inner.0, inner.1, colours);
        let keys = one_line(keys, inner.0);
        let frame_of = Block::bordered()
            .title(format!(" {title} "))
            .title_bottom(Line::styled(format!(" {keys} "), colours.dim()))
            .border_style(colours.accent());
        let within = frame_of.inner(place);
        let within = Rect { x: within.x + 1, width: within.width.saturating_sub(2), ..within };
        frame.render_widget(Clear, place);
        frame.render_widget(frame_of, place);
        frame.render_widget(Paragraph::new(Text::from(lines)), within);
    }

    fn draw_dialog(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let colours = self.colours;
        let width = area.width.min(MAX_DIALOG);
        let most = area.height.saturating_sub(2);
        let inner = (usize::from(width.saturating_sub(3)), usize::from(most.saturating_sub(2)));
        let Some(dialog) = &mut self.dialog else { return };
        let drawn = dialog.draw(inner.0, inner.1, colours);
        let height = u16::try_from(drawn.lines.len() + 2).unwrap_or(most).min(most);
        let place =
            Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
        let title = match self.waiting {
            0 => " question ".to_owned(),
            1 => " question (1 more waits) ".to_owned(),
            waiting => format!(" question ({waiting} more wait) "),
        };
        let frame_of = Block::bordered().title(title).border_style(colours.warning());
        let within = frame_of.inner(place);
        let within = Rect { x: within.x + 1, width: within.width.saturating_sub(1), ..within };
        frame.render_widget(Clear, place);
        frame.render_widget(frame_of, place);
        frame.render_widget(Paragraph::new(Text::from(drawn.lines)), within);
        if let Some((row, column)) = drawn.cursor {
            let offset = |number: usize| u16::try_from(number).unwrap_or_default();
            let x = within.x.saturating_add(offset(column)).min(within.right().saturating_sub(1));
            let y = within.y.saturating_add(offset(row)).min(within.bottom().saturating_sub(1));
            frame.set_cursor_position(Position { x, y });
        }
    }
}

/// A row of an area.
fn row(area: Rect, y: u16) -> Rect {
    Rect { y, height: 1, ..area }
}

/// A number of tokens in a few letters.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}
