//! The operator's override of a single tool.

use serde_json::{Map, Value};

/// How one tool is shown and called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverride {
    /// Replaces the tool's name.
    pub name: Option<String>,
    /// Replaces the tool's title.
    pub title: Option<String>,
    /// Replaces the tool's description.
    pub description: Option<String>,
    /// Values of arguments that the caller leaves out.
    pub default: Map<String, Value>,
    /// Values of arguments that the caller cannot set.
    pub pin: Map<String, Value>,
    /// Parameters that are hidden from callers, who cannot set them either.
    pub hide_parameters: Vec<String>,
    /// True if the tool is not offered at all; policy applies this.
    pub hidden: bool,
}

// === impl ToolOverride ===

impl ToolOverride {
    /// True if it supplies or hides arguments.
    pub fn changes_arguments(&self) -> bool {
        !(self.pin.is_empty() && self.default.is_empty() && self.hide_parameters.is_empty())
    }
}
