//! The shape of what is said of single tools.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::Preset;

/// Overrides by tool, or the tools of a command-line program.
#[derive(JsonSchema)]
#[schemars(untagged, title = "table or list")]
pub(crate) enum ServerTools {
    /// Overrides, by the name that the server gives a tool.
    Overrides(IndexMap<String, ToolOverride>),
    /// The tools of a command-line program.
    Presets(Vec<Preset>),
}

/// How one tool is shown and called.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ToolOverride {
    /// What it is called instead. Rules go on to mean it by the name that its server gives it; a deny or ask for the new name counts too.
    name: String,
    /// Its title instead.
    title: String,
    /// What it does, in other words.
    description: String,
    /// Arguments for whoever gives none: `{ limit = 20 }`.
    default: Map<String, Value>,
    /// Arguments that nobody else chooses: `{ team = "core" }`. Callers do not see these parameters, and are refused when they give them.
    pin: Map<String, Value>,
    /// Parameters that callers do not see, and are refused when they give them.
    hide_parameters: Vec<String>,
    /// Whether it is not offered at all.
    #[schemars(extend("default" = false))]
    hidden: bool,
}
