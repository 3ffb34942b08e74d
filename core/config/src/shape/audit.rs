//! The shape of `[audit]`.

use schemars::JsonSchema;

use super::{Duration, Size};

/// The audit log.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Audit {
    /// Whether it is kept.
    #[schemars(extend("default" = true))]
    enabled: bool,
    /// Its file; unset, in the state folder.
    path: String,
    /// What of the arguments is written: nothing, or what does not look like a secret.
    #[schemars(extend("default" = "off"))]
    arguments: Arguments,
    /// How long entries are kept. Whole files are dropped, so that some stay up to a ninth longer.
    #[schemars(extend("default" = "90d"))]
    retention: Duration,
    /// The size at which a file is put aside and a new one begun.
    #[schemars(extend("default" = "100MiB"))]
    max_size: Size,
    /// The size of all files together; when it is reached, the oldest go before their time.
    #[schemars(extend("default" = "1GiB"))]
    max_total: Size,
    /// Whether an answer waits until the disk has its entry.
    #[schemars(extend("default" = false))]
    durable: bool,
    /// What becomes of calls while the log cannot be written: they are made, and it is told and counted that entries are missing; or they are refused.
    #[schemars(extend("default" = "degrade"))]
    on_full: OnFull,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Arguments {
    Off,
    Redacted,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum OnFull {
    Degrade,
    Refuse,
}
