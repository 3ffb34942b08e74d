//! The terminal: whether there is one, and its size.

use std::io::IsTerminal;

/// Whether a person reads stdout.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether a person reads stderr.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether a person types at stdin.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// Whether a person can be asked: they type at stdin and read stderr.
pub fn has_person() -> bool {
    stdin_is_terminal() && stderr_is_terminal()
}

/// The width of the terminal that stdout goes to; `None` when it is none.
pub fn width() -> Option<usize> {
    columns(stdout_is_terminal().then(std::io::stdout)?)
}

/// The width of the terminal that stderr goes to; `None` when it is none.
pub fn stderr_width() -> Option<usize> {
    columns(stderr_is_terminal().then(std::io::stderr)?)
}

/// The columns and the lines of the terminal that stderr goes to; `None` when it is none.
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
