//! The store, in a real file.

#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

mod approvals;
mod authorization;
mod authorization_kill;
mod damaged;
mod files;
mod kill;
mod pins;
mod usage;

use std::time::Duration;

use capstan_hub::ports::{Binding, Grant};
use capstan_model::Kind;
use jiff::Timestamp;

/// Some moment.
fn now() -> Timestamp {
    Timestamp::from_second(2_000_000_000).unwrap()
}

/// An approval that is good for ten minutes from then.
fn grant(id: &str) -> Grant {
    let binding = Binding {
        subject: "ann".to_owned(),
        kind: Kind::Tool,
        item: "files__write".to_owned(),
        arguments: "digest".to_owned(),
        policy: "1".to_owned(),
    };
    Grant { id: id.to_owned(), binding, expires_at: now() + Duration::from_mins(10) }
}
