//! The tables of a file, and its lists of rules, as the schema describes them.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use capstan_policy::DefaultRule;
use indexmap::IndexMap;
use schemars::JsonSchema;

use super::access::AccessKeys;
use super::form::{Table, WordSchema};
use super::rule::Conditions;
use super::server::Server;
use super::{Audit, Gateway, Mcp, Screen, Tools};

/// A configuration file of Capstan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Capstan configuration")]
pub(crate) struct File {
    /// The servers, by name.
    pub(crate) servers: IndexMap<String, <Server as Table>::Keys>,
    /// What may run without asking, what asks, and what never runs.
    pub(crate) permissions: Permissions,
    /// Who of many callers may do what at `capstan serve --http`; a project file has no say in it.
    pub(crate) access: <AccessKeys as Table>::Keys,
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
    Table(<Conditions as Table>::Keys),
}
