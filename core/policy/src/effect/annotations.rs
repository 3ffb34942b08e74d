//! What a tool says of itself: MCP's `annotations`.

use capstan_model::Effect;
use capstan_wire::{Json, object};

/// The hints that speak of the effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
}

// === impl Hints ===

impl Hints {
    /// The hints of a definition; those that are no booleans are none.
    pub(super) fn of(definition: &Json) -> Self {
        let Some(annotations) = object::get(definition, "annotations") else {
            return Self::default();
        };
        let [read_only, destructive] =
            object::peek(&annotations, ["readOnlyHint", "destructiveHint"]);
        let flag = |json: Option<Json>| json.and_then(|json| json.read().ok());
        Self { read_only: flag(read_only), destructive: flag(destructive) }
    }

    /// What they say.
    pub(super) fn effect(self) -> Effect {
        match (self.read_only, self.destructive) {
            // A tool that claims both is not believed about the harmless half.
            (Some(true) | None, Some(true)) | (Some(false), _) => Effect::Write,
            (Some(true), Some(false) | None) => Effect::Read,
            (None, Some(false) | None) => Effect::Unknown,
        }
    }

    /// The hint that decided, as it was written.
    pub(super) fn text(self) -> String {
        match (self.read_only, self.destructive) {
            (_, Some(true)) => "annotation: destructiveHint is true".to_owned(),
            (Some(flag), _) => format!("annotation: readOnlyHint is {flag}"),
            (None, Some(false) | None) => "annotation: none".to_owned(),
        }
    }
}
