//! The shape of a `[[tools.rates]]`.

use schemars::JsonSchema;

use super::Duration;

/// How many calls there may be in some time.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "rate")]
pub(crate) struct Rate {
    /// How many calls; at least 1.
    limit: u32,
    /// In how long.
    every: Duration,
    /// Which calls count together: those of one caller, to one server, to one tool, or all.
    #[schemars(extend("default" = "all"))]
    by: By,
    /// Patterns of the tools that are meant, as in the permissions. Unset, everything that can be called: tools, resources and prompts.
    tools: Vec<String>,
    /// What the caller is told.
    reason: String,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum By {
    Caller,
    Server,
    Tool,
    All,
}
