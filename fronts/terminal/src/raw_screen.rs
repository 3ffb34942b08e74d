//! The terminal while it is drawn on: raw keys, the other screen, and the way back.

use std::io::{self, Stdout, stdout};
use std::sync::Once;

use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// The terminal in raw mode; dropping it restores the terminal.
pub(crate) struct RawScreen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

// === impl RawScreen ===

impl RawScreen {
    pub(crate) fn open() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        // From here on, an error restores the terminal too.
        let restored = Restored;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        std::mem::forget(restored);
        Ok(Self { terminal })
    }
}

impl Drop for RawScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal when it is dropped.
struct Restored;

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back into the state for a shell.
fn restore() {
    // A terminal that is gone needs nothing.
    drop(execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show));
    drop(disable_raw_mode());
}

/// Restores the terminal before the message of a panic is printed, in whatever thread it happens.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            before(info);
        }));
    });
}
