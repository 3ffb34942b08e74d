//! What is done about findings, by the role of the text.

use super::Surface;

/// The treatment of suspicious text. The stricter mode is the smaller one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// The item is hidden, or the answer refused.
    Block,
    /// Suspicious parts are replaced by [`MASKED`](super::MASKED).
    Mask,
    /// The finding is logged, and the text stays.
    Flag,
    /// The text is not scanned.
    Off,
}

/// The modes of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// Definitions of tools, prompts and resources.
    pub definitions: Mode,
    /// Instructions.
    pub instructions: Mode,
    /// Answers.
    pub answers: Mode,
}

// === impl Mode ===

impl Mode {
    /// The word in a configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Mask => "mask",
            Self::Flag => "flag",
            Self::Off => "off",
        }
    }
}

// === impl Modes ===

impl Modes {
    /// The mode for a text.
    pub const fn of(self, surface: Surface) -> Mode {
        match surface {
            Surface::Definition => self.definitions,
            Surface::Instructions => self.instructions,
            Surface::Answer => self.answers,
        }
    }
}

impl Default for Modes {
    fn default() -> Self {
        Self { definitions: Mode::Mask, instructions: Mode::Mask, answers: Mode::Flag }
    }
}
