//! An answer that grows: finished blocks are laid out once, the rest again with each piece.

use ratatui::text::Line;

use crate::markdown;
use crate::theme::Colours;

/// The longest part that is laid out again with each piece, in bytes.
const MAX_OPEN: usize = 16 << 10;

/// The sign of a block of code.
const FENCE: &str = "```";

/// An answer of the model.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The whole text, cleaned.
    text: String,
    /// The part of the text whose rows are final.
    settled: usize,
    rows: Vec<Line<'static>>,
    /// Rows of the rest.
    open: Vec<Line<'static>>,
    /// The language of the block of code in which the settled part ends.
    fence: Option<String>,
    width: usize,
    is_stale: bool,
}

// === impl Answer ===

impl Answer {
    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.is_stale = true;
    }

    /// The number of rows at a width.
    pub(super) fn height(&mut self, width: usize, colours: Colours) -> usize {
        if width != self.width {
            self.width = width;
            (self.settled, self.fence) = (0, None);
            self.rows.clear();
            self.is_stale = true;
        }
        if std::mem::take(&mut self.is_stale) {
            self.settle(colours);
            let open = self.text.get(self.settled..).unwrap_or_default();
            self.open = self.layout(open, colours);
        }
        self.rows.len() + self.open.len()
    }

    /// The row at a place.
    pub(super) fn row(&self, at: usize) -> Option<&Line<'static>> {
        match at.checked_sub(self.rows.len()) {
            None => self.rows.get(at),
            Some(at) => self.open.get(at),
        }
    }

    /// Lays out what no later piece can change.
    fn settle(&mut self, colours: Colours) {
        loop {
            let open = self.text.get(self.settled..).unwrap_or_default();
            let Some((length, fence)) = boundary(open, self.fence.as_deref()) else { return };
            let piece = open.get(..length).unwrap_or_default();
            let rows = self.layout(piece, colours);
            self.rows.extend(rows);
            self.settled += length;
            self.fence = fence;
        }
    }

    /// The rows of a piece that follows the settled part.
    fn layout(&self, piece: &str, colours: Colours) -> Vec<Line<'static>> {
        let rows = match &self.fence {
            Some(language) => {
                let piece = format!("{FENCE}{language}\n{piece}");
                markdown::rows(&piece, self.width, colours)
            }
            None => markdown::rows(piece, self.width, colours),
        };
        let needs_gap = self.fence.is_none() && !self.rows.is_empty() && !rows.is_empty();
        needs_gap.then(Line::default).into_iter().chain(rows).collect()
    }
}

/// The end of the part that later text cannot change, with the language of the block of code in which
/// it ends; `None` if all of it can still change.
fn boundary(text: &str, fence: Option<&str>) -> Option<(usize, Option<String>)> {
    let mut fence = fence.map(ToOwned::to_owned);
    let (mut at, mut safe, mut line_end) = (0, None, None);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next().filter(|line| line.ends_with('\n')) {
        at += line.len();
        if let Some(language) = line.trim_start().strip_prefix(FENCE) {
            fence = match fence {
                Some(_) => None,
                None => Some(language.trim().to_owned()),
            };
        }
        // Behind an indented line, a list or a quote can go on.
        let begins_anew = |next: &&str| next.starts_with(|c: char| !c.is_whitespace());
        if fence.is_none() && line.trim().is_empty() && lines.peek().is_some_and(begins_anew) {
            safe = Some((at, None));
        }
        line_end = Some((at, fence.clone()));
        if at > MAX_OPEN {
            break;
        }
    }
    if safe.is_some() || text.len() <= MAX_OPEN {
        return safe;
    }
    // A block without an end is cut where a line or, without one, anything ends.
    line_end.or_else(|| Some((text.floor_char_boundary(MAX_OPEN), fence)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(answer: &mut Answer, width: usize) -> Vec<String> {
        let height = answer.height(width, Colours::None);
        (0..height).map(|at| answer.row(at).unwrap().to_string()).collect()
    }

    #[test]
    fn an_answer_in_pieces_looks_like_the_answer_at_once() {
        let text = "# Title\n\nOne *two* three.\n\n- a\n\n  b\n- c\n\n```rust\nlet x = 1;\n\nlet y;\n```\n\n\
                    1. one\n2. two\n\n| a | b |\n|-|-|\n| 1 | 2 |\n\nend";
        let mut whole = Answer::default();
        whole.push(text);
        let whole = shown(&mut whole, 40);
        for size in [1, 3, 7] {
            let mut answer = Answer::default();
            for piece in text.chars().collect::<Vec<_>>().chunks(size) {
                answer.push(&piece.iter().collect::<String>());
                answer.height(40, Colours::None);
            }
            assert_eq!(shown(&mut answer, 40), whole, "{size}");
            // Another width lays out all of it.
            shown(&mut answer, 20);
            assert_eq!(shown(&mut answer, 40), whole, "{size}");
        }
        assert!(whole.contains(&"  let y;".to_owned()), "{whole:?}");
    }

    #[test]
    fn a_block_without_an_end_is_laid_out_in_parts() {
        let mut answer = Answer::default();
        answer.push("```rust\n");
        for at in 0..5_000 {
            answer.push(&format!("let x{at} = 1;\n"));
        }
        assert_eq!(answer.height(80, Colours::None), 5_000);
        assert!(answer.text.len() - answer.settled <= MAX_OPEN);
        assert_eq!(answer.row(4_999).unwrap().to_string(), "  let x4999 = 1;");
        let mut answer = Answer::default();
        answer.push(&"x".repeat(3 * MAX_OPEN));
        assert!(answer.height(80, Colours::None) >= 3 * MAX_OPEN / 80);
        assert!(answer.text.len() - answer.settled <= MAX_OPEN);
    }
}
