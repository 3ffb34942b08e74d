//! The operations of a document that are wanted and can be called. Others are omitted, with the
//! reason.
//!
//! [`parameter`], [`body`] and [`schema`] read the parts of an operation, [`tool`] makes a tool.

pub(crate) mod body;
pub(crate) mod parameter;
pub(crate) mod schema;
pub(crate) mod tool;

use std::cell::Cell;

use serde_json::Value;

use crate::auth::{Auth, Wants, wants};
use crate::document::{Document, Object, Version};
use crate::operation::body::{Body, BodyKind, Field, kind, output};
use crate::operation::parameter::{Need, Parameter, Place, with_words};
use crate::operation::schema::{For, MAX_ALL_BYTES, Schemas};
use crate::request::base::Base;
use crate::settings::OpenApiSettings;

/// The largest number of operations offered.
const MAX_OPERATIONS: usize = 2_000;

/// The methods that are offered. `TRACE` is omitted: it is not part of an interface.
const METHODS: &[(&str, &str)] = &[
    ("get", "GET"),
    ("head", "HEAD"),
    ("options", "OPTIONS"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
];

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    /// The name of its tool.
    pub(crate) name: String,
    /// The method, in capitals.
    pub(crate) method: &'static str,
    /// The path, with placeholders.
    pub(crate) path: String,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) parameters: Vec<Parameter>,
    /// Query parameters that the configuration sets and callers may not.
    pub(crate) reserved: Vec<String>,
    pub(crate) body: Option<Body>,
    /// The schema of the response, if that is an object.
    pub(crate) output: Option<Value>,
    /// The security schemes that the operation requires.
    pub(crate) wants: Wants,
}

/// The operations found in a document.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) operations: Vec<Operation>,
    /// Operations that are wanted and cannot be offered, with the reason.
    pub(crate) left_out: Vec<String>,
    /// The number of operations, wanted or not.
    pub(crate) all: usize,
}

/// An operation as written in the document.
struct Written<'d> {
    document: &'d Document,
    /// The number of bytes left for tools.
    left: &'d Cell<usize>,
    method: &'static str,
    path: &'d str,
    item: &'d Object,
    said: &'d Object,
}

/// Reads the operations that the settings select.
pub(crate) fn read(
    document: &Document,
    settings: &OpenApiSettings,
    base: &Base,
    auth: &Auth,
) -> Found {
    let (mut found, left) = (Found::default(), Cell::new(MAX_ALL_BYTES));
    let paths = document.root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = document.object(item) else { continue };
        for (key, method) in METHODS {
            let Some(said) = item.get(*key).and_then(Value::as_object) else { continue };
            found.all += 1;
            let written = Written { document, left: &left, method, path, item, said };
            let name = unique(&found.operations, written.name());
            if !written.is_wanted(settings, &name) {
                continue;
            }
            if found.operations.len() == MAX_OPERATIONS {
                found
                    .left_out
                    .push(format!("{method} {path}: the document has more than {MAX_OPERATIONS} operations; select some with `tags` or `only`"));
                continue;
            }
            match written.read(name, settings, base, auth) {
                Ok(operation) => found.operations.push(operation),
                Err(reason) => found.left_out.push(format!("{method} {path}: {reason}")),
            }
        }
    }
    found
}

// === impl Written ===

impl<'d> Written<'d> {
    fn text(&self, key: &str) -> &'d str {
        self.said.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The name of its tool: from its id, else from method and path.
    fn name(&self) -> String {
        let id = clean(self.text("operationId"));
        if id.is_empty() {
            clean(&format!("{}_{}", self.method.to_lowercase(), self.path))
        } else {
            id
        }
    }

    fn is_wanted(&self, settings: &OpenApiSettings, name: &str) -> bool {
        let line = format!("{} {}", self.method, self.path);
        let names = [name, self.text("operationId"), line.as_str()];
        let means = |globs: &[capstan_policy::Glob]| {
            globs.iter().any(|glob| names.iter().any(|name| glob.is_match(name)))
        };
        let tags = self.said.get("tags").and_then(Value::as_array);
        let has = |wanted: &Vec<String>| {
            let mut tags = tags.into_iter().flatten().filter_map(Value::as_str);
            tags.any(|tag| wanted.iter().any(|wanted| wanted == tag))
        };
        settings.tags.as_ref().is_none_or(has)
            && settings.only.as_deref().is_none_or(means)
            && !means(&settings.except)
    }

    fn read(
        &self,
        name: String,
        settings: &OpenApiSettings,
        base: &Base,
        auth: &Auth,
    ) -> Result<Operation, String> {
        if !self.path.starts_with('/') || self.path.contains(['?', '#', '\\']) {
            return Err("its path cannot be sent".to_owned());
        }
        if self.said.contains_key("servers") || self.item.contains_key("servers") {
            return Err("it has its own server".to_owned());
        }
        let mut schemas = Schemas::new(self.document, For::Input, self.left);
        for text in [self.path, self.text("summary"), self.text("description")] {
            schemas.spend(text.len());
        }
        let (parameters, body) = self.inputs(&mut schemas)?;
        if let Some(lacking) = schemas.lacking() {
            return Err(lacking.to_owned());
        }
        // Callers cannot set parameters that the configuration sends.
        let is_given = |parameter: &Parameter| match parameter.place {
            Place::Header => {
                settings.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(&parameter.name))
            }
            Place::Cookie => {
                settings.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("cookie"))
            }
            Place::Query => base.sends(&parameter.name),
            Place::Path => false,
        };
        let is_free = |parameter: &Parameter| {
            !is_given(parameter) && !auth.sets(parameter.place, &parameter.name)
        };
        let parameters = parameters.into_iter().filter(is_free).collect();
        let responses = self.said.get("responses").and_then(Value::as_object);
        let mut operation = Operation {
            name,
            method: self.method,
            path: self.path.to_owned(),
            summary: self.text("summary").trim().to_owned(),
            description: self.text("description").trim().to_owned(),
            parameters,
            reserved: auth.in_queries(),
            body,
            output: responses.and_then(|responses| output(self.document, responses, self.left)),
            wants: wants(self.said, self.document),
        };
        operation.name_arguments();
        Ok(operation)
    }

    /// Reads the parameters of the operation and of its path; the operation's own take precedence.
    fn inputs(&self, schemas: &mut Schemas<'d>) -> Result<(Vec<Parameter>, Option<Body>), String> {
        let list = |from: &'d Object| from.get("parameters").and_then(Value::as_array);
        let all = list(self.said).into_iter().chain(list(self.item)).flatten();
        let (mut parameters, mut fields, mut body) = (Vec::<Parameter>::new(), Vec::new(), None);
        for said in all {
            let said = self.document.object(said).ok_or("a parameter cannot be found")?;
            match (self.document.version, said.get("in").and_then(Value::as_str)) {
                (Version::V2, Some("body")) if body.is_none() => {
                    body = Some(self.json_body(said, schemas));
                }
                (Version::V2, Some("body")) => {}
                (Version::V2, Some("formData")) => fields.push(field(said, schemas)),
                _ => {
                    let Some(one) = Parameter::read(self.document, said, schemas)? else {
                        continue;
                    };
                    let is_known =
                        |known: &Parameter| (&known.name, known.place) == (&one.name, one.place);
                    if !parameters.iter().any(is_known) {
                        parameters.push(one);
                    }
                }
            }
        }
        if let Some(said) = self.said.get("requestBody") {
            let said = self.document.object(said).ok_or("its body cannot be found")?;
            body = Body::read(said, schemas);
        }
        if body.is_none() && !fields.is_empty() {
            body = Some(Body::form(self.form_kind(), fields));
        }
        Ok((parameters, body))
    }

    /// Reads the body of version 2.0, which is a parameter.
    fn json_body(&self, said: &'d Object, schemas: &mut Schemas<'d>) -> Body {
        let schema = said.get("schema").map(|schema| schemas.write(schema)).unwrap_or_default();
        let kinds = self.consumed();
        let is_json = |kind: &BodyKind| matches!(kind, BodyKind::Json(_));
        let usual = || BodyKind::Json("application/json".to_owned());
        let found = kinds.iter().find(|kind| is_json(kind)).or(kinds.first());
        let words = said.get("description").and_then(Value::as_str).unwrap_or_default();
        Body::new(found.cloned().unwrap_or_else(usual), need(said), schema, words)
    }

    fn form_kind(&self) -> BodyKind {
        let kinds = self.consumed();
        let parts_only = kinds.contains(&BodyKind::Parts) && !kinds.contains(&BodyKind::Form);
        if parts_only { BodyKind::Parts } else { BodyKind::Form }
    }

    /// The content types that the operation accepts, in version 2.0.
    fn consumed(&self) -> Vec<BodyKind> {
        let consumes = self.said.get("consumes").or_else(|| self.document.root.get("consumes"));
        let consumes = consumes.and_then(Value::as_array).into_iter().flatten();
        consumes.filter_map(Value::as_str).map(kind).collect()
    }
}

fn field<'d>(said: &'d Object, schemas: &mut Schemas<'d>) -> Field {
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    schemas.spend(text("name").len());
    Field {
        argument: String::new(),
        name: text("name").to_owned(),
        need: need(said),
        schema: with_words(file_as_binary(schemas.object(said), text("type")), text("description")),
        is_bytes: false,
    }
}

/// Converts the type `file` of version 2.0 to the format `binary`.
fn file_as_binary(mut schema: Value, kind: &str) -> Value {
    if let (Value::Object(members), "file") = (&mut schema, kind) {
        members.insert("format".to_owned(), Value::from("binary"));
    }
    schema
}

fn need(said: &Object) -> Need {
    if said.get("required") == Some(&Value::Bool(true)) { Need::Required } else { Need::Optional }
}

// === impl Operation ===

impl Operation {
    /// Gives each argument a unique name that models accept.
    fn name_arguments(&mut self) {
        let mut taken: Vec<String> = Vec::new();
        let mut name = |wanted: &str, place: &str| {
            let wanted = clean(wanted);
            let mut names = [wanted.clone(), format!("{place}_{wanted}")].into_iter();
            let free = names.find(|name| !name.is_empty() && !taken.contains(name));
            let numbered = || {
                let mut numbered = (2_usize..).map(|n| format!("{place}_{wanted}_{n}"));
                numbered.find(|name| !taken.contains(name)).unwrap_or_default()
            };
            let name = free.unwrap_or_else(numbered);
            taken.push(name.clone());
            name
        };
        for parameter in &mut self.parameters {
            let place = match parameter.place {
                Place::Path => "path",
                Place::Query => "query",
                Place::Header => "header",
                Place::Cookie => "cookie",
            };
            parameter.argument = name(&parameter.name, place);
        }
        for field in self.body.iter_mut().flat_map(Body::fields_mut) {
            field.argument = name(&field.name, "body");
        }
    }
}

/// The longest generated name, in bytes.
const MAX_NAME: usize = 64;

/// Converts a text to a name of letters, digits, `_` and `-`.
fn clean(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '-' => name.push(c),
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    name.truncate(MAX_NAME);
    name.trim_end_matches('_').to_owned()
}

/// A name that no other operation has yet.
fn unique(known: &[Operation], name: String) -> String {
    let is_free = |name: &String| !known.iter().any(|one| one.name == *name);
    if is_free(&name) {
        return name;
    }
    // One more than there are known names is enough.
    let mut numbered = (2..known.len() + 3).map(|n| format!("{name}_{n}"));
    numbered.find(is_free).unwrap_or(name)
}
