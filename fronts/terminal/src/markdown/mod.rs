//! Lays out Markdown: headings, lists, tables, quotes, links, highlighted code.
//!
//! `wrap` breaks text into rows, `table` and `code` lay out what their names say.

mod code;
mod table;
pub(crate) mod wrap;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use self::table::Table;
use self::wrap::Piece;
use crate::theme::Colours;

/// The rows of a text in Markdown. The text must be cleaned.
pub(crate) fn rows(text: &str, width: usize, colours: Colours) -> Vec<Line<'static>> {
    let mut layout = Layout::new(width, colours);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(text, options) {
        layout.event(event);
    }
    layout.end_block();
    while layout.rows.last().is_some_and(|row| row.width() == 0) {
        layout.rows.pop();
    }
    layout.rows
}

/// The rows that are made so far, and the place in the text.
struct Layout {
    width: usize,
    colours: Colours,
    rows: Vec<Line<'static>>,
    /// The text of the block that is open.
    pieces: Vec<Piece>,
    /// The style of each open element.
    styles: Vec<Style>,
    /// The signs before each row, outermost first.
    margins: Vec<Margin>,
    /// The next number of each open list; `None` for lists without numbers.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
    /// The language of the open block of code.
    code: Option<(String, String)>,
    /// The addresses of open links and images.
    links: Vec<String>,
    /// True if a blank row separates the next block.
    gap: bool,
}

/// A sign before each row of an element.
struct Margin {
    /// The sign before the first row; taken when it is drawn.
    first: Option<String>,
    later: String,
}

// === impl Layout ===

impl Layout {
    fn new(width: usize, colours: Colours) -> Self {
        Self {
            width,
            colours,
            rows: Vec::new(),
            pieces: Vec::new(),
            styles: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            table: None,
            code: None,
            links: Vec::new(),
            gap: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.push(&text, Style::new()),
            },
            Event::Code(text) => self.push(&text, self.colours.accent()),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(&text, Style::new()),
            // Shown as it is: nothing of it has an effect here.
            Event::Html(text) | Event::InlineHtml(text) => self.push(&text, self.colours.dim()),
            Event::FootnoteReference(name) => self.push(&format!("[{name}]"), self.colours.dim()),
            Event::SoftBreak => self.push(" ", Style::new()),
            Event::HardBreak => self.push("\n", Style::new()),
            Event::Rule => {
                self.open_block();
                let rule = "─".repeat(self.room().min(40));
                self.put_row(vec![(rule, self.colours.dim())]);
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                self.push(if done { "[x] " } else { "[ ] " }, Style::new());
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each element")]
    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::DefinitionListTitle => self.open_block(),
            Tag::Heading { level, .. } => {
                self.open_block();
                let style = match level {
                    HeadingLevel::H1 => self.colours.strong().add_modifier(Modifier::UNDERLINED),
                    HeadingLevel::H2
                    | HeadingLevel::H3
                    | HeadingLevel::H4
                    | HeadingLevel::H5
                    | HeadingLevel::H6 => self.colours.strong(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) | Tag::DefinitionListDefinition => {
                self.open_block();
                self.margins.push(Margin { first: None, later: "│ ".to_owned() });
            }
            Tag::CodeBlock(kind) => {
                self.open_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(number) => {
                if self.lists.is_empty() {
                    self.open_block();
                } else {
                    self.end_block();
                }
                self.lists.push(number);
            }
            Tag::Item => {
                self.end_block();
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let sign = format!("{number}. ");
                        *number = number.saturating_add(1);
                        sign
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                let later = " ".repeat(sign.chars().count());
                self.margins.push(Margin { first: Some(sign), later });
            }
            Tag::FootnoteDefinition(name) => {
                self.open_block();
                self.push(&format!("[{name}] "), self.colours.dim());
            }
            Tag::Table(_) => {
                self.open_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead => {
                self.styles.push(self.colours.strong());
                self.table.iter_mut().for_each(Table::begin_row);
            }
            Tag::TableRow => self.table.iter_mut().for_each(Table::begin_row),
            Tag::TableCell | Tag::DefinitionList | Tag::MetadataBlock(_) => {}
            Tag::Emphasis => self.styles.push(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.styles.push(self.colours.strong()),
            Tag::Strikethrough => {
                self.styles.push(Style::new().add_modifier(Modifier::CROSSED_OUT));
            }
            Tag::Superscript | Tag::Subscript => self.styles.push(Style::new()),
            Tag::Link { dest_url, .. } => {
                self.styles.push(Style::new().add_modifier(Modifier::UNDERLINED));
                self.links.push(dest_url.into_string());
                // The text of the link begins here.
                self.push("", Style::new());
            }
            Tag::Image { dest_url, .. } => {
                self.push("[image: ", self.colours.dim());
                self.styles.push(Style::new());
                self.links.push(dest_url.into_string());
            }
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each element")]
    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph
            | TagEnd::HtmlBlock
            | TagEnd::DefinitionListTitle
            | TagEnd::FootnoteDefinition => {
                self.end_block();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.end_block();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::DefinitionListDefinition => {
                self.end_block();
                self.margins.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_block();
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.end_block();
                self.margins.pop();
                // Items of a list follow each other without a gap.
                self.gap = false;
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    for line in table.lines(self.room(), self.colours) {
                        let pieces = line.spans.into_iter();
                        self.put_row(pieces.map(|s| (s.content.into_owned(), s.style)).collect());
                    }
                }
                self.gap = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                self.table.iter_mut().for_each(|table| table.put(cell.clone()));
            }
            TagEnd::TableRow | TagEnd::DefinitionList | TagEnd::MetadataBlock(_) => {}
            TagEnd::TableHead
            | TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript => drop(self.styles.pop()),
            TagEnd::Link => {
                self.styles.pop();
                // A text can name another address than the one that it leads to.
                if let Some(address) = self.links.pop()
                    && self.pieces.last().is_none_or(|(text, _)| *text != address)
                {
                    self.push(&format!(" ({address})"), self.colours.dim());
                }
            }
            TagEnd::Image => {
                self.styles.pop();
                let address = self.links.pop().unwrap_or_default();
                self.push(&format!("] ({address})"), self.colours.dim());
            }
        }
    }

    /// Adds text to the open block.
    fn push(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().fold(style, |style, more| style.patch(*more));
        self.pieces.push((text.to_owned(), style));
    }

    /// The columns beside the signs of the margins.
    fn room(&self) -> usize {
        let used: usize = self.margins.iter().map(|margin| margin.later.chars().count()).sum();
        self.width.saturating_sub(used).max(8)
    }

    /// Ends the block before, and puts a gap before the next one.
    fn open_block(&mut self) {
        self.end_block();
        if std::mem::take(&mut self.gap) && !self.rows.is_empty() {
            let is_first = self.margins.last().is_some_and(|margin| margin.first.is_some());
            if !is_first {
                self.rows.push(Line::default());
            }
        }
    }

    /// Breaks the text of the open block into rows.
    fn end_block(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.is_empty() {
            return;
        }
        for row in wrap::words(&pieces, self.room()) {
            self.put_row(row);
        }
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        self.margins.push(Margin { first: None, later: "  ".to_owned() });
        for line in code.lines() {
            let pieces = code::highlight(line, &language, self.colours);
            for row in wrap::columns(&pieces, self.room()) {
                self.put_row(row);
            }
        }
        self.margins.pop();
        self.gap = true;
    }

    /// Adds a row behind the signs of the margins.
    fn put_row(&mut self, row: Vec<Piece>) {
        let mut pieces = Vec::new();
        for margin in &mut self.margins {
            let sign = margin.first.take().unwrap_or_else(|| margin.later.clone());
            pieces.push((sign, self.colours.dim()));
        }
        pieces.extend(row);
        self.rows.push(wrap::line(pieces));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> Vec<String> {
        let rows = rows(text, width, Colours::None);
        rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn blocks_are_laid_out_with_one_row_between_them() {
        let text =
            "# Title\nOne *two*\nthree.\n\n> quoted\n\n```rust\nlet x = 1;\n\n  y\n```\n\n---\nend";
        let expected = [
            "Title",
            "",
            "One two three.",
            "",
            "│ quoted",
            "",
            "  let x = 1;",
            "",
            "    y",
            "",
            "────────────────────",
            "",
            "end",
        ];
        assert_eq!(shown(text, 20), expected);
    }

    #[test]
    fn lists_keep_their_numbers_and_are_indented() {
        let text = "Steps:\n\n3. three\n4. four is long enough to wrap\n   - inner\n\n* [x] done\n* [ ] open";
        let expected = [
            "Steps:",
            "",
            "3. three",
            "4. four is long",
            "   enough to wrap",
            "   • inner",
            "",
            "• [x] done",
            "• [ ] open",
        ];
        assert_eq!(shown(text, 18), expected);
    }

    #[test]
    fn a_table_fits_the_width() {
        let text = "| name | about |\n|---|---|\n| a | a long description of it |\n| bb | x |";
        let expected = [
            "name │ about",
            "─────┼───────────────",
            "a    │ a long",
            "     │ description of",
            "     │ it",
            "bb   │ x",
        ];
        assert_eq!(shown(text, 21), expected);
    }

    #[test]
    fn the_address_of_a_link_is_always_shown() {
        assert_eq!(
            shown("[bank](https://evil.example) <https://a.example>", 80),
            ["bank (https://evil.example) https://a.example"]
        );
        assert_eq!(shown("![x](https://e.example/i)", 80), ["[image: x] (https://e.example/i)"]);
        assert_eq!(shown("<b>bold</b>", 80), ["<b>bold</b>"]);
    }

    #[test]
    fn no_row_is_wider_than_the_screen() {
        let text = "- a\n  - b\n    - c\n      > dddddddddddddddddddddd\n\n| a | b | c |\n|-|-|-|\n| 1 | 2 | 3 |\n";
        for width in 20..40 {
            for row in rows(text, width, Colours::None) {
                assert!(row.width() <= width, "{width}: {row}");
            }
        }
    }
}
