//! The keys of `[screen]`.

use super::define::keys;
use super::form::Size;

keys! {
    /// Checks of answers.
    pub merged Screen
    keys {
        /// The maximum size of an answer.
        max_answer: u64 as Size = 10 << 20, smallest;
    }
}
