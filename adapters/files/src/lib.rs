//! Reading and atomically replacing files.
