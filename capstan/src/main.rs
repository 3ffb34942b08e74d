//! The binary: parse, wire together, run.

fn main() {}
