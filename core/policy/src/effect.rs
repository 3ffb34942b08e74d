//! What a tool does, as far as configuration and annotations tell.

use capstan_model::{Effect, Trust};
use capstan_wire::{Json, object};
use globset::GlobMatcher;

use crate::pattern::{BadPattern, glob};

/// The operator's word on the tools of one server.
#[derive(Clone, Debug, Default)]
pub struct EffectRules {
    read: Vec<GlobMatcher>,
    write: Vec<GlobMatcher>,
}

// === impl EffectRules ===

impl EffectRules {
    /// Reads the two lists of a server.
    pub fn new(read: &[String], write: &[String]) -> Result<Self, BadPattern> {
        let globs = |list: &[String]| -> Result<Vec<GlobMatcher>, BadPattern> {
            list.iter().map(|text| glob(text)).collect()
        };
        Ok(Self { read: globs(read)?, write: globs(write)? })
    }

    /// What `tool` does: the operator's word, then the tool's own if its server is trusted.
    ///
    /// A tool in both lists writes. `definition` is the tool as its server describes it.
    pub fn of(&self, tool: &str, definition: &Json, trust: Trust) -> Effect {
        let listed = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(tool));
        if listed(&self.write) {
            return Effect::Write;
        }
        if listed(&self.read) {
            return Effect::Read;
        }
        match trust {
            Trust::Trusted => annotated(definition),
            Trust::Untrusted | Trust::Sandboxed => Effect::Unknown,
        }
    }
}

/// What a tool says of itself.
fn annotated(definition: &Json) -> Effect {
    let Some(annotations) = object::get(definition, "annotations") else { return Effect::Unknown };
    let hint = |name: &str| object::get(&annotations, name).and_then(|json| json.read().ok());
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        // A tool that claims both is not believed about the harmless half.
        (Some(true) | None, Some(true)) | (Some(false), _) => Effect::Write,
        (Some(true), Some(false) | None) => Effect::Read,
        (None, Some(false) | None) => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, annotations: &str, trust: Trust, expected: Effect) {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rules = EffectRules::new(&own(&["get_*"]), &own(&["*_thing"])).unwrap();
        let text = format!(r#"{{"name":"{tool}","annotations":{annotations}}}"#);
        assert_eq!(rules.of(tool, &Json::parse(text).unwrap(), trust), expected);
    }

    #[test]
    fn the_operator_is_believed_first_and_write_wins() {
        check("get_x", r#"{"readOnlyHint":false}"#, Trust::Trusted, Effect::Read);
        check("get_thing", "{}", Trust::Untrusted, Effect::Write);
        check("do_thing", r#"{"readOnlyHint":true}"#, Trust::Trusted, Effect::Write);
    }

    #[test]
    fn only_a_trusted_server_is_believed_about_itself() {
        check("x", r#"{"readOnlyHint":true}"#, Trust::Trusted, Effect::Read);
        check("x", r#"{"readOnlyHint":true}"#, Trust::Untrusted, Effect::Unknown);
        check("x", r#"{"readOnlyHint":true}"#, Trust::Sandboxed, Effect::Unknown);
        check(
            "x",
            r#"{"readOnlyHint":true,"destructiveHint":true}"#,
            Trust::Trusted,
            Effect::Write,
        );
        check("x", r#"{"destructiveHint":true}"#, Trust::Trusted, Effect::Write);
        check("x", r#"{"readOnlyHint":"true"}"#, Trust::Trusted, Effect::Unknown);
        check("x", "null", Trust::Trusted, Effect::Unknown);
    }
}
