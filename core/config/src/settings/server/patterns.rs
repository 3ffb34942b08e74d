//! The keys that hold patterns of a server's tools: `expose`, `hide` and `effect`.

use capstan_policy::exposure::Exposure;
use serde_json::Value as Json;

use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::{Form, Table};
use crate::source::problem::Problem;

keys! {
    /// The effect of tools, by name or pattern.
    pub table EffectLists
    keys {
        /// Tools that change nothing.
        read: Vec<String> as Globs = Vec::new();
        /// Tools that change something; a tool in both lists writes.
        write: Vec<String> as Globs = Vec::new();
    }
}

/// The form of a list of patterns for bare tool names.
pub(crate) struct Globs;

/// The form of a server's table `effect`.
pub(super) struct EffectTable;

// === impl Globs ===

impl Form for Globs {
    type Value = Vec<String>;
    type Schema = Vec<String>;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<Vec<String>> {
        let texts = fields.texts(key)?;
        let path = fields.key(key);
        let mut globs = Vec::new();
        for text in texts {
            let glob = text.value.value.clone();
            if let Err(error) = Exposure::new(None, std::slice::from_ref(&glob)) {
                let problem = Problem::error(text.value.complaint(&path, &error))
                    .help("write a name or a pattern such as \"list_*\"");
                fields.report().add(problem, path.clone(), &text.span);
            }
            globs.push(glob);
        }
        Some(globs)
    }

    fn write(value: &Vec<String>) -> Json {
        Json::from(value.as_slice())
    }
}

// === impl EffectTable ===

impl Form for EffectTable {
    type Value = EffectLists;
    type Schema = <EffectLists as Table>::Keys;

    fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Option<EffectLists> {
        let mut nested = fields.nested(key)?;
        let lists = EffectLists::read(&mut nested);
        if let Some(both) = lists.read.iter().find(|pattern| lists.write.contains(pattern)) {
            let message = format!("`{}` has `{both}` under both `read` and `write`", nested.path());
            nested.problem("write", Problem::error(message).help("keep it in one of the lists"));
        }
        nested.finish();
        Some(lists)
    }

    fn write(_: &EffectLists) -> Json {
        Json::Null
    }
}
