//! The audit log: hash-chained JSON lines.
