//! The shape of a native file, for its schema and its reference page.
//!
//! A doc comment here is what people read about a key. That these types and the reader know the
//! same keys is tested in `schema.rs`.
#![expect(dead_code, reason = "only the schemas of these types are used")]

mod openapi;
mod overrides;

use indexmap::IndexMap;
use openapi::OpenApi;
use overrides::ServerTools;
use schemars::JsonSchema;

use crate::settings::form::{DurationSchema, Table};
use crate::settings::{Audit, Gateway, Mcp, Screen, Tools};
use crate::shape_access::Access;

/// A configuration file of Capstan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, title = "Capstan configuration")]
pub(crate) struct File {
    /// The servers, by name.
    pub(crate) servers: IndexMap<String, Server>,
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

/// One MCP server.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub(crate) struct Server {
    /// How it is reached. `command` implies `stdio`, `cli = true` implies `cli`. A `url` alone is tried as `http`, then as `sse`; the other way round where it ends in `/sse`.
    #[schemars(rename = "type")]
    kind: Type,
    /// Another name of `type`.
    transport: Type,
    /// The program to start: a bare name, looked up in `PATH`, or a path.
    command: String,
    /// Its arguments; each is passed on as it is, no shell is involved.
    args: Vec<String>,
    /// Variables set for it. It gets these, a few harmless ones such as `PATH`, and no others.
    env: IndexMap<String, String>,
    /// The folder it runs in; a relative path starts at Capstan's own.
    cwd: String,
    /// Names of further variables of Capstan's own environment that it gets.
    env_passthrough: Vec<String>,
    /// The address of a server that runs elsewhere: `https://`, `http://` or `unix://`.
    url: String,
    /// Headers sent with every request.
    headers: IndexMap<String, String>,
    /// An OpenAPI document, as a file or an address; each operation becomes a tool.
    openapi: OpenApi,
    /// Whether `command` is an ordinary command-line program whose subcommands become tools.
    #[schemars(extend("default" = false))]
    cli: bool,
    /// The argument that makes a command-line program print its help.
    #[schemars(extend("default" = "--help"))]
    cli_help: String,
    /// How deep subcommands are looked at.
    #[schemars(extend("default" = 2))]
    cli_depth: u32,
    /// The only subcommands that may be used, each by its words: `"get"`, `"remote add"`.
    cli_only: Vec<String>,
    /// By the name that the server gives a tool: how it is shown and called. As a list: the tools of a command-line program, given instead of found in its help.
    tools: ServerTools,
    /// Whether logins are attempted: nothing but `auto` and `off` works in this version.
    #[schemars(extend("default" = "auto"))]
    oauth: OAuth,
    /// Whether it is used at all.
    #[schemars(extend("default" = true))]
    enabled: bool,
    /// The opposite of `enabled`; only one of the two may stand.
    #[schemars(extend("default" = false))]
    disabled: bool,
    /// What it is for, in a sentence.
    description: String,
    /// Whether a start without it is a failure.
    #[schemars(extend("default" = false))]
    required: bool,
    /// Whether its tools are always offered, whatever a search finds.
    #[schemars(extend("default" = false))]
    always_load: bool,
    /// How long a call may take.
    #[schemars(extend("default" = "60s"))]
    timeout: DurationSchema,
    /// How long the start may take.
    #[schemars(extend("default" = "30s"))]
    startup_timeout: DurationSchema,
    /// When `capstan serve` starts it: with the gateway, when a client first asks for a list, or at the first call, which `auto` is too. Where nothing is known of it from before, `lazy` and `auto` start it with the gateway once.
    #[schemars(extend("default" = "auto"))]
    start: Start,
    /// When `capstan serve` stops it for want of use: `never`, a duration, or by how often it is called (`adaptive`: 5 minutes above 20 calls an hour, 3 from 5 on, else 1).
    #[schemars(extend("default" = "adaptive"))]
    idle_timeout: DurationSchema,
    /// The shortest idle time that `adaptive` chooses.
    #[schemars(extend("default" = "1m"))]
    min_idle_timeout: DurationSchema,
    /// The longest idle time that `adaptive` chooses.
    #[schemars(extend("default" = "5m"))]
    max_idle_timeout: DurationSchema,
    /// How far it is believed. `trusted`: what it says of its tools counts, and its address is not checked. `sandboxed`: only the tools under `expose`, and it never asks anything.
    #[schemars(extend("default" = "untrusted"))]
    trust: Trust,
    /// Networks that it may be reached in although they are not public, in CIDR notation; a bare address means itself. Link-local addresses and this machine need an entry of their own.
    networks: Vec<String>,
    /// The only tools it offers, by bare name or pattern.
    expose: Vec<String>,
    /// Tools it never offers, whatever `expose` says.
    hide: Vec<String>,
    /// The tools it may have, by their names; others are refused, and only told of when it is `trusted`.
    expected_tools: Vec<String>,
    /// Refuse tools that it did not have when it was first seen, instead of asking about them.
    lock_tool_list: bool,
    /// Rules for its own tools, by bare name. Its deny comes after the global deny and before everything else.
    permissions: RuleLists,
    /// What its tools do, where their own word is not enough.
    effect: Effect,
    /// Whether it may ask the operator; unset, `mcp.elicitation_enabled` decides.
    elicitation: bool,
    /// Folders it is told about, besides the project that Capstan was started in; outside a project these alone.
    roots: Vec<String>,
    /// Which era of MCP to speak: find out, with a handshake (`legacy`), or without (`modern`).
    #[schemars(extend("default" = "auto"))]
    protocol: Protocol,
    /// How its tools and prompts are called towards clients and models: `server__tool`, `mcp__server__tool`, or `tool` for the first server that has it. Rules and ids are the same with each.
    #[schemars(extend("default" = "prefixed"))]
    naming: Naming,
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
    default: Default,
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

/// What tools do.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Effect {
    /// Tools that change nothing.
    read: Vec<String>,
    /// Tools that change something; a tool in both lists writes.
    write: Vec<String>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Type {
    Stdio,
    Http,
    Sse,
    Cli,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum OAuth {
    Auto,
    Off,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Start {
    Auto,
    Eager,
    OnList,
    Lazy,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
    Sandboxed,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Auto,
    Legacy,
    Modern,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub(crate) enum Naming {
    Prefixed,
    Mcp,
    Bare,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(crate) enum Default {
    Ask,
    AskWrites,
    Allow,
    Deny,
}
