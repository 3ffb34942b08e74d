//! The shape of a native file, for its schema and its reference page.
//!
//! A doc comment here is what people read about a key. That these types and the reader know the
//! same keys is tested in `schema.rs`.
#![expect(dead_code, reason = "only the schemas of these types are used")]

mod openapi;
mod overrides;

use capstan_policy::DefaultRule;
use indexmap::IndexMap;
pub(crate) use openapi::OpenApi;
pub(crate) use overrides::ServerTools;
use schemars::JsonSchema;

use crate::settings::form::{Table, WordSchema};
use crate::settings::server::Server;
use crate::settings::{Audit, Gateway, Mcp, Screen, Tools};
use crate::shape_access::Access;

/// A configuration file of Capstan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Capstan configuration")]
pub(crate) struct File {
    /// The servers, by name.
    pub(crate) servers: IndexMap<String, <Server as Table>::Keys>,
    /// What may run without asking, what asks, and what never runs.
    pub(crate) permissions: Permissions,
    /// Who of many callers may do what at `capstan serve --http`; a project file has no say in it.
    pub(crate) access: Access,
    /// What binds the tools of all servers.
    pub(crate) tools: <Tools as Table>::Keys,
    /// What binds all servers.
    pub(crate) mcp: <Mcp as Table>::Keys,
    /// The audit log; a project file has no say in it.
    pub(crate) audit: <Audit as Table>::Keys,
    /// What is looked at in answers.
    pub(crate) screen: <Screen as Table>::Keys,
    /// Where `capstan serve --http` listens, and to whom; a project file has no say in it.
    pub(crate) gateway: <Gateway as Table>::Keys,
}

/// Rules for all servers.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Permissions {
    /// Patterns that run without asking. In a project file they speak of its own servers only.
    allow: Vec<Rule>,
    /// Patterns that ask first.
    ask: Vec<Rule>,
    /// Patterns that never run; nothing overrides them.
    deny: Vec<Rule>,
    /// What happens to a call that no rule speaks of. Unset, the terminal asks and the gateway asks for writes.
    default: WordSchema<DefaultRule>,
}

/// Three lists of rules.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RuleLists {
    /// Patterns that run without asking.
    allow: Vec<Rule>,
    /// Patterns that ask first.
    ask: Vec<Rule>,
    /// Patterns that never run.
    deny: Vec<Rule>,
}

/// A pattern, alone or with conditions.
#[derive(JsonSchema)]
#[schemars(untagged, title = "rule")]
pub(crate) enum Rule {
    /// The pattern alone.
    Pattern(String),
    /// The pattern with conditions.
    Table(RuleTable),
}

/// A pattern with conditions.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// What the rule speaks of: `github__delete_*`, `delete_*`, `gh__create_issue:repo=acme/*`, `Elicit(linear)`.
    pattern: String,
    /// A note for whoever reads the file.
    comment: String,
    /// What the caller is told.
    reason: String,
    /// From when on the rule no longer counts, with its zone: `2030-01-31T18:00:00Z`.
    expires_at: String,
    /// Only tools that do this: `read`, or `write` with those of which it is not known.
    effect: RuleEffect,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum RuleEffect {
    Read,
    Write,
}

/// A tool of a command-line program.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Preset {
    /// Its name.
    name: String,
    /// What is run, after `args` of the server.
    args: Vec<String>,
    /// What it does.
    description: String,
    /// What it takes: a JSON schema of an object. Its properties become flags, and `args` what follows them.
    input_schema: serde_json::Map<String, serde_json::Value>,
}
