//! Configuration, text to meaning.
