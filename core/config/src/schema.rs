//! The JSON Schema of a native file.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::settings::file::File;

/// Returns the schema, for editors and other validators.
pub fn schema() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<File>().to_value();
    relax(&mut schema);
    schema
}

/// Makes every key optional except the pattern of a rule, and leaves out defaults that are empty.
fn relax(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(required)) = object.get_mut("required") {
                required.retain(|key| key == "pattern");
                if required.is_empty() {
                    object.shift_remove("required");
                }
            }
            let empty = |default: &Value| default.is_null() || *default == Value::Array(Vec::new());
            if object.get("default").is_some_and(empty) {
                object.shift_remove("default");
            }
            object.values_mut().for_each(relax);
        }
        Value::Array(items) => items.iter_mut().for_each(relax),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fields::KNOWN;
    use crate::source::reader::NativeFiles;
    use crate::source::{Scope, SourceFile, Surroundings};

    /// The dotted keys of the schema, with `x` as the name of a server.
    fn keys(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
        if let Some(servers) = schema.get("additionalProperties").filter(|more| more.is_object()) {
            if path == "servers" {
                keys(servers, "servers.x", found);
            }
            return;
        }
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let key = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            keys(property, &key, found);
            found.insert(key);
        }
    }

    #[test]
    fn the_schema_and_the_reader_know_the_same_keys() {
        let text = "
            [servers.x]
            [servers.x.permissions]
            [servers.x.effect]
            [servers.x.auth_provider]
            [servers.x.oauth_config]
            [servers.x.screen]
            [servers.x.tags]
            [permissions]
            [access]
            [tools.policy]
            [tools.authorization]
            [mcp]
            [audit]
            [screen]
            [flows]
            [search]
            [gateway.limits]
            [gateway.auth.bearer]
            [gateway.auth.forwarded]
            [gateway.auth.jwt]
            [gateway.auth.oauth_as]
            [gateway.auth.oauth_as.upstream]
            [model]
        ";
        let file = SourceFile::new("f", Scope::User, text);
        crate::load(&[file], &Surroundings { variable: &|_| None, project_dir: "" }, &NativeFiles);
        let read = KNOWN.with_borrow(Clone::clone);
        let mut listed = BTreeSet::new();
        keys(&schema(), "", &mut listed);
        assert_eq!(listed, read);
    }
}
