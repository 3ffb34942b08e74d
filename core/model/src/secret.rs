//! Values that must never be shown.

use std::fmt;

/// What is printed in place of a secret.
pub const MASK: &str = "***";

/// A value without `Display`, whose `Debug` prints [`MASK`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself, for the one place that must use it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}
