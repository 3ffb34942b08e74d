//! The keys of `[screen]`.

use super::define::keys;
use super::form::Size;

keys! {
    /// What is looked at in answers.
    pub merged Screen
    keys {
        /// The largest answer.
        max_answer: u64 as Size = 10 << 20, smallest;
    }
}
