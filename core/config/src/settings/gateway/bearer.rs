//! The keys of `[gateway.auth.bearer]`: static tokens and the callers that present them.
//!
//! The tokens are keys of a table, so no message here repeats a key.

use capstan_model::Secret;
use schemars::JsonSchema;

use super::auth::RESERVED_SUBJECTS;
use crate::fields::Fields;
use crate::settings::define::keys;
use crate::settings::form::Table as Described;
use crate::source::problem::Problem;
use crate::source::tree::Value;

/// A static token and the caller that presents it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerToken {
    /// The token.
    pub token: Secret<String>,
    /// The caller's name.
    pub subject: String,
    /// The caller's roles.
    pub roles: Vec<String>,
}

keys! {
    /// The caller that presents a token.
    pub(crate) table IdentityKeys
    keys {
        /// The caller's name.
        subject: String;
        /// The caller's roles.
        roles: Vec<String> = Vec::new();
    }
}

/// A subject, alone or with roles.
#[derive(JsonSchema)]
#[schemars(untagged, title = "string or table")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum IdentitySchema {
    /// The subject alone.
    Subject(String),
    /// The subject with roles.
    Table(<IdentityKeys as Described>::Keys),
}

/// Reads the tokens of `[gateway.auth.bearer.tokens]`.
pub(super) fn read(auth: &mut Fields<'_, '_>) -> Vec<BearerToken> {
    let Some(mut fields) = auth.nested("bearer") else { return Vec::new() };
    let tokens = tokens(&mut fields);
    fields.finish();
    tokens
}

fn tokens(fields: &mut Fields<'_, '_>) -> Vec<BearerToken> {
    let path = fields.key("tokens");
    let help = "write one entry per token: \"TOKEN\" = { subject = \"bob\", roles = [\"dev\"] }";
    let entry = fields.entry("tokens");
    let table = entry.and_then(|entry| entry.node.as_table());
    let Some(table) = table.filter(|table| !table.entries.is_empty()) else {
        let message = match entry {
            Some(entry) if entry.node.as_table().is_none() => {
                format!("`{path}` must be a table, not {}", entry.node.value.what())
            }
            Some(_) | None => format!("`{path}` has no token, so nobody could connect"),
        };
        fields.problem("tokens", Problem::error(message).help(help));
        return Vec::new();
    };
    let mut tokens = Vec::new();
    for (token, entry) in &table.entries {
        let identity = match &entry.node.value {
            Value::Text(text) => Some((text.value.clone(), Vec::new())),
            Value::Table(nested) => {
                let mut nested =
                    Fields::new(nested, path.clone(), &entry.node.span, fields.report());
                let IdentityKeys { subject, roles } = IdentityKeys::read(&mut nested);
                if !nested.has("subject") {
                    let message = format!("an entry of `{path}` has no `subject`");
                    nested.table_problem(Problem::error(message).help("add `subject`"));
                }
                nested.finish();
                subject.map(|subject| (subject, roles))
            }
            other @ (Value::Number(_)
            | Value::Bool(_)
            | Value::Moment(_)
            | Value::Null
            | Value::List(_)) => {
                let what = other.what();
                let message =
                    format!("an entry of `{path}` must be a subject or a table, not {what}");
                let problem = Problem::error(message).help(help);
                fields.report().add(problem, path.clone(), &entry.node.span);
                None
            }
        };
        let Some((subject, roles)) = identity else { continue };
        if RESERVED_SUBJECTS.contains(&subject.as_str()) {
            let message = format!("`{path}` uses the subject `{subject}`, which is reserved");
            let problem = Problem::error(message).help("choose another subject");
            fields.report().add(problem, path.clone(), &entry.node.span);
        }
        tokens.push(BearerToken { token: Secret::new(token.clone()), subject, roles });
    }
    tokens
}
