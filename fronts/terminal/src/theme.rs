//! The styles of the screen: the terminal's own colours, or none.

use ratatui::style::{Color, Modifier, Style};

/// The colours that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// The sixteen colours that the user has chosen for the terminal.
    OfTerminal,
    /// None: weight and brightness tell texts apart.
    None,
}

// === impl Colours ===

impl Colours {
    pub(crate) fn strong(self) -> Style {
        self.of(Color::Reset).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn dim(self) -> Style {
        self.of(Color::Reset).add_modifier(Modifier::DIM)
    }

    pub(crate) fn accent(self) -> Style {
        self.of(Color::Cyan)
    }

    pub(crate) fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(crate) fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    pub(crate) fn error(self) -> Style {
        self.of(Color::Red)
    }

    pub(crate) fn keyword(self) -> Style {
        self.of(Color::Magenta)
    }

    pub(crate) fn literal(self) -> Style {
        self.of(Color::Green)
    }

    pub(crate) fn number(self) -> Style {
        self.of(Color::Yellow)
    }

    /// The option under the cursor, with and without colours.
    pub(crate) fn selected() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn of(self, colour: Color) -> Style {
        match (self, colour) {
            (Self::None, _) | (Self::OfTerminal, Color::Reset) => Style::new(),
            (Self::OfTerminal, colour) => Style::new().fg(colour),
        }
    }
}
