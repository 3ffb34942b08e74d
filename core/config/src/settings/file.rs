//! The tables of a file, and its lists of rules, as the schema describes them.
#![expect(dead_code, reason = "only the schemas of these types are used")]

use capstan_policy::DefaultRule;
use indexmap::IndexMap;
use schemars::JsonSchema;

use super::access::AccessKeys;
use super::form::{Table, WordSchema};
use super::rule::Conditions;
use super::server::Server;
use super::{Audit, Flows, Gateway, Mcp, Model, Screen, Search, Tools};

/// A configuration file of Capstan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Capstan configuration")]
pub(crate) struct File {
    /// The servers, by name.
    pub(crate) servers: IndexMap<String, <Server as Table>::Keys>,
    /// Rules that allow calls, ask about them, or deny them.
    pub(crate) permissions: Permissions,
    /// Permissions per caller at `capstan serve --http`. A project file cannot set these keys.
    pub(crate) access: <AccessKeys as Table>::Keys,
    /// Rules and limits for the tools of all servers.
    pub(crate) tools: <Tools as Table>::Keys,
    /// Settings for all servers.
    pub(crate) mcp: <Mcp as Table>::Keys,
    /// The audit log. A project file cannot set these keys.
    pub(crate) audit: <Audit as Table>::Keys,
    /// Checks of answers.
    pub(crate) screen: <Screen as Table>::Keys,
    /// Rules about what may follow what in one conversation.
    pub(crate) flows: <Flows as Table>::Keys,
    /// Tool search: `capstan search`, and the tools that a model is offered.
    pub(crate) search: <Search as Table>::Keys,
    /// The gateway of `capstan serve --http`. A project file cannot set these keys.
    pub(crate) gateway: <Gateway as Table>::Keys,
    /// The language model of `capstan chat`. A project file cannot set these keys.
    pub(crate) model: <Model as Table>::Keys,
}

/// Rules for all servers.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Permissions {
    /// Calls that run without asking. In a project file, these rules apply only to its own servers.
    allow: Vec<Rule>,
    /// Calls that must be approved.
    ask: Vec<Rule>,
    /// Calls that are refused; no other rule overrides this.
    deny: Vec<Rule>,
    /// The verdict on calls that no rule matches. Default: the terminal asks about every call, the gateway about writes.
    default: WordSchema<DefaultRule>,
}

/// Three lists of rules.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RuleLists {
    /// Calls that run without asking.
    allow: Vec<Rule>,
    /// Calls that must be approved.
    ask: Vec<Rule>,
    /// Calls that are refused.
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
