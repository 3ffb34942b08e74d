//! How this crate gives up: with a panic at the caller's line, which is how tests fail.

use std::fmt::Display;

/// Takes the value or ends the test.
pub(crate) trait OrFail<T> {
    /// The value; otherwise panics and says what could not be done.
    fn or_fail(self, what: &str) -> T;
}

impl<T, E: Display> OrFail<T> for Result<T, E> {
    #[track_caller]
    fn or_fail(self, what: &str) -> T {
        match self {
            Ok(value) => value,
            Err(problem) => fail(&format!("{what}: {problem}")),
        }
    }
}

impl<T> OrFail<T> for Option<T> {
    #[track_caller]
    fn or_fail(self, what: &str) -> T {
        self.unwrap_or_else(|| fail(what))
    }
}

/// Ends the test.
#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot have what it stands on must fail")]
pub(crate) fn fail(why: &str) -> ! {
    panic!("{why}")
}
