//! What is allowed, as pure functions.
