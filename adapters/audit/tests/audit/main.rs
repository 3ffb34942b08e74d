//! The audit log from outside: what is written, read, found out and survived.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod world;
mod lines;
mod tampering;
mod background;
mod faults;
mod rotation;
mod keeping;
mod killed;
mod refusing;
mod settling;
mod reading;
mod processes;
