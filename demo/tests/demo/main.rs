//! The demo servers as a client meets them: messages in, messages out.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::panic, reason = "clippy exempts test functions, not their helpers")]
#![expect(clippy::indexing_slicing, reason = "clippy exempts test functions, not their helpers")]

mod world;
mod protocol;
mod files;
mod time;
mod notes;
