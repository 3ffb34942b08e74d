//! Tables as plain text: the first column begins at the left, the others end at the right.

use std::fmt;

/// A table of text.
pub(crate) struct Table {
    /// The first row is the heading.
    rows: Vec<Vec<String>>,
}

// === impl Table ===

impl Table {
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned).into()] }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                if column == 0 {
                    write!(f, "{cell:<width$}")?;
                } else {
                    write!(f, "  {cell:>width$}")?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["what", "ms"]);
        table.row(["a longer one".to_owned(), "7".to_owned()]);
        table.row(["b".to_owned(), "1234".to_owned()]);
        let expected = "what            ms\na longer one     7\nb             1234\n";
        assert_eq!(table.to_string(), expected);
    }
}
