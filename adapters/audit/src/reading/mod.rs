//! Reads the log: [`reader`] filters it and follows it, [`verify`] detects tampering.

pub(crate) mod reader;
pub(crate) mod verify;
