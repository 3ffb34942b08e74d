//! The keys of `[screen]`.

use super::define::keys;
use super::form::Size;

keys! {
    /// Checks of answers.
    pub merged Screen
    keys {
        /// The maximum size of an answer.
        max_answer: u64 as Size = 10 << 20, smallest;
        /// The number of tokens above which an answer is delivered in pages, to clients of the gateway and in output of every kind. Without it, only output on a terminal is paged, above 25,000 tokens.
        max_tokens: u32, smallest;
    }
}
