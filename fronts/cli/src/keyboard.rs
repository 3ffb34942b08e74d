//! Restores the terminal's settings, even if a question was never answered.

use std::io::Write;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The escape sequence that shows the cursor, which questions hide.
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// The initial settings of the terminal on stdin; `None` if stdin is not a terminal.
pub(crate) struct Keyboard(Option<Termios>);

// === impl Keyboard ===

impl Keyboard {
    pub(crate) fn as_it_is() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Restores the settings that an open question changed.
    ///
    /// The thread that asks cannot be ended, and without this the shell would not show what is
    /// typed.
    pub(crate) fn restore(&self) {
        let (Some(before), Ok(now)) = (&self.0, tcgetattr(std::io::stdin())) else { return };
        if now.local_modes != before.local_modes || now.input_modes != before.input_modes {
            // Fails only if the terminal is gone, which is no error.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
            drop(std::io::stderr().write_all(SHOW_CURSOR));
        }
    }
}
