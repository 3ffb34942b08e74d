//! MCP's `annotations`: a tool's own claims about its effect.

use capstan_model::Effect;
use capstan_wire::{Json, object};

/// The hints about the effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
}

// === impl Hints ===

impl Hints {
    /// Reads the hints of a definition; values that are not booleans are ignored.
    pub(super) fn of(definition: &Json) -> Self {
        let Some(annotations) = object::get(definition, "annotations") else {
            return Self::default();
        };
        let [read_only, destructive] =
            object::peek(&annotations, ["readOnlyHint", "destructiveHint"]);
        let flag = |json: Option<Json>| json.and_then(|json| json.read().ok());
        Self { read_only: flag(read_only), destructive: flag(destructive) }
    }

    /// The effect that the hints claim.
    pub(super) fn effect(self) -> Effect {
        match (self.read_only, self.destructive) {
            // If a tool claims both, the harmless claim is ignored.
            (Some(true) | None, Some(true)) | (Some(false), _) => Effect::Write,
            (Some(true), Some(false) | None) => Effect::Read,
            (None, Some(false) | None) => Effect::Unknown,
        }
    }

    /// The hint that decided, as written.
    pub(super) fn text(self) -> String {
        match (self.read_only, self.destructive) {
            (_, Some(true)) => "annotation: destructiveHint is true".to_owned(),
            (Some(flag), _) => format!("annotation: readOnlyHint is {flag}"),
            (None, Some(false) | None) => "annotation: none".to_owned(),
        }
    }
}
