//! Leaves the terminal as it was found, also when a question was never answered.

use std::io::Write;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Shows the cursor, which questions hide.
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// How the terminal at stdin was set up; `None` when stdin is none.
pub(crate) struct Keyboard(Option<Termios>);

// === impl Keyboard ===

impl Keyboard {
    pub(crate) fn as_it_is() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Undoes what a question did that is still open: the thread that asks cannot be ended, and
    /// the shell after us could not see what is typed.
    pub(crate) fn restore(&self) {
        let (Some(before), Ok(now)) = (&self.0, tcgetattr(std::io::stdin())) else { return };
        if now.local_modes != before.local_modes || now.input_modes != before.input_modes {
            // A terminal that is gone by now needs nothing.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
            drop(std::io::stderr().write_all(SHOW_CURSOR));
        }
    }
}
