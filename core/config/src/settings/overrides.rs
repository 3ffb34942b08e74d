//! What a configuration says of single tools: other names, other words, arguments that are settled.

use indexmap::IndexMap;
use serde_json::{Map, Value};

/// How one tool is shown and called.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverride {
    /// What it is called instead.
    pub name: Option<String>,
    /// Its title instead.
    pub title: Option<String>,
    /// What it does, in other words.
    pub description: Option<String>,
    /// Arguments for whoever gives none.
    pub default: Map<String, Value>,
    /// Arguments that nobody chooses.
    pub pin: Map<String, Value>,
    /// Parameters that nobody sees or gives.
    pub hide_parameters: Vec<String>,
    /// Whether it is not offered at all.
    pub hidden: bool,
}

/// The overrides of a server, by what it calls its tools.
pub type ToolOverrides = IndexMap<String, ToolOverride>;

/// Takes over what other overrides for the same server keep from callers.
pub(crate) fn keep_restrictions_of(own: &mut ToolOverrides, others: &ToolOverrides) {
    for (tool, other) in others {
        let settles = other.hidden || !other.pin.is_empty() || !other.hide_parameters.is_empty();
        if !settles && other.name.is_none() {
            continue;
        }
        let own = own.entry(tool.clone()).or_default();
        // A rule that denies may mean the tool by that name.
        own.name = other.name.clone().or_else(|| own.name.take());
        own.hidden |= other.hidden;
        // What the others hide, nobody but they supply.
        for name in &other.hide_parameters {
            own.pin.shift_remove(name);
            own.default.shift_remove(name);
            if let Some(value) = other.default.get(name) {
                own.default.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in &other.pin {
            own.default.shift_remove(name);
            own.pin.insert(name.clone(), value.clone());
        }
        own.hide_parameters.extend(other.hide_parameters.iter().cloned());
    }
}
