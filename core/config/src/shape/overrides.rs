//! The shape of what is said of single tools.

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::Preset;
use crate::settings::form::Table;
use crate::settings::overrides::ToolOverride;

/// Overrides by tool, or the tools of a command-line program.
#[derive(JsonSchema)]
#[schemars(untagged, title = "table or list")]
pub(crate) enum ServerTools {
    /// Overrides, by the name that the server gives a tool.
    Overrides(IndexMap<String, <ToolOverride as Table>::Keys>),
    /// The tools of a command-line program.
    Presets(Vec<Preset>),
}
