//! Detects terminals and their sizes.

use std::io::IsTerminal;

/// True if stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// True if stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// True if stdin is a terminal.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// True if a person can be asked: stdin and stderr are terminals.
pub fn has_person() -> bool {
    stdin_is_terminal() && stderr_is_terminal()
}

/// The width of the terminal on stdout; `None` if stdout is not a terminal.
pub fn width() -> Option<usize> {
    columns(stdout_is_terminal().then(std::io::stdout)?)
}

/// The width of the terminal on stderr; `None` if stderr is not a terminal.
pub fn stderr_width() -> Option<usize> {
    columns(stderr_is_terminal().then(std::io::stderr)?)
}

/// The columns and lines of the terminal on stderr; `None` if stderr is not a terminal.
pub fn stderr_size() -> Option<(usize, usize)> {
    size(stderr_is_terminal().then(std::io::stderr)?)
}

fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    size(terminal).map(|(columns, _)| columns)
}

fn size(terminal: impl std::os::fd::AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0).then_some((columns, rows.max(10)))
}
